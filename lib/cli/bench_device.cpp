#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "bench.hpp"
#include "bench_table.hpp"
#include "clock.hpp"
#include "device_side.hpp"
#include "jobs.hpp"
#include "machine.hpp"
#include "text.hpp"

namespace baton::cli {
namespace {

/// One rank's part of a contest with a rival: ours by its messages, and its own.
class Rivalry {
 public:
  /// Throws on all ranks what fails on any.
  Rivalry(World& world, const BenchDevices& devices)
      : world_(world), devices_(devices), host_(world.transport()) {
    std::unique_ptr<FusedTransport> groups;
    world.together([&] { rival_ = devices.rival(*host_, devices.own); });
    world.together([&] { groups = rival_->groups(*host_); });
    world.together([&] {
      ours_.emplace(world, devices.own,
                    StreamCommunicator(host_->split(0, world.rank()), devices.own.device,
                                       std::move(groups), library_options(false)));
    });
  }

  std::string name() const { return rival_->name(); }
  DeviceSide& ours() { return *ours_; }

  /// The rival's own, checked on exact values; nothing if it has none.
  std::optional<Side> theirs(const Exercise& exercise) {
    std::optional<RivalCall> call;
    trial_.reset();
    world_.together([&] {
      trial_.emplace(ours_->communicator(), devices_.own, exercise);
      call = rival_->call(exercise, trial_->device_input(), trial_->device_output());
    });
    if (!call) return {};
    Contestant side{call->name, call->name, false, {}, {}, {}, {}, devices_.way};
    Checker checker(world_, exercise, *trial_);
    // How it rounds an average is its own affair.
    if (!reducing(exercise.collective()) || exercise.op != OpKind::avg) {
      const auto run = [&] {
        trial_->upload();
        trial_->run(call->give, 1);
        trial_->download();
      };
      checker.check(side.verdict, run, checker.reference(checker.fills()[0]));
    }
    const auto seconds = [this, give = call->give](int calls) {
      return timed(
          world_, [&] { trial_->run(give, calls); }, 1);
    };
    return Side{std::move(side), seconds};
  }

 private:
  World& world_;
  const BenchDevices& devices_;
  std::unique_ptr<Transport> host_;
  std::unique_ptr<Rival> rival_;
  std::optional<DeviceSide> ours_;
  std::optional<DeviceTrial> trial_;
};

/// One rank's part of the benchmark. Rank 0 prints.
class DeviceBenchmark {
 public:
  DeviceBenchmark(World& world, const BenchDevices& devices, const BenchOptions& options,
                  std::vector<Exercise> exercises)
      : world_(world),
        devices_(devices),
        options_(options),
        exercises_(std::move(exercises)),
        table_(world.rank() == 0, devices.ranks, exercises_.size(), options.progress) {
    options_.contest.equal_calls = false;
    try {
      rivalry_.emplace(world, devices);
    } catch (const Error& error) {
      why_alone_ = error.what();
    }
    world.together([&] {
      if (world.rank() == 0) threads_.emplace(devices.cards, devices.ranks);
    });
  }

  /// The exit code.
  int run(std::ofstream& json) {
    hosts_ = world_.texts(host_name());
    table_.print(head());
    for (const Exercise& exercise : exercises_) table_.add({exercise, contest(exercise), 0});
    table_.close();
    if (json.is_open()) write_json(json, options_.json, result());
    return world_.max(table_.wrong() > 0 ? 1 : 0) > 0 ? 1 : 0;
  }

 private:
  Contest contest(const Exercise& exercise) {
    std::vector<Side> sides;
    const Choice& choice = options_.contest.choice;
    Choice chosen;
    world_.together([&] {
      if (threads_) chosen = threads_->begin(exercise, choice);
    });
    sides.push_back({ours("baton", chosen, threads_way()), [&](int calls) {
                       double seconds = 0;
                       world_.together([&] {
                         if (threads_) seconds = threads_->seconds(calls);
                       });
                       return world_.max(seconds);
                     }});
    if (rivalry_) {
      DeviceSide& side = rivalry_->ours();
      chosen = side.begin(exercise, choice);
      sides.push_back({ours("baton in groups", chosen, devices_.way),
                       [&side](int calls) { return side.seconds(calls); }});
      if (auto theirs = rivalry_->theirs(exercise)) sides.push_back(std::move(*theirs));
    }
    int round = 0;
    const auto before = [&] { table_.show(fmt::format("{}, round {}", exercise.text(), ++round)); };
    Contest found = in_turn(world_, std::move(sides), {}, exercise, options_.contest, before);
    world_.together([&] {
      if (threads_) found.sides[0].verdict = threads_->end();
    });
    if (rivalry_) found.sides[1].verdict = rivalry_->ours().end();
    return found;
  }

  static Contestant ours(const char* name, const Choice& chosen, const std::string& way) {
    return {name, "", true, chosen.algorithm, chosen.segment.value_or(0),
            {},   {}, way};
  }

  std::string threads_way() const {
    const std::size_t devices = devices_.cards.size();
    return devices == 1 ? "threads on one GPU" : fmt::format("threads on {} GPUs", devices);
  }

