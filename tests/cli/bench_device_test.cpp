// `baton bench --device` on stand-ins for devices.

#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "baton/error.hpp"
#include "cli/bench/report.hpp"
#include "cli/bench_device/benchmark.hpp"
#include "support/stand_in_fused.hpp"
#include "support/temporary_folder.hpp"

using namespace baton;
using namespace baton::cli;
using namespace baton::cli::bench;
using namespace baton::cli::bench_device;

namespace {

Gpu gpu() {
  const auto device = std::make_shared<support::StandInDevice>();
  return {device, [device] { return device->make_user_stream(); }, [](Stream) {}};
}

BenchOptions quick(const std::string& bytes) {
  BenchOptions options;
  options.device = "cuda";
  options.data.bytes = bytes;
  options.factor = 64;
  options.comparison.seconds = 1e-4;
  options.comparison.pairs = options.comparison.large_pairs = 3;
  return options;
}

struct Outcome {
  int code = 0;
  std::string json;

  int times(const std::string& text) const {
    int times = 0;
    for (std::size_t at = json.find(text); at != std::string::npos; at = json.find(text, at + 1))
      ++times;
    return times;
  }
};

/// What `body` writes as JSON, and rank 0's exit code, on ranks that stand for processes.
Outcome bench_on_ranks(int processes, const BenchOptions& given,
                       const std::function<int(World&, const BenchOptions&)>& body) {
  BenchOptions options = given;
  const support::TemporaryFolder folder;
  options.json = folder / "bench.json";
  Outcome outcome;
  run_as_threads(processes, {}, [&](World& world) {
    const int code = body(world, options);
    if (world.rank() == 0) outcome.code = code;
  });
  std::ifstream stream(options.json);
  outcome.json.assign(std::istreambuf_iterator<char>(stream), {});
  return outcome;
}

std::unique_ptr<PeerLibrary> no_library(Transport&, const Gpu&) {
  throw Error(ErrorCode::unsupported, "expected a peer, found none");
}

/// Ours alone, by threads.
Outcome bench_alone(std::size_t devices, int ranks, const BenchOptions& options) {
  Setup found;
  found.ranks = ranks;
  found.gpus = std::vector<Gpu>(devices, gpu());
  found.peer = no_library;
  return bench_on_ranks(1, options, [&](World& world, const BenchOptions& its) {
    return bench_on(world, found, its);
  });
}

/// Stands in for NCCL: its collectives are ours, by groups of their own.
class StandInLibrary final : public PeerLibrary {
 public:
  using Groups = std::vector<std::unique_ptr<FusedTransport>>;
  StandInLibrary(Transport& host, const Gpu& gpu, Groups& messages, Groups& collectives, bool idle)
      : groups_(std::move(messages[static_cast<std::size_t>(host.rank())])),
        idle_(idle),
        own_(host.split(0, host.rank()), gpu.device,
             std::move(collectives[static_cast<std::size_t>(host.rank())]), Options{}) {}

  std::string name() const override { return "stand-in for NCCL"; }
  std::unique_ptr<FusedTransport> groups(Transport&) override { return std::move(groups_); }
  std::optional<PeerCall> call(const Case& e, const void* input, void* output) override {
    if (e.collective() == Collective::scan) return {};
    const Call call = e.call(ConstData(input, e.input_count(own_.rank()), e.type),
                             Data(output, e.output_count(own_.rank()), e.type));
    return PeerCall{"its " + std::string(baton::name(e.collective())), [this, call](Stream stream) {
                      if (!idle_) own_.enqueue(call, stream);
                    }};
  }

 private:
  std::unique_ptr<FusedTransport> groups_;
  bool idle_;
  StreamCommunicator own_;
};

/// Ours by threads and in groups, beside the stand-in. `idle`: that does nothing.
Outcome bench_beside(int ranks, const BenchOptions& options, bool idle = false) {
  const auto device = std::make_shared<support::StandInDevice>();
  StandInLibrary::Groups messages = support::stand_in_fused(ranks, device),
                         collectives = support::stand_in_fused(ranks, device);
  Setup found;
  found.ranks = ranks;
  found.gpus = {gpu()};
  found.own = {device, [device] { return device->make_user_stream(); }, [](Stream) {}};
  found.way = "stand-in's";
  found.peer = [&](Transport& host, const Gpu& own) {
    return std::make_unique<StandInLibrary>(host, own, messages, collectives, idle);
  };
  return bench_on_ranks(ranks, options, [&](World& world, const BenchOptions& its) {
    Setup own = found;
    if (world.rank() != 0) own.gpus.clear();
    return bench_on(world, own, its);
  });
}

}  // namespace

TEST_CASE("every collective on ranks that share devices is checked and timed") {
  BenchOptions options = quick("4:256");
  options.collectives = {"all"};
  for (const auto& numbers : {std::pair{1, 3}, {2, 3}, {2, 2}, {1, 1}}) {
    const int devices = numbers.first, ranks = numbers.second;
    CAPTURE(devices);
    CAPTURE(ranks);
    const Outcome found = bench_alone(static_cast<std::size_t>(devices), ranks, options);
    CHECK(found.code == 0);
    CHECK(found.times("\"wrong\": 0") == found.times("\"wrong\": "));
    CHECK(found.times("\"collective\": ") == found.times("\"name\": \"baton\""));
    CHECK(found.times("\"collective\": \"scatter\"") > 0);
    CHECK(found.times("\"checked\": 0,") == 0);
    CHECK(found.times("stand-in device") == devices);
    CHECK(found.times("\"why_no_peer_library\": \"expected a peer, found none\"") == 1);
    CHECK(found.times("\"way\": \"threads on ") == found.times("\"name\": "));
  }
}

