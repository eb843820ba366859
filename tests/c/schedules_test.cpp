#include <algorithm>
#include <filesystem>
#include <fstream>

#include "support.hpp"
#include "support/temporary_folder.hpp"

using namespace c_support;

namespace {

/// Schedules for the length of a scope.
class Schedules {
 public:
  static Schedules parsed(const std::string& text) {
    Schedules made;
    OK(baton_schedules_parse(text.c_str(), "given.txt", &made.own_));
    return made;
  }
  static Schedules generated(const char* collective, const char* algorithm, int ranks,
                             std::int64_t count, int root = 0, std::int64_t segment = 0) {
    Schedules made;
    OK(baton_schedules_generate(collective, algorithm, ranks, count, root, segment, &made.own_));
    return made;
  }
  Schedules(Schedules&& other) noexcept : own_(std::exchange(other.own_, nullptr)) {}
  ~Schedules() { baton_schedules_destroy(own_); }
  operator const baton_schedules*() const { return own_; }  // NOLINT: they are schedules

  std::string text(int index = -1) const {
    return text_of([&](auto... room) { return baton_schedules_print(own_, index, room...); });
  }

 private:
  Schedules() = default;
  baton_schedules* own_ = nullptr;
};

std::string replaced(std::string text, const std::string& part, const std::string& other) {
  const auto at = text.find(part);
  REQUIRE(at != std::string::npos);
  return text.replace(at, part.size(), other);
}

}  // namespace

TEST_CASE("schedules are generated, printed, read back and counted") {
  const Schedules ring = Schedules::generated("all_reduce", "ring", 3, 6);
  CHECK(baton_schedules_count(ring) == 3);
  CHECK(support::holds(ring.text(1), {"all_reduce", "ring"}));
  CHECK(ring.text() == ring.text(0) + ring.text(1) + ring.text(2));
  CHECK(Schedules::parsed(ring.text()).text() == ring.text());
  CHECK(Schedules::generated("all_reduce", "ring", 3, 6, 0, 1).text() != ring.text());
  CHECK(Schedules::generated("broadcast", "chain", 3, 6, 1).text() !=
        Schedules::generated("broadcast", "chain", 3, 6, 2).text());
  CHECK(baton_schedules_count(Schedules::generated("barrier", "dissemination", 3, 0)) == 3);

  char cut[8];
  std::size_t length = 0;
  OK(baton_schedules_print(ring, 0, cut, sizeof cut, &length));
  CHECK(length == ring.text(0).size());
  CHECK(std::string(cut) == ring.text(0).substr(0, 7));
  for (const int index : {-2, 3})
    FAILS(baton_schedules_print(ring, index, nullptr, 0, nullptr), BATON_INVALID_ARGUMENT,
          {"expected a schedule from 0 to 2, or -1", "found " + std::to_string(index)});
  FAILS(baton_schedules_print(ring, 0, nullptr, 4, nullptr), BATON_INVALID_ARGUMENT,
        {"an address for the text"});
}

TEST_CASE("wrong schedules are refused") {
  baton_schedules* none = nullptr;
  FAILS(baton_schedules_parse("baton", "given.txt", &none), BATON_INVALID_ARGUMENT,
        {"given.txt:1"});
  FAILS(baton_schedules_parse("baton", nullptr, &none), BATON_INVALID_ARGUMENT, {"schedule:1"});
  CHECK(none == nullptr);
  const auto generate = [&](const char* collective, const char* algorithm, int ranks,
                            std::int64_t count, int root, std::int64_t segment) {
    return baton_schedules_generate(collective, algorithm, ranks, count, root, segment, &none);
  };
  FAILS(generate("reduce_all", "ring", 2, 1, 0, 0), BATON_INVALID_ARGUMENT, {"\"reduce_all\""});
  FAILS(generate("all_reduce", "rong", 2, 1, 0, 0), BATON_INVALID_ARGUMENT, {"\"rong\""});
  FAILS(generate("all_reduce", "ring", 0, 1, 0, 0), BATON_INVALID_ARGUMENT, {"1 rank, found 0"});
  FAILS(generate("all_reduce", "ring", 2, -1, 0, 0), BATON_INVALID_ARGUMENT, {"found -1 and 0"});
  FAILS(generate("all_reduce", "ring", 2, 1, 0, -1), BATON_INVALID_ARGUMENT, {"found 1 and -1"});
  for (const int root : {-1, 2})
    FAILS(generate("broadcast", "chain", 2, 1, root, 0), BATON_INVALID_ARGUMENT,
          {"root from 0 to 1, found " + std::to_string(root)});
  FAILS(generate("all_reduce", "hierarchical", 4, 8, 0, 0), BATON_INVALID_ARGUMENT,
        {"all_reduce: hierarchical", "hosts"});
}

