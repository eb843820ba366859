#include "benchmark.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "baton/version.hpp"
#include "cli/bench/report.hpp"
#include "cli/common/machine.hpp"
#include "cli/common/text.hpp"
#include "device_side.hpp"

namespace baton::cli::bench_device {
namespace {

using bench::BenchOptions;
using bench::Comparison;
using bench::LastColumn;
using measure::Side;

/// One rank's part of a comparison with a peer library: ours by its messages, and its own.
class PeerSides {
 public:
  /// Throws on all ranks what fails on any.
  PeerSides(World& world, const Setup& setup)
      : world_(world), setup_(setup), host_(world.transport()) {
    std::unique_ptr<FusedTransport> groups;
    world.together([&] { peer_ = setup.peer(*host_, setup.own); });
    world.together([&] { groups = peer_->groups(*host_); });
    world.together([&] {
      ours_.emplace(world, setup.own,
                    StreamCommunicator(host_->split(0, world.rank()), setup.own.device,
                                       std::move(groups), library_options()));
    });
  }

  std::string name() const { return peer_->name(); }
  DeviceSide& ours() { return *ours_; }

  /// The peer library's own, checked on exact values; nothing if it has none.
  std::optional<Side> theirs(const Case& subject) {
    std::optional<PeerCall> call;
    runner_.reset();
    world_.together([&] {
      runner_.emplace(ours_->communicator(), setup_.own, subject);
      call = peer_->call(subject, runner_->device_input(), runner_->device_output());
    });
    if (!call) return {};
    Side side;
    side.name = side.function = call->name;
    side.way = setup_.way;
    measure::Checker checker(world_, subject, *runner_);
    // Libraries round averages in their own ways.
    if (!reducing(subject.collective()) || subject.op != OpKind::avg) {
      const auto run = [&] { runner_->run_on_host(call->give); };
      checker.check(side.check, run, checker.reference(checker.fills()[0]));
    }
    side.seconds = [this, give = call->give](int calls) {
      return measure::timed(
          world_, [&] { runner_->run(give, calls); }, 1);
    };
    return side;
  }

 private:
  World& world_;
  const Setup& setup_;
  std::unique_ptr<Transport> host_;
  std::unique_ptr<PeerLibrary> peer_;
  std::optional<DeviceSide> ours_;
  std::optional<DeviceCaseRunner> runner_;
};

/// One rank's part of the benchmark. Rank 0 prints.
class DeviceBenchmark {
 public:
  DeviceBenchmark(World& world, const Setup& setup, const BenchOptions& options,
                  std::vector<Case> cases, std::optional<bench::JsonFile> json)
      : world_(world),
        setup_(setup),
        options_(options),
        cases_(std::move(cases)),
        json_(std::move(json)),
        report_(world.rank() == 0, setup.ranks, cases_.size(), options.progress) {
    options_.comparison.equal_calls = false;
    try {
      peer_sides_.emplace(world, setup);
    } catch (const Error& error) {
      why_alone_ = error.what();
    }
    world.together([&] {
      if (world.rank() == 0) threads_.emplace(setup.gpus, setup.ranks);
    });
  }

  /// The exit code.
  int run() {
    hosts_ = world_.texts(host_name());
    report_.print(head());
    for (const Case& subject : cases_) report_.add({subject, compare(subject), 0});
    report_.close();
    if (json_) json_->write(result());
    return world_.max(report_.wrong() > 0 ? 1 : 0) > 0 ? 1 : 0;
  }

 private:
  Comparison compare(const Case& subject) {
    std::vector<Side> sides;
    const Choice& choice = options_.comparison.choice;
    Choice chosen;
    world_.together([&] {
      if (!threads_) return;
      chosen = threads_->on_all([&](DeviceSide& side) { return side.begin(subject, choice); });
    });
    sides.push_back(ours("baton", chosen, threads_way(), [&](int calls) {
      double seconds = 0;
      world_.together([&] {
        if (!threads_) return;
        seconds = threads_->on_all([&](DeviceSide& side) { return side.seconds(calls); });
      });
      return world_.max(seconds);
    }));
    if (peer_sides_) {
      DeviceSide& side = peer_sides_->ours();
      chosen = side.begin(subject, choice);
      sides.push_back(ours("baton in groups", chosen, setup_.way,
                           [&side](int calls) { return side.seconds(calls); }));
      if (auto theirs = peer_sides_->theirs(subject)) sides.push_back(std::move(*theirs));
    }
    int round = 0;
    Comparison found = bench::compare(std::move(sides), {}, subject, options_.comparison, [&] {
      report_.show_progress(fmt::format("{}, round {}", subject.text(), ++round));
    });
    world_.together([&] {
      if (!threads_) return;
      found.sides[0].check = threads_->on_all([](DeviceSide& side) { return side.end(); });
    });
    if (peer_sides_) found.sides[1].check = peer_sides_->ours().end();
    return found;
  }

