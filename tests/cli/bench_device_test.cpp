// `baton bench --device` on stand-ins for devices.

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "baton/error.hpp"
#include "cli/bench.hpp"
#include "support/stand_in.hpp"

using namespace baton;
using namespace baton::cli;

namespace {

Card card() {
  const auto device = std::make_shared<support::StandInDevice>();
  return {device, [device] { return device->make_user_stream(); }, [](Stream) {}};
}

BenchOptions quick(const std::string& bytes) {
  BenchOptions options;
  options.device = "cuda";
  options.bytes = bytes;
  options.factor = 64;
  options.contest.seconds = 1e-4;
  options.contest.pairs = options.contest.large_pairs = 3;
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

Outcome bench(std::size_t devices, int ranks, BenchOptions options) {
  const std::vector<Card> cards(devices, card());
  const auto file = std::filesystem::temp_directory_path() /
                    ("bench_device_" + std::to_string(getpid()) + ".json");
  options.json = file;
  int count = 0;
  char** none = nullptr;
  const auto session = Session::start(count, none);
  Outcome outcome;
  outcome.code = bench_on(cards, ranks, options, *session);
  std::ifstream stream(file);
  outcome.json.assign(std::istreambuf_iterator<char>(stream), {});
  std::filesystem::remove(file);
  return outcome;
}

}  // namespace

TEST_CASE("every collective on ranks that share devices is checked and timed") {
  BenchOptions options = quick("4:256");
  options.collectives = {"all"};
  for (const auto& [devices, ranks] : {std::pair{1, 3}, {2, 3}, {2, 2}, {1, 1}}) {
    CAPTURE(devices);
    CAPTURE(ranks);
    const Outcome found = bench(static_cast<std::size_t>(devices), ranks, options);
    CHECK(found.code == 0);
    CHECK(found.times("\"wrong\": 0") == found.times("\"wrong\": "));
    CHECK(found.times("\"collective\": ") == found.times("\"name\": \"baton\""));
    CHECK(found.times("\"collective\": \"scatter\"") > 0);
    CHECK(found.times("\"checked\": 0,") == 0);
    CHECK(found.times("stand-in device") == devices);
  }
}

TEST_CASE("an algorithm can be asked for, and is named") {
  BenchOptions options = quick("64K");
  options.collectives = {"all_reduce"};
  options.contest.choice = {"ring", 4096};
  const Outcome found = bench(1, 4, options);
  CHECK(found.times("\"algorithm\": \"ring\"") == 1);
  CHECK(found.times("\"segment_bytes\": 4096") == 1);
  // f32 sums: exact values, random ones, and once more after all samples.
  CHECK(found.times("\"checked\": 12") > 0);
}

TEST_CASE("a device that breaks is an error") {
  BenchOptions options = quick("4");
  options.collectives = {"all_reduce"};
  const auto device = std::make_shared<support::StandInDevice>();
  const Card broken{device,
                    [device] {
                      device->break_down();
                      return device->make_user_stream();
                    },
                    [](Stream) {}};
  int count = 0;
  char** none = nullptr;
  const auto session = Session::start(count, none);
  CHECK_THROWS_AS(bench_on({broken}, 2, options, *session), Error);
}