TEST_CASE("an algorithm can be asked for, and is named") {
  BenchOptions options = quick("64K");
  options.collectives = {"all_reduce"};
  options.comparison.choice = {"ring", 4096};
  const Outcome found = bench_alone(1, 4, options);
  CHECK(found.times("\"algorithm\": \"ring\"") == 1);
  CHECK(found.times("\"segment_bytes\": 4096") == 1);
  // f32 sums: exact values, random ones, and once more after all samples.
  CHECK(found.times("\"checked\": 12") > 0);
}

TEST_CASE("a device that breaks is an error") {
  BenchOptions options = quick("4");
  options.collectives = {"all_reduce"};
  const auto device = std::make_shared<support::StandInDevice>();
  const Gpu broken{device,
                   [device] {
                     device->break_down();
                     return device->make_user_stream();
                   },
                   [](Stream) {}};
  Setup devices;
  devices.ranks = 2;
  devices.gpus = {broken};
  devices.peer = no_library;
  CHECK_THROWS_AS(run_as_threads(1, {}, [&](World& world) { bench_on(world, devices, options); }),
                  Error);
}

TEST_CASE("ours by threads and in groups are compared with what a peer does, where it does") {
  BenchOptions options = quick("4:256");
  options.collectives = {"all"};
  for (const int ranks : {1, 2, 3}) {
    CAPTURE(ranks);
    const Outcome found = bench_beside(ranks, options);
    CHECK(found.code == 0);
    CHECK(found.times("\"peer_library\": \"stand-in for NCCL\"") == 1);
    const int rows = found.times("\"collective\": ");
    CHECK(found.times("\"name\": \"baton\"") == rows);
    CHECK(found.times("\"name\": \"baton in groups\"") == rows);
    CHECK(found.times("\"name\": \"its all_reduce\"") > 0);
    const int scans = found.times("\"collective\": \"scan\"");
    CHECK(scans > 0);
    CHECK(found.times("\"name\": \"its ") == rows - scans);
    CHECK(found.times("\"ours\": \"baton\"") == rows - scans);
    CHECK(found.times("\"ours\": \"baton in groups\"") == rows - scans);
    CHECK(found.times("\"way\": \"stand-in's\"") == 2 * rows - scans);
    CHECK(found.times("\"wrong\": 0") == found.times("\"wrong\": "));
    CHECK(found.times("\"checked\": 0,") == 0);
  }
}

TEST_CASE(
    "where NCCL cannot serve, ours by threads is timed, and a sentence says why it is alone") {
  BenchOptions options = quick("64");
  options.collectives = {"all_reduce"};
  Setup devices;
  devices.ranks = 3;
  devices.gpus = {gpu()};
  devices.own = gpu();
  devices.peer = nccl_library;
  const Outcome found = bench_on_ranks(3, options, [&](World& world, const BenchOptions& its) {
    return bench_on(world, devices, its);
  });
  CHECK(found.code == 0);
  CHECK(found.times("\"name\": \"baton\"") == 1);
  CHECK(found.times("\"name\": ") == 1);
  CHECK(found.times("\"peer_library\": null") == 1);
  // The last of these in a build without NCCL.
  CHECK(found.times("on rank 0: expected a CUDA device, found stand-in device") +
            found.times("expected a build with NCCL, found one without") ==
        1);
}

TEST_CASE("a peer that computes something else is found out") {
  BenchOptions options = quick("64");
  options.collectives = {"all_reduce"};
  CHECK(bench_beside(2, options).code == 0);
  CHECK(bench_beside(2, options, true).code == 1);
  // Averages are rounded in many ways, what only moves is not.
  options.data.op = "avg";
  CHECK(bench_beside(2, options, true).code == 0);
  options.collectives = {"all_gather"};
  CHECK(bench_beside(2, options, true).code == 1);
}

TEST_CASE("each row says which way ours went, and which way the built-in") {
  BenchRow row;
  row.subject = flat_case(Collective::all_reduce, 4, 1024, Datatype::f32, OpKind::sum, 0);
  for (const auto& [name, way] :
       {std::pair("baton", "threads on one GPU"), {"baton in groups", "NCCL, a GPU a rank"}}) {
    measure::Side side;
    side.name = name;
    side.ours = true;
    side.algorithm = "ring";
    side.way = way;
    side.samples = {1e-6, 1e-6, 1e-6};
    row.comparison.sides.push_back(side);
  }
  const std::string alone = bench_lines(row);
  CHECK(alone.find(" 4.10   6.14 threads on one GPU\n") != std::string::npos);
  CHECK(alone.ends_with(" NCCL, a GPU a rank\n"));

  measure::Side theirs;
  theirs.name = theirs.function = "ncclAllReduce";
  theirs.way = "NCCL, a GPU a rank";
  theirs.samples = {2e-6, 2e-6, 2e-6};
  row.comparison.sides.push_back(theirs);
  row.comparison.ratios = ratios_of(row.comparison.sides);
  const std::string compared = bench_lines(row);
  CHECK(compared.find(" threads on one GPU; built-in: NCCL, a GPU a rank\n") != std::string::npos);
  CHECK(compared.ends_with(" NCCL, a GPU a rank\n"));
  CHECK(compared.find(" ncclAllReduce ") != std::string::npos);
  CHECK(compared.find(" 2.00  2.00  2.00 ") != std::string::npos);
}