TEST_CASE("verify proves, and names flaws") {
  const Schedules ring = Schedules::generated("all_reduce", "ring", 3, 6);
  baton_proof proof{sizeof(baton_proof), -1, -1, -1};
  char sentence[1000] = "?";
  OK(baton_verify(ring, &proof, sentence, sizeof sentence, nullptr));
  CHECK(proof.findings == 0);
  CHECK(proof.rounds == 4);
  CHECK(proof.messages == 12);
  CHECK(std::string(sentence).empty());
  OK(baton_verify(ring, &proof, nullptr, 0, nullptr));

  const Schedules wrong = Schedules::parsed(replaced(ring.text(), "send 1 ", "send 2 "));
  OK(baton_verify(wrong, &proof, sentence, sizeof sentence, nullptr));
  CHECK(proof.findings > 0);
  CHECK(std::count(sentence, sentence + std::string(sentence).size(), '\n') == proof.findings);
  FAILS(baton_verify(ring, nullptr, nullptr, 0, nullptr), BATON_INVALID_ARGUMENT,
        {"expected a baton_proof, found NULL"});
  const Schedules mixed = Schedules::parsed(ring.text(0) + ring.text(0) + ring.text(2));
  FAILS(baton_verify(mixed, &proof, nullptr, 0, nullptr), BATON_INVALID_ARGUMENT, {});
}

TEST_CASE("a walk-through is a table, whose characters are whole where it is cut") {
  const Schedules scatter = Schedules::generated("scatter", "linear", 2, 2);
  const std::string table =
      text_of([&](auto... room) { return baton_walk_through(scatter, room...); });
  CHECK(support::holds(table, {"before", "after round"}));
  const auto dot = table.find("\u00b7");  // two bytes
  REQUIRE(dot != std::string::npos);
  std::vector<char> cut(dot + 2);
  OK(baton_walk_through(scatter, cut.data(), cut.size(), nullptr));
  CHECK(std::string(cut.data()) == table.substr(0, dot));
  const Schedules large = Schedules::generated("all_reduce", "ring", 2, 1 << 30);
  FAILS(baton_walk_through(large, nullptr, 0, nullptr), BATON_INVALID_ARGUMENT,
        {"a walk-through expects buffers", "found 1073741824"});
}

TEST_CASE("a schedule from text runs") {
  const Schedules ring = Schedules::parsed(Schedules::generated("all_reduce", "ring", 3, 6).text());
  const Schedules short_of_one = Schedules::parsed(ring.text(0) + ring.text(1));
  on_ranks(3, [&](baton_communicator* world) {
    std::vector<float> x(6, 1.0f + static_cast<float>(baton_rank(world))), y(6);
    OK(baton_run_schedules(world, ring, x.data(), 6, y.data(), 6, BATON_F32, BATON_SUM));
    CHECK(y == std::vector<float>(6, 6));
    FAILS(baton_run_schedules(world, ring, x.data(), 5, y.data(), 6, BATON_F32, BATON_SUM),
          BATON_INVALID_ARGUMENT, {"6", "5"});
    FAILS(baton_run_schedules(world, ring, x.data(), 6, y.data(), 6, 55, BATON_SUM),
          BATON_INVALID_ARGUMENT, {"found 55"});
    FAILS(baton_run_schedules(world, ring, x.data(), 6, y.data(), 6, BATON_F32, 55),
          BATON_INVALID_ARGUMENT, {"found 55"});
    FAILS(baton_run_schedules(world, nullptr, x.data(), 6, y.data(), 6, BATON_F32, BATON_SUM),
          BATON_INVALID_ARGUMENT, {"expected schedules, found NULL"});
    if (baton_rank(world) == 2)
      FAILS(
          baton_run_schedules(world, short_of_one, x.data(), 6, y.data(), 6, BATON_F32, BATON_SUM),
          BATON_INVALID_ARGUMENT, {"expected a schedule of rank 2, found none"});
  });
}

