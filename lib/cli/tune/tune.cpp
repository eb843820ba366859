#include <fmt/core.h>
#include <sys/utsname.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "algorithms.hpp"
#include "cli/commands.hpp"
#include "cli/common/machine.hpp"
#include "cli/common/statistics.hpp"
#include "cli/common/text.hpp"
#include "cli/measure/sides.hpp"
#include "cost/cost.hpp"
#include "select/table.hpp"

namespace baton::cli::tune {
namespace {

// Times of the best at which a candidate is not tried, by estimate; is tried briefly only; and at
// which the candidate that was best for the size before is kept.
constexpr double hopeless = 20, slow = 1.5, as_good = 1.04;
constexpr std::int64_t element_bytes = 4;         // f32 is tuned
constexpr double brief = 0.004, thorough = 0.02;  // seconds of a measurement

struct Candidate : measure::Timed {
  Choice choice;

  double time() const { return median(samples); }
};

/// All candidates on one size.
class Candidates {
 public:
  Candidates(World& world, Communicator& communicator, const Case& subject, const Algorithms& own)
      : world_(world), communicator_(communicator), subject_(subject), own_(own) {
    world_.together([&] {
      runner_.emplace(communicator, subject, false);
      add_candidates();
    });
  }

  /// The best; `kept` stays while it is nearly as good.
  Choice best(const std::optional<Choice>& kept, int repeats) {
    double least = std::numeric_limits<double>::infinity();
    for (Candidate& candidate : all_) {
      candidate.seconds(1);  // finds its plan
      // Calls that follow each other, as they are measured afterwards: where one can begin before
      // the last has ended everywhere, a single one tells little.
      candidate.calls = runs_in(brief, candidate.seconds(1));
      candidate.sample();
      least = std::min(least, candidate.time());
    }
    compare(least);
    std::erase_if(all_, [&](const Candidate& c) { return c.time() > slow * least; });
    for (Candidate& candidate : all_) {
      candidate.calls = runs_in(thorough, least);
      candidate.samples.clear();
    }
    for (int i = 0; i < repeats; ++i) {
      for (Candidate& candidate : all_) candidate.sample();
    }
    const double best = std::ranges::min_element(all_, {}, &Candidate::time)->time();
    compare(best);
    const auto good = [&](const Candidate& candidate) {
      return candidate.time() <= as_good * best;
    };
    for (const Candidate& candidate : all_) {
      if (kept == candidate.choice && good(candidate)) return *kept;
    }
    // Of equals the first in the registry: many algorithms are the same for few ranks.
    return std::find_if(all_.begin(), all_.end(), good)->choice;
  }

  /// A comment of the table for each algorithm of the user: its time by the best one's.
  std::string comments() const {
    std::string text;
    for (const Algorithm* algorithm : own_.own(subject_.collective())) {
      const auto found = ratios_.find(algorithm->name);
      text += fmt::format("# {}, {}: {}\n", algorithm->name, subject_.text(),
                          found == ratios_.end()
                              ? "does not serve it"
                              : fmt::format("{:.2f} times the best one's time", found->second));
    }
    return text;
  }

 private:
  /// Notes the times of the user's algorithms, each in its best segment.
  void compare(double best) {
    for (const Algorithm* algorithm : own_.own(subject_.collective())) {
      double least = std::numeric_limits<double>::infinity();
      for (const Candidate& candidate : all_) {
        if (candidate.choice.algorithm == algorithm->name)
          least = std::min(least, candidate.time());
      }
      if (least < std::numeric_limits<double>::infinity()) ratios_[algorithm->name] = least / best;
    }
  }

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
      for (const std::int64_t segment : segments_of(*algorithm, subject_.bytes())) {
        const double time = costs::estimate(*algorithm, problem, bytes, segment, {});
        least = std::min(least, time);
        estimated.push_back({time, {algorithm->name, segment}});
      }
    }
    const auto own = own_.own(problem.collective);
    for (const auto& [time, choice] : estimated) {
      const bool asked_for =
          std::ranges::find(own, choice.algorithm, &Algorithm::name) != own.end();
      if (asked_for || time <= hopeless * least) all_.push_back(candidate(choice));
    }
  }

  Candidate candidate(const Choice& choice) {
    Candidate made;
    made.choice = choice;
    made.seconds = [this, choice](int runs) {
      return measure::timed(
          world_, [&] { runner_->run(choice); }, runs);
    };
    return made;
  }

  World& world_;
  Communicator& communicator_;
  const Case& subject_;
  const Algorithms& own_;
  std::map<std::string, double> ratios_;  // of the user's algorithms
  std::optional<measure::CaseRunner> runner_;
  std::vector<Candidate> all_;
};

