#include <fmt/core.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "cli/common/statistics.hpp"
#include "cli/common/text.hpp"
#include "cli/measure/case_runner.hpp"
#include "simulation.hpp"
#include "trace/clock.hpp"
#include "trace/recorder.hpp"

namespace baton::cli::simulate {
namespace {

/// A run is so many calls that it takes about this long, by its prediction.
constexpr double run_us = 30e3;
constexpr int most_calls = 32;
/// Of what takes longer, fewer runs.
constexpr double long_run = 1.5;  // seconds
constexpr int fewest_runs = 3;
/// A run is repeated if the machine beneath took away more than this share of one processor's time.
constexpr double most_taken = 0.04;
constexpr int most_attempts = 4;

constexpr int rounds = 200;
constexpr int tag = 0;
const tracing::Patience patience = tracing::at_most(std::chrono::seconds(20));
/// From when all have come, in which messages of the coming end and links have a pause.
constexpr std::int64_t run_up = 3'000'000;  // ns
/// Before the start, from when on a rank does not sleep any more.
constexpr std::int64_t awake = 150'000;  // ns

/// Lets all ranks begin at one time, by clocks that were compared: a barrier would let them go one
/// after the other. All functions are collective.
class CommonStart {
 public:
  explicit CommonStart(World& world) : world_(world), transport_(world.transport()) {
    tracing::ClockSample sample;
    const std::vector<int>& hosts = world.hosts();
    for (int r = 1; r < world.size() && !world.one_clock(); ++r) {
      // Ranks of a host have one clock.
      const auto first = std::ranges::find(hosts, world.host_of(r));
      if (first - hosts.begin() != r || first == hosts.begin()) continue;
      if (world.rank() == 0)
        tracing::answer_clock(*transport_, r, tag, rounds, tracing::now, patience);
      if (world.rank() == r)
        sample = tracing::compare_clock(*transport_, 0, tag, rounds, tracing::now, patience);
      world.barrier();
    }
    // Of all ranks, so that each finds its host's.
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(world.size()));
    world.gather(std::as_bytes(std::span(&sample.offset, 1)),
                 std::as_writable_bytes(std::span(offsets)));
    const auto own = std::ranges::find(hosts, world.host_of(world.rank()));
    ahead_ = -offsets[static_cast<std::size_t>(own - hosts.begin())];
    error_ = world.max(static_cast<double>(sample.error)) * 1e-9;
  }

  /// Seconds from the common start of `body` on all ranks to the end of the last.
  double timed(const std::function<void()>& body) {
    const auto common = [&] { return tracing::now() - ahead_; };
    const auto begin =
        static_cast<std::int64_t>(world_.max(static_cast<double>(common()))) + run_up;
    for (std::int64_t left = begin - common(); left > 0; left = begin - common()) {
      if (left > awake) {
        std::this_thread::sleep_for(std::chrono::nanoseconds(left - awake));
      } else {
        sched_yield();
      }
    }
    body();
    return world_.max(static_cast<double>(common() - begin)) * 1e-9;
  }
  /// Bound on how far a rank's start is off rank 0's because of its clock, in seconds; of when it
  /// was made.
  double error() const { return error_; }

 private:
  World& world_;
  std::unique_ptr<Transport> transport_;
  std::int64_t ahead_ = 0;  // of this rank's clock, ns
  double error_ = 0;
};

/// One algorithm on one size, predicted and measured; in seconds.
struct Cell {
  Collective collective;
  std::string algorithm;
  std::int64_t segment = 0, bytes = 0;
  int calls = 1;  ///< in each run, one right after the other; times are per call
  double predicted = 0;
  std::vector<double> samples;

