#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <optional>

#include "../cost/cost.hpp"
#include "tune.hpp"

namespace baton::cli {
namespace {

constexpr std::int64_t segments[] = {0,        8 << 10,   16 << 10,  32 << 10,
                                     64 << 10, 128 << 10, 512 << 10, 2 << 20};
// Times of the best at which a candidate is not tried, by estimate; is tried briefly only; and at
// which the candidate that was best for the size before is kept.
constexpr double hopeless = 20, slow = 1.5, as_good = 1.04;
constexpr double brief = 0.004;  // seconds

struct Candidate {
  Choice choice;
  std::vector<double> times;  // seconds a run, of the slowest rank

  double median() const {
    std::vector<double> sorted = times;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    return *middle;
  }
};

/// All candidates on one size.
class Contest {
 public:
  Contest(World& world, Communicator& communicator, const Exercise& exercise,
          const TuneOptions& options)
      : world_(world), communicator_(communicator), options_(options), exercise_(exercise) {
    world_.together([&] {
      const auto bytes = [&](std::int64_t elements) {
        return static_cast<std::size_t>(elements) * size_of(exercise_.type);
      };
      input_.resize(bytes(exercise_.input_count(world_.rank())));
      output_.resize(bytes(exercise_.output_count(world_.rank())));
      add_candidates();
    });
  }

  /// The best; `kept` stays while it is nearly as good.
  Choice best(const std::optional<Choice>& kept) {
    double least = std::numeric_limits<double>::infinity();
    for (Candidate& candidate : candidates_) {
      time(candidate, 1);  // finds its plan
      // Calls that follow each other, as they are measured afterwards: where one can begin before
      // the last has ended everywhere, a single one tells little.
      candidate.times = {time(candidate, runs_in(brief, time(candidate, 1)))};
      least = std::min(least, candidate.times[0]);
    }
    std::erase_if(candidates_, [&](const Candidate& c) { return c.times[0] > slow * least; });
    const int runs = runs_in(options_.seconds, least);
    for (Candidate& candidate : candidates_) candidate.times.clear();
    for (int i = 0; i < options_.repeats; ++i) {
      for (Candidate& candidate : candidates_) candidate.times.push_back(time(candidate, runs));
    }
    double best = std::numeric_limits<double>::infinity();
    for (const Candidate& candidate : candidates_) best = std::min(best, candidate.median());
    const auto good = [&](const Candidate& candidate) {
      return candidate.median() <= as_good * best;
    };
    for (const Candidate& candidate : candidates_) {
      if (kept == candidate.choice && good(candidate)) return *kept;
    }
    // Of equals the first in the registry: many algorithms are the same for few ranks.
    return std::find_if(candidates_.begin(), candidates_.end(), good)->choice;
  }

 private:
  static int runs_in(double seconds, double one) {
    return static_cast<int>(std::clamp(seconds / one, 1.0, 1000.0));
  }

  void add_candidates() {
    Problem problem = exercise_.problem.at(world_.rank());
    problem.hosts = communicator_.hosts();
    const std::size_t bytes = size_of(exercise_.type);
    std::vector<std::pair<double, Choice>> estimated;
    double least = std::numeric_limits<double>::infinity();
    for (const Algorithm* algorithm : communicator_.registry().of(problem.collective)) {
      if (!refusal(*algorithm, problem).empty()) continue;
      for (const std::int64_t segment : segments) {
        // A piece as long as all data cuts no message.
        if (segment > 0 && segment >= exercise_.bytes()) continue;
        if (segment == 0 && algorithm->pipelined) continue;
        const double time = costs::estimate(*algorithm, problem, bytes, segment, {});
        least = std::min(least, time);
        estimated.push_back({time, {algorithm->name, segment}});
      }
    }
    for (const auto& [time, choice] : estimated) {
      if (time <= hopeless * least) candidates_.push_back({choice, {}});
    }
  }

  double time(const Candidate& candidate, int runs) {
    using Clock = std::chrono::steady_clock;
    double seconds = 0;
    world_.barrier();
    world_.together([&] {
      Call call = exercise_.call(
          ConstData(input_.data(), exercise_.input_count(world_.rank()), exercise_.type),
          Data(output_.data(), exercise_.output_count(world_.rank()), exercise_.type));
      call.choice = candidate.choice;
      const auto begin = Clock::now();
      for (int i = 0; i < runs; ++i) communicator_.run(call);
      seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    });
    return world_.max(seconds) / runs;
  }

  World& world_;
  Communicator& communicator_;
  const TuneOptions& options_;
  const Exercise& exercise_;
  std::vector<std::byte> input_, output_;  // zeros: time does not depend on values
  std::vector<Candidate> candidates_;
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
      const Exercise exercise =
          flat_exercise(collective, world.size(), std::max<std::int64_t>(bytes / 4, 1),
                        Datatype::f32, OpKind::sum, 0);
      if (exercise.bytes() == last_bytes) continue;  // sizes below one element per rank
      last_bytes = exercise.bytes();
      before(exercise.text());
      const Choice best = Contest(world, communicator, exercise, options).best(last);
      if (best != last) rows.push_back({collective, last ? exercise.bytes() : 0, best});
      last = best;
    }
  }
  return rows;
}

}  // namespace baton::cli