/// The rows of a table: for each collective and size the algorithm and segment that took the least
/// time on its slowest rank. What was best for the size before stays while it is nearly as fast, so
/// that noise makes no rows; of others that are equally fast, the registry's first is taken.
/// Collective; all ranks have the same result.
std::vector<selecting::TuningRow> rows_of(World& world, Communicator& communicator,
                                          const std::vector<Collective>& collectives,
                                          const std::vector<std::int64_t>& sizes, int repeats,
                                          const Algorithms& own, std::string& comments,
                                          Progress& progress) {
  std::vector<selecting::TuningRow> rows;
  for (const Collective collective : collectives) {
    std::optional<Choice> last;
    std::int64_t last_bytes = -1;
    for (const std::int64_t bytes : sizes) {
      const std::int64_t unit = own.unit(collective);
      std::int64_t elements = std::max<std::int64_t>(bytes / element_bytes, 1);
      if (elements > unit) elements -= elements % unit;
      const Case subject =
          flat_case(collective, world.size(), elements, Datatype::f32, OpKind::sum, 0);
      if (subject.bytes() == last_bytes) continue;  // sizes below one element per rank
      last_bytes = subject.bytes();
      progress.next(subject.text());
      Candidates candidates(world, communicator, subject, own);
      const Choice best = candidates.best(last, repeats);
      comments += candidates.comments();
      if (best != last) rows.push_back({collective, last ? subject.bytes() : 0, best});
      last = best;
    }
  }
  return rows;
}

/// The processor and the kernel, for readers of the table.
std::string machine() {
  utsname system{};
  const bool known = uname(&system) == 0;
  return fmt::format("{}, {}, {} {}", processor(),
                     counted(std::thread::hardware_concurrency(), "core"),
                     known ? system.sysname : "unknown", known ? system.release : "system");
}

/// Refuses sizes that are all too small for the user's schedules of a collective.
void check_sizes(const std::vector<std::int64_t>& sizes, const std::vector<Collective>& collectives,
                 const Algorithms& own) {
  for (const Collective collective : collectives) {
    const std::int64_t unit = own.unit(collective) * element_bytes;
    if (unit > element_bytes && unit > sizes.back()) {
      refuse(
          fmt::format("--bytes: expected a largest size of at least {}, as the schedules of {} "
                      "serve multiples of {} bytes, found {}",
                      unit, name(collective), unit, sizes.back()));
    }
  }
}

int tune(const TuneCommand& command, Launch& launch) {
  const auto collectives = collectives_named(command.data.collective);
  const auto sizes = command.data.sizes();
  const int ranks = command.data.rank_count(launch.processes());
  std::optional<Algorithms> own;
  const auto prepare = [&] {
    own.emplace(command, ranks);
    check_sizes(sizes, collectives, *own);
  };
  if (launch.processes() > 0) {  // they may be on hosts that differ in files
    on_ranks(launch, 0, {}, [&](World& world) { world.together(prepare); });
  } else {
    prepare();
  }
  const auto registry = std::make_shared<const Registry>(own->registry());
  on_ranks(launch, ranks, command.data.threads(), [&](World& world) {
    Options library = Options::from_environment();
    library.table.clear();
    library.registry = registry;
    Communicator communicator(world.transport(), library);
    const bool speaks = world.rank() == 0;
    Progress progress(static_cast<std::int64_t>(collectives.size() * sizes.size()),
                      command.progress, speaks);
    selecting::TableSection section;
    section.scope = selecting::scope_of(communicator.transport(), communicator.hosts().get());
    section.machine = machine();
    std::string comments;
    section.rows =
        rows_of(world, communicator, collectives, sizes, command.repeats, *own, comments, progress);
    progress.clear();
    world.together([&] {
      if (speaks) write_output(command.output, print(section) + comments);
    });
  });
  return 0;
}

}  // namespace

void add_tune(CommandLine& program) {
  const auto [set, options] = program.add_command(
      "tune",
      "Measure every algorithm in several segments on these ranks, and write a table of the\n"
      "fastest, by collective and size. Under mpirun ranks are its processes, otherwise threads",
      tune);
  const CollectiveOptionSet data(set, options->data);
  data.collective(", or all (the default)");
  data.bytes(":\none, or FIRST:LAST, doubling (default 8:16M)");
  set.add("--output", options->output, "file for the table (default: print it)").form("FILE");
  set.add("--repeats", options->repeats,
          "measurements of each candidate that may be the fastest; the median counts (default 5)")
      .form("N")
      .range(1, 1000);
  data.ranks("threads to run as ranks (default 4); under mpirun, its own");
  data.hosts("threads as if on several hosts, ");
  set.add("--schedule", options->schedules,
          "also tune a schedule of your own (format: lib/schedule/README.md); may be repeated")
      .form("FILE")
      .one_value_each();
  set.add("--msccl", options->msccl, "the same of an algorithm in MSCCL's XML; may be repeated")
      .form("FILE")
      .one_value_each();
  data.registry();
  add_progress(set, options->progress);
  set.footer(
      "BATON_TABLE=FILE uses the table, for ranks on such hosts over the same transport and\n"
      "library. Tables of several may be joined end to end. The machine should be quiet.\n"
      "A row names an algorithm. A program that uses a row of an algorithm of your own has it in\n"
      "Options::registry: algorithm_of(parse(…)) of baton/own_algorithms.hpp, or as LIB.so has "
      "it.\n"
      "\n"
      "Examples:\n"
      "  mpirun -n 2 baton tune --output pair.txt\n"
      "  mpirun -n 2 -x BATON_TABLE=pair.txt program\n"
      "  baton tune all_reduce --ranks 2 --bytes 8:1K --repeats 1\n"
      "  baton tune all_reduce --ranks 3 --schedule my_schedule.txt --registry ./my_algorithms.so");
}

}  // namespace baton::cli::tune