TEST_CASE("a simulation predicts times, bytes and every step") {
  const Schedules ring = Schedules::generated("all_reduce", "ring", 4, 4000);
  baton_prediction prediction{sizeof(baton_prediction), 0, 0, 0, 0, 0};
  std::int64_t finish[4] = {};
  baton_timeline* timeline = nullptr;
  OK(baton_simulate(ring, 4, "infiniband-100g", nullptr, &prediction, finish, &timeline));
  CHECK(prediction.messages == 24);
  CHECK(prediction.bytes_across == 24 * 4000);
  CHECK(prediction.bytes_within == 0);
  CHECK(*std::max_element(finish, finish + 4) == prediction.total_ns);
  baton_timeline_facts facts{sizeof(baton_timeline_facts), 0, 0, 0, 0, 0, 0};
  OK(baton_timeline_facts_of(timeline, &facts));
  CHECK(facts.ranks == 4);
  CHECK(facts.operations == 1);
  CHECK(facts.events == prediction.steps);
  CHECK(facts.duration_ns <= prediction.total_ns);
  baton_timeline_destroy(timeline);

  const auto simulate = [&](baton_simulate_options options, const char* network) {
    options.size = sizeof options;
    return baton_simulate(ring, 4, network, &options, &prediction, nullptr, nullptr);
  };
  OK(simulate({0, -1, 0, 0, 0}, "infiniband-100g"));
  CHECK(prediction.bytes_across == 0);
  CHECK(prediction.bytes_within == 24 * 4000);
  OK(simulate({0, 2, 0, 0, 0}, "infiniband-100g"));
  CHECK(prediction.bytes_across == 12 * 4000);
  const std::int64_t once = prediction.total_ns;
  OK(simulate({0, 2, 0, 3, 0}, "infiniband-100g"));
  CHECK(prediction.total_ns > 2 * once);
  OK(simulate({0, 2, 0, 0, 100}, "infiniband-100g"));
  CHECK(prediction.messages == 240);
  const Schedules chain = Schedules::generated("broadcast", "chain", 4, 40'000);
  std::int64_t narrow = 0;
  for (const int window : {1, 8}) {
    const baton_simulate_options options{sizeof options, 0, window, 0, 100};
    OK(baton_simulate(chain, 4, "virtual-cluster-1gbit", &options, &prediction, nullptr, nullptr));
    if (window == 1) narrow = prediction.total_ns;
  }
  CHECK(prediction.total_ns < narrow);
  for (const baton_simulate_options& wrong : {baton_simulate_options{0, -2, 0, 0, 0},
                                              {0, 0, -1, 0, 0},
                                              {0, 0, 0, -1, 0},
                                              {0, 0, 0, 0, -1}})
    FAILS(simulate(wrong, "nvlink"), BATON_INVALID_ARGUMENT, {"baton_simulate_options: expected"});
  FAILS(simulate({}, "carrier-pigeons"), BATON_INVALID_ARGUMENT, {"carrier-pigeons"});
  FAILS(baton_simulate(ring, 4, nullptr, nullptr, &prediction, nullptr, nullptr),
        BATON_INVALID_ARGUMENT, {"a name of a network, found NULL"});
  FAILS(baton_simulate(ring, 4, "nvlink", nullptr, nullptr, nullptr, &timeline),
        BATON_INVALID_ARGUMENT, {"a baton_prediction, found NULL"});
  CHECK(timeline == nullptr);
}

TEST_CASE("a recording becomes a timeline, and a file that is read back") {
  const support::TemporaryFolder folder;
  const std::string file = folder / "recorded.trace";
  on_ranks(3, [&](baton_communicator* world) {
    const int rank = baton_rank(world);
    std::vector<float> x(300);
    const auto reduce = [&] {
      OK(baton_all_reduce(world, x.data(), x.data(), 300, BATON_F32, BATON_SUM, "ring:0"));
    };
    auto* timeline = reinterpret_cast<baton_timeline*>(1);
    OK(baton_start_recording(world, 0));
    OK(baton_record_computation("F0", "forward", 5, 10));
    FAILS(baton_record_computation("F0", "upward", 5, 10), BATON_INVALID_ARGUMENT, {"\"upward\""});
    reduce();
    OK(baton_stop_recording_timeline(world, &timeline));
    if (rank > 0) CHECK(timeline == nullptr);
    if (rank == 0) {
      baton_timeline_facts facts{sizeof(baton_timeline_facts), 0, 0, 0, 0, 0, 0};
      OK(baton_timeline_facts_of(timeline, &facts));
      CHECK(facts.ranks == 3);
      CHECK(facts.dropped == 0);
      std::vector<std::string> operations;
      for (int i = 0; i < facts.operations; ++i)
        operations.push_back(
            text_of([&](auto... room) { return baton_timeline_operation(timeline, i, room...); }));
      CHECK(std::count(operations.begin(), operations.end(), "all_reduce ring:0") == 1);
      int sends = 0, computations = 0;
      for (std::int64_t i = 0; i < facts.events; ++i) {
        baton_event event{sizeof(baton_event), 0, 0, 0, 0, 0, 0, 0, 0, 0};
        OK(baton_timeline_event(timeline, i, &event));
        CHECK(event.posted_ns <= event.start_ns);
        CHECK(event.start_ns <= event.end_ns);
        computations += event.kind == BATON_STEP_COMPUTE;
        if (event.kind != BATON_STEP_SEND) continue;
        ++sends;
        CHECK(event.peer == (event.rank + 1) % 3);
        CHECK(event.bytes == 400);
        CHECK(operations[static_cast<std::size_t>(event.operation)] == "all_reduce ring:0");
      }
      CHECK(sends == 12);
      CHECK(computations == 3);
      std::int64_t length = 0;
      OK(baton_critical_path(timeline, nullptr, 0, &length));
      REQUIRE(length > 0);
      std::vector<std::int64_t> path(static_cast<std::size_t>(length) + 1, -1);
      OK(baton_critical_path(timeline, path.data(), length, &length));
      CHECK(path[path.size() - 2] >= 0);
      CHECK(path.back() == -1);
      std::vector<std::int64_t> begin(path.size(), -1);
      OK(baton_critical_path(timeline, begin.data(), 1, &length));
      CHECK(begin[0] == path[0]);
      CHECK(begin[1] == -1);
      FAILS(baton_critical_path(timeline, nullptr, 1, &length), BATON_INVALID_ARGUMENT,
            {"an address for the events"});
      baton_event event{sizeof(baton_event), 0, 0, 0, 0, 0, 0, 0, 0, 0};
      for (const std::int64_t index : {std::int64_t{-1}, facts.events})
        FAILS(baton_timeline_event(timeline, index, &event), BATON_INVALID_ARGUMENT,
              {"event", "found number " + std::to_string(index)});
      FAILS(baton_timeline_operation(timeline, facts.operations, nullptr, 0, nullptr),
            BATON_INVALID_ARGUMENT, {"operation", "found number"});
    }
    baton_timeline_destroy(timeline);

    FAILS(baton_stop_recording(world, file.c_str()), BATON_INVALID_ARGUMENT, {"record"});
    OK(baton_start_recording(world, 4));
    reduce();
    OK(baton_stop_recording(world, file.c_str()));
    FAILS(baton_start_recording(world, -1), BATON_INVALID_ARGUMENT, {"-1"});
  });
  const char* const files[] = {file.c_str(), nullptr};
  baton_timeline* timeline = nullptr;
  OK(baton_read_trace(files, 1, 0, &timeline));
  baton_timeline_facts facts{sizeof(baton_timeline_facts), 0, 0, 0, 0, 0, 0};
  OK(baton_timeline_facts_of(timeline, &facts));
  CHECK(facts.ranks == 3);
  CHECK(facts.events == 12);
  CHECK(facts.dropped > 0);
  baton_timeline_destroy(timeline);
  const std::string missing = folder / "none.trace";
  const char* const none[] = {missing.c_str()};
  FAILS(baton_read_trace(none, 1, 0, &timeline), BATON_INVALID_ARGUMENT, {"none.trace"});
  FAILS(baton_read_trace(files, 2, 0, &timeline), BATON_INVALID_ARGUMENT, {"a name of a file"});
  FAILS(baton_read_trace(files, 0, 0, &timeline), BATON_INVALID_ARGUMENT, {"1 file, found 0"});
}

TEST_CASE("the option BATON_TRACE records a communicator's whole life") {
  const support::TemporaryFolder folder;
  const std::string file = folder / "whole.trace";
  on_ranks(2, [](baton_communicator* world) { OK(baton_barrier(world, nullptr)); },
           {{"BATON_TRACE", file}});
  CHECK(std::filesystem::file_size(file) > 0);
}