  double measured() const { return median(samples); }
  double error() const { return predicted / measured() - 1; }
};

/// Seconds of processor time that a virtual machine's processors have not been given, so far; 0
/// where nobody says.
double processor_time_taken() {
  std::ifstream stat("/proc/stat");
  std::string word;
  double ticks = 0;
  // cpu user nice system idle iowait irq softirq steal
  for (int field = 0; field < 9 && stat >> word; ++field) {
    if (field == 8) ticks = std::atof(word.c_str());
  }
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// The choice with the best prediction, and the one with the best measured time.
struct Pick {
  const Cell* picked;
  const Cell* best;
  bool good() const { return picked->measured() <= 1.1 * best->measured(); }
};

/// One of each collective and size.
std::vector<Pick> picks_of(const std::vector<Cell>& cells) {
  std::map<std::pair<Collective, std::int64_t>, Pick> picks;
  for (const Cell& cell : cells) {
    const auto [found, fresh] =
        picks.try_emplace({cell.collective, cell.bytes}, Pick{&cell, &cell});
    Pick& pick = found->second;
    if (cell.predicted < pick.picked->predicted) pick.picked = &cell;
    if (cell.measured() < pick.best->measured()) pick.best = &cell;
  }
  return mapped(picks, [](const auto& pick) { return pick.second; });
}

Options with_registry(const Setting& setting) {
  Options options = library_options();
  options.registry = std::make_shared<const Registry>(setting.registry);
  return options;
}

/// Predictions beside measurements, of all cells in turn.
class Accuracy {
 public:
  Accuracy(World& world, const Setting& setting, int runs)
      : world_(world),
        setting_(setting),
        runs_(runs),
        communicator_(world.transport(), with_registry(setting)),
        start_(world) {}

  void run(const std::vector<Collective>& collectives, const std::vector<std::int64_t>& sizes) {
    std::vector<Case> cases;
    for (const Collective collective : collectives) {
      for (Case& subject : sized_cases(collective, world_.size(), sizes, setting_.type, OpKind::sum,
                                       setting_.command.data.root_rank())) {
        subject.problem.hosts = communicator_.hosts();
        cases.push_back(std::move(subject));
      }
    }
    // All are predicted before any is measured.
    for (std::size_t e = 0; e < cases.size(); ++e) {
      for (const Algorithm* algorithm : setting_.algorithms(cases[e].problem)) {
        Cell cell{cases[e].collective(), algorithm->name, 0, cases[e].bytes(), 1, 0, {}};
        world_.together([&] {
          if (world_.rank() != 0) return;
          Setting same = setting_;
          const Forecast one = forecast(same, cases[e], *algorithm);
          if (!one.refused.empty()) throw Error(ErrorCode::unsupported, one.refused);
          cell.segment = one.segment;
          same.segment = one.segment;
          same.best_segment = false;
          cell.calls = same.command.calls =
              std::clamp(static_cast<int>(run_us / std::max(one.us(), 1.0)), one.us() < 1e6 ? 2 : 1,
                         most_calls);
          cell.predicted = forecast(same, cases[e], *algorithm).us() * 1e-6;
        });
        cells_.push_back(std::move(cell));
        case_of_.push_back(e);
      }
    }
    // All in turn, again and again: what disturbs the machine for a while does so to one run of
    // each, not to all runs of one.
    Progress progress(static_cast<std::int64_t>(cells_.size()) * runs_, setting_.command.progress,
                      world_.rank() == 0);
    for (int run = 0; run < runs_; ++run) {
      for (std::size_t c = 0; c < cells_.size(); ++c) {
        const Case& subject = cases[case_of_[c]];
        progress.next(fmt::format("{} by {}", subject.text(), cells_[c].algorithm));
        measure(subject, cells_[c]);
      }
    }
  }

  const std::vector<Cell>& cells() const { return cells_; }
  double start_error() const { return start_.error(); }
  int repeated() const { return repeated_; }

 private:
  void measure(const Case& subject, Cell& cell) {
    if (!cell.samples.empty() && cell.samples.front() * cell.calls > long_run &&
        static_cast<int>(cell.samples.size()) >= fewest_runs) {
      return;
    }
    std::optional<measure::CaseRunner> runner;
    world_.together([&] { runner.emplace(communicator_, subject, false); });
    if (cell.samples.empty()) {  // what the prediction was made for, on all ranks
      cell.segment = static_cast<std::int64_t>(world_.max(static_cast<double>(cell.segment)));
      cell.calls = static_cast<int>(world_.max(cell.calls));
    }
    const Choice choice{cell.algorithm, cell.segment};
    start_.timed([&] { runner->run(choice); });  // plans it, and touches its memory
    for (int attempt = 0;; ++attempt) {
      const double taken_before = processor_time_taken();
      const double seconds = start_.timed([&] {
        for (int i = 0; i < cell.calls; ++i) runner->run(choice);
      });
      const double taken = world_.max(processor_time_taken() - taken_before);
      if (taken <= most_taken * seconds || attempt == most_attempts) {
        cell.samples.push_back(seconds / cell.calls);
        return;
      }
      ++repeated_;
    }
  }

  World& world_;
  const Setting& setting_;
  int runs_;
  Communicator communicator_;
  CommonStart start_;
  std::vector<Cell> cells_;
  std::vector<std::size_t> case_of_;
  int repeated_ = 0;
};

void print_table(const std::vector<Cell>& cells) {
  const Table table({{"collective", -15},
                     {"algorithm", -20},
                     {"size", 10},
                     {"segment", 9},
                     {"predicted", 12},
                     {"measured", 12},
                     {"+-", 10},
                     {"error", 8}});
  fmt::print("{}", table.head());
  for (const Cell& cell : cells) {
    fmt::print("{}", table.line(name(cell.collective), cell.algorithm, human_bytes(cell.bytes),
                                cell.segment > 0 ? human_bytes(cell.segment) : "-",
                                human_time(cell.predicted * 1e6), human_time(cell.measured() * 1e6),
                                human_time(spread(cell.samples) * 1e6),
                                fmt::format("{:+.1f}%", cell.error() * 100)));
  }
}

Json json(const Cell& cell) {
  return Json::object({{"collective", name(cell.collective)},
                       {"algorithm", cell.algorithm},
                       {"segment_bytes", cell.segment},
                       {"bytes", cell.bytes},
                       {"calls", cell.calls},
                       {"predicted_us", cell.predicted * 1e6},
                       {"measured_us", cell.measured() * 1e6},
                       {"error", cell.error()},
                       {"samples_us", in_microseconds(cell.samples)}});
}

}  // namespace

int measured(const SimulateCommand& command, Launch& launch) {
  on_ranks(launch, command.ranks(), {}, [&](World& world) {
    std::optional<Setting> prepared;
    world.together([&] {
      prepared.emplace(command);
      prepared->command.window = library_options().window;
    });
    const Setting& setting = *prepared;
    Accuracy accuracy(world, setting, setting.command.measure);
    accuracy.run(collectives_named(setting.command.data.collective),
                 setting.command.data.sizes(setting.command.factor));
    if (world.rank() != 0) return;
    const auto& cells = accuracy.cells();
    const auto distances = mapped(cells, [](const Cell& cell) { return std::abs(cell.error()); });
    const auto picks = picks_of(cells);
    const auto good = std::ranges::count_if(picks, &Pick::good);
    if (setting.command.json) {
      print(Json::object({{"network", setting.network.name},
                          {"parameters", summary(setting.network)},
                          {"transport", launch.transport()},
                          {"ranks", world.size()},
                          {"hosts", world.host_count()},
                          {"runs", setting.command.measure},
                          {"median_error", median(distances)},
                          {"error_95", quantile(distances, 0.95)},
                          {"picks", picks.size()},
                          {"good_picks", good},
                          {"rows", mapped(cells, json)}}));
      return;
    }
    fmt::print(
        "# {} on {}, {}; per call of 1 to {} in a row; medians of {} from a common start (to "
        "{}),\n"
        "# +- half the distance of the quartiles\n# {}\n",
        counted(world.size(), "rank"), counted(world.host_count(), "host"), launch.transport(),
        most_calls, counted(setting.command.measure, "run"),
        human_time(accuracy.start_error() * 1e6), summary(setting.network));
    print_table(cells);
    if (accuracy.repeated() > 0) {
      fmt::print("# {} repeated, during which the machine beneath took processors away\n",
                 counted(accuracy.repeated(), "run"));
    }
    fmt::print("# |error|: median {:.1f} %, 95th percentile {:.1f} %, of {}\n",
               median(distances) * 100, quantile(distances, 0.95) * 100,
               counted(cells.size(), "cell"));
    fmt::print(
        "# the algorithm that is predicted to be the fastest takes at most 10 % more than the "
        "fastest in {} of {} cases\n",
        good, picks.size());
    for (const Pick& pick : picks) {
      if (pick.good()) continue;
      fmt::print("#   not in {} of {}: {} takes {:.2f} times what {} does\n",
                 name(pick.picked->collective), human_bytes(pick.picked->bytes),
                 pick.picked->algorithm, pick.picked->measured() / pick.best->measured(),
                 pick.best->algorithm);
    }
  });
  return 0;
}

}  // namespace baton::cli::simulate
