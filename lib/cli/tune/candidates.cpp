#include <algorithm>
#include <limits>
#include <optional>

#include "cli/common/statistics.hpp"
#include "cli/measure/timing.hpp"
#include "cost/cost.hpp"
#include "tune.hpp"

namespace baton::cli::tune {
namespace {

constexpr std::int64_t segments[] = {0,        8 << 10,   16 << 10,  32 << 10,
                                     64 << 10, 128 << 10, 512 << 10, 2 << 20};
// Times of the best at which a candidate is not tried, by estimate; is tried briefly only; and at
// which the candidate that was best for the size before is kept.
constexpr double hopeless = 20, slow = 1.5, as_good = 1.04;
constexpr double brief = 0.004;  // seconds

struct Candidate : measure::Timed {
  Choice choice;

  double time() const { return median(samples); }
};

/// All candidates on one size.
class Candidates {
 public:
  Candidates(World& world, Communicator& communicator, const Case& subject,
             const TuneOptions& options)
      : world_(world), communicator_(communicator), options_(options), subject_(subject) {
    world_.together([&] {
      const auto bytes = [&](std::int64_t elements) {
        return static_cast<std::size_t>(elements) * size_of(subject_.type);
      };
      input_.resize(bytes(subject_.input_count(world_.rank())));
      output_.resize(bytes(subject_.output_count(world_.rank())));
      add_candidates();
    });
  }

  /// The best; `kept` stays while it is nearly as good.
  Choice best(const std::optional<Choice>& kept) {
    double least = std::numeric_limits<double>::infinity();
    for (Candidate& candidate : all_) {
      candidate.seconds(1);  // finds its plan
      // Calls that follow each other, as they are measured afterwards: where one can begin before
      // the last has ended everywhere, a single one tells little.
      candidate.calls = runs_in(brief, candidate.seconds(1));
      candidate.sample();
      least = std::min(least, candidate.time());
    }
    std::erase_if(all_, [&](const Candidate& c) { return c.time() > slow * least; });
    for (Candidate& candidate : all_) {
      candidate.calls = runs_in(options_.seconds, least);
      candidate.samples.clear();
    }
    for (int i = 0; i < options_.repeats; ++i) {
      for (Candidate& candidate : all_) candidate.sample();
    }
    double best = std::numeric_limits<double>::infinity();
    for (const Candidate& candidate : all_) best = std::min(best, candidate.time());
    const auto good = [&](const Candidate& candidate) {
      return candidate.time() <= as_good * best;
    };
    for (const Candidate& candidate : all_) {
      if (kept == candidate.choice && good(candidate)) return *kept;
    }
    // Of equals the first in the registry: many algorithms are the same for few ranks.
    return std::find_if(all_.begin(), all_.end(), good)->choice;
  }

 private:
  static int runs_in(double seconds, double one) {
    return static_cast<int>(std::clamp(seconds / one, 1.0, 1000.0));
  }

  void add_candidates() {
    Problem problem = subject_.problem.at(world_.rank());
    problem.hosts = communicator_.hosts();
    const std::size_t bytes = size_of(subject_.type);
    std::vector<std::pair<double, Choice>> estimated;
    double least = std::numeric_limits<double>::infinity();
    for (const Algorithm* algorithm : communicator_.registry().of(problem.collective)) {
      if (!refusal(*algorithm, problem).empty()) continue;
      for (const std::int64_t segment : segments) {
        // A piece as long as all data cuts no message.
        if (segment > 0 && segment >= subject_.bytes()) continue;
        if (segment == 0 && algorithm->pipelined) continue;
        const double time = costs::estimate(*algorithm, problem, bytes, segment, {});
        least = std::min(least, time);
        estimated.push_back({time, {algorithm->name, segment}});
      }
    }
    for (const auto& [time, choice] : estimated) {
      if (time <= hopeless * least) all_.push_back(candidate(choice));
    }
  }

  Candidate candidate(const Choice& choice) {
    Call call =
        subject_.call(ConstData(input_.data(), subject_.input_count(world_.rank()), subject_.type),
                      Data(output_.data(), subject_.output_count(world_.rank()), subject_.type));
    call.choice = choice;
    Candidate made;
    made.choice = choice;
    made.seconds = [this, call](int runs) {
      return measure::timed(
          world_, [&] { communicator_.run(call); }, runs);
    };
    return made;
  }

  World& world_;
  Communicator& communicator_;
  const TuneOptions& options_;
  const Case& subject_;
  std::vector<std::byte> input_, output_;  // zeros: time does not depend on values
  std::vector<Candidate> all_;
};

}  // namespace

std::vector<selecting::TuningRow> tune(World& world, Communicator& communicator,
                                       const TuneOptions& options,
                                       const std::function<void(const std::string&)>& before) {
  std::vector<selecting::TuningRow> rows;
  for (const Collective collective : options.collectives) {
    std::optional<Choice> last;
    std::int64_t last_bytes = -1;
    for (const std::int64_t bytes : options.sizes) {
      const Case subject = flat_case(collective, world.size(), std::max<std::int64_t>(bytes / 4, 1),
                                     Datatype::f32, OpKind::sum, 0);
      if (subject.bytes() == last_bytes) continue;  // sizes below one element per rank
      last_bytes = subject.bytes();
      before(subject.text());
      const Choice best = Candidates(world, communicator, subject, options).best(last);
      if (best != last) rows.push_back({collective, last ? subject.bytes() : 0, best});
      last = best;
    }
  }
  return rows;
}

}  // namespace baton::cli::tune