  static Side ours(const char* name, const Choice& chosen, const std::string& way,
                   measure::TimedCalls seconds) {
    Side side;
    side.name = name;
    side.ours = true;
    side.algorithm = chosen.algorithm;
    side.segment = chosen.segment.value_or(0);
    side.way = way;
    side.seconds = std::move(seconds);
    return side;
  }

  std::string threads_way() const {
    const std::size_t gpus = setup_.gpus.size();
    return gpus == 1 ? "threads on one GPU" : fmt::format("threads on {} GPUs", gpus);
  }

  std::string head() const {
    std::string text =
        fmt::format("# baton {}, {} on {}\n", version(), counted(setup_.ranks, "rank"),
                    counted(setup_.gpus.size(), "GPU"));
    for (const Gpu& gpu : setup_.gpus) text += fmt::format("# {}\n", gpu.device->name());
    text += peer_sides_ ? fmt::format("# beside {}: {}\n", peer_sides_->name(), setup_.way)
                        : fmt::format("# NCCL is not timed beside ours: {}\n", why_alone_);
    return text +
           fmt::format(
               "# {} {}; size: of the whole vector; times: of the slowest rank, per call, medians "
               "of {} samples ({} from {} on), +-\n"
               "# half the distance of the quartiles; a sample: calls back to back in a stream, "
               "until the stream has done them;\n"
               "# way: of ours, as threads of one process or by groups of NCCL's sends and "
               "receives among processes, and of the built-in\n",
               name(options_.data.datatype()), name(options_.data.op_kind()),
               options_.comparison.pairs, options_.comparison.large_pairs,
               human_bytes(options_.comparison.large)) +
           bench::bench_head(LastColumn::way);
  }

  Json result() const {
    const auto name = [](const Gpu& gpu) { return gpu.device->name(); };
    return Json::object(
        {{"baton", version()},
         {"compiler", compiler()},
         {"processor", processor()},
         {"ranks", setup_.ranks},
         {"devices", mapped(setup_.gpus, name)},
         {"peer_library", peer_sides_ ? Json(peer_sides_->name()) : Json()},
         {"why_no_peer_library", peer_sides_ ? Json() : Json(why_alone_)},
         {"hosts", hosts_},
         {"environment", Json::object({{"ours", own_environment()}, {"nccl", nccl_environment()}})},
         {"pairs", options_.comparison.pairs},
         {"large_pairs", options_.comparison.large_pairs},
         {"large_bytes", options_.comparison.large},
         {"sample_ms", options_.sample_ms},
         {"checked", report_.checks()},
         {"wrong", report_.wrong()},
         {"rows", json_of(report_.rows())}});
  }

  World& world_;
  const Setup& setup_;
  BenchOptions options_;
  std::vector<Case> cases_;
  std::optional<bench::JsonFile> json_;  // rank 0's
  bench::Report report_;
  std::optional<PeerSides> peer_sides_;
  std::string why_alone_;
  std::optional<DeviceThreads> threads_;  // on rank 0
  std::vector<std::string> hosts_;
};

}  // namespace

int bench_on(World& world, const Setup& setup, const BenchOptions& options) {
  std::vector<Case> cases;
  std::optional<bench::JsonFile> json;
  world.together([&] {
    cases = bench::cases_for(options, setup.ranks);
    if (world.rank() == 0 && !options.json.empty()) json.emplace(options.json);
  });
  return DeviceBenchmark(world, setup, options, std::move(cases), std::move(json)).run();
}

}  // namespace baton::cli::bench_device