  std::string head() const {
    std::string text =
        fmt::format("# baton {}, {} on {}\n", BATON_VERSION, counted(devices_.ranks, "rank"),
                    counted(static_cast<std::int64_t>(devices_.cards.size()), "GPU"));
    for (const Card& card : devices_.cards) text += fmt::format("# {}\n", card.device->name());
    text += rivalry_ ? fmt::format("# beside {}: {}\n", rivalry_->name(), devices_.way)
                     : fmt::format("# NCCL is not timed beside ours: {}\n", why_alone_);
    return text +
           fmt::format(
               "# {} {}; size: of the whole vector; times: of the slowest rank, per call, medians "
               "of {} samples ({} from {} on), +-\n"
               "# half the distance of the quartiles; a sample: calls back to back in a stream, "
               "until the stream has done them;\n"
               "# way: of ours, as threads of one process or by groups of NCCL's sends and "
               "receives among processes, and of the built-in\n",
               options_.type, options_.op, options_.contest.pairs, options_.contest.large_pairs,
               human_bytes(options_.contest.large)) +
           bench_head(LastColumn::way);
  }

  Json result() const {
    std::vector<Json> devices, hosts, own, nccl;
    for (const Card& card : devices_.cards) devices.emplace_back(card.device->name());
    for (const std::string& host : hosts_) hosts.emplace_back(host);
    for (const std::string& variable : own_environment()) own.emplace_back(variable);
    for (const std::string& variable : nccl_environment()) nccl.emplace_back(variable);
    return Json::object(
        {{"baton", BATON_VERSION},
         {"compiler", compiler()},
         {"processor", processor()},
         {"ranks", devices_.ranks},
         {"devices", Json::array(devices)},
         {"rival", rivalry_ ? Json(rivalry_->name()) : Json::null()},
         {"why_no_rival", rivalry_ ? Json::null() : Json(why_alone_)},
         {"hosts", Json::array(hosts)},
         {"environment", Json::object({{"ours", Json::array(own)}, {"nccl", Json::array(nccl)}})},
         {"pairs", options_.contest.pairs},
         {"large_pairs", options_.contest.large_pairs},
         {"large_bytes", options_.contest.large},
         {"sample_ms", options_.sample_ms},
         {"checked", table_.checks()},
         {"wrong", table_.wrong()},
         {"rows", Json::array(table_.json())}});
  }

  World& world_;
  const BenchDevices& devices_;
  BenchOptions options_;
  std::vector<Exercise> exercises_;
  BenchTable table_;
  std::optional<Rivalry> rivalry_;
  std::string why_alone_;
  std::optional<DeviceThreads> threads_;  // on rank 0
  std::vector<std::string> hosts_;
};

/// This rank's number among those of its host, and whether any host has more ranks than devices.
struct Place {
  int local = 0;
  bool shares = false;
};
Place place_of(World& world, int devices) {
  const std::vector<int>& hosts = world.hosts();
  const auto own = hosts.begin() + world.rank();
  const auto ranks = std::count(hosts.begin(), hosts.end(), *own);
  return {static_cast<int>(std::count(hosts.begin(), own, *own)),
          world.max(ranks > devices ? 1 : 0) > 0};
}

int cuda_cards_here() {
  int devices = 0;
  try {
    devices = cuda_cards();
  } catch (const Error& error) {
    throw Error(error.code, fmt::format("--device cuda: {}", error.what()));
  }
  if (devices == 0) {
    throw Error(ErrorCode::unsupported, "--device cuda: expected a CUDA device, found none");
  }
  return devices;
}

BenchDevices cuda_devices_for(World& world, bool processes, const BenchOptions& options) {
  BenchDevices found;
  int devices = 0;
  world.together([&] { devices = cuda_cards_here(); });
  found.ranks = processes ? world.size() : options.ranks > 0 ? options.ranks : std::max(devices, 2);
  world.together([&] {
    for (int i = 0; world.rank() == 0 && i < std::min(devices, found.ranks); ++i) {
      found.cards.push_back(cuda_card(i));
    }
  });
  if (!processes) {
    found.rival = [ranks = found.ranks](Transport&, const Card&) -> std::unique_ptr<Rival> {
      throw Error(ErrorCode::unsupported,
                  fmt::format("expected a process for each rank (mpirun -n {} baton bench --device "
                              "cuda), found threads of one",
                              ranks));
    };
    return found;
  }
  const Place place = place_of(world, devices);
  world.together([&] { found.own = cuda_card(place.local % devices); });
  found.rival = nccl_rival;
  found.way =
      place.shares ? "NCCL over its network, several ranks on one GPU" : "NCCL, a GPU a rank";
  // Before NCCL is first called: it takes ranks on one GPU only for those of different hosts.
  if (place.shares) setenv("NCCL_HOSTID", fmt::format("baton-{}", world.rank()).c_str(), 0);
  return found;
}

}  // namespace

int bench_on(World& world, const BenchDevices& devices, const BenchOptions& options) {
  std::vector<Exercise> exercises;
  std::ofstream json;
  world.together([&] {
    exercises = exercises_for(options, devices.ranks);
    if (world.rank() == 0 && !options.json.empty()) json = json_file(options.json);
  });
  return DeviceBenchmark(world, devices, options, std::move(exercises)).run(json);
}

int bench_device(const BenchOptions& options, Launch& launch) {
  if (options.device != "cuda") {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--device: expected cuda, found \"{}\"", options.device));
  }
  const bool processes = launch.processes() > 0;
  if (processes && options.ranks > 0) {
    throw Error(ErrorCode::invalid_argument,
                "--ranks: expected ranks that are threads, found processes of MPI");
  }
  int code = 0;
  on_ranks(launch, 1, {}, [&](World& world) {
    code = bench_on(world, cuda_devices_for(world, processes, options), options);
  });
  return code;
}

}  // namespace baton::cli
