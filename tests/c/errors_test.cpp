#include <array>
#include <cstring>
#include <latch>
#include <stdexcept>
#include <thread>

#include "c/handles.hpp"
#include "support.hpp"

using namespace c_support;

namespace {

constexpr int bad = BATON_INVALID_ARGUMENT;

/// A call of every function that takes a handle, with NULL, and the name of the missing thing.
struct Missing {
  const char* what;
  std::function<int()> call;
};

float data[4];
std::int64_t counts[4] = {1, 1, 1, 1};
std::int64_t extents[2] = {2, 2};
void* tensors[1] = {data};
baton_communicator* const no_world = nullptr;

// The three forms of a collective.
#define MISSING(name, ...)                                                      \
  {"a communicator", [] { return baton_##name(__VA_ARGS__, nullptr); }},        \
      {"a communicator",                                                        \
       [] {                                                                     \
         auto* request = reinterpret_cast<baton_request*>(1);                   \
         const int status = baton_start_##name(__VA_ARGS__, nullptr, &request); \
         CHECK(request == nullptr);                                             \
         return status;                                                         \
       }},                                                                      \
  {                                                                             \
    "a communicator", [] {                                                      \
      auto* plan = reinterpret_cast<baton_plan*>(1);                            \
      const int status = baton_plan_##name(__VA_ARGS__, nullptr, &plan);        \
      CHECK(plan == nullptr);                                                   \
      return status;                                                            \
    }                                                                           \
  }

}  // namespace

TEST_CASE("a missing communicator is refused by every collective") {
  const Missing calls[] = {
      MISSING(broadcast, no_world, data, 1, BATON_F32, 0),
      MISSING(broadcast_list, no_world, tensors, counts, 1, BATON_F32, 0),
      MISSING(reduce, no_world, data, data, 1, BATON_F32, BATON_SUM, 0),
      MISSING(all_reduce, no_world, data, data, 1, BATON_F32, BATON_SUM),
      MISSING(all_reduce_list, no_world, tensors, counts, 1, BATON_F32, BATON_SUM),
      MISSING(gather, no_world, data, data, 1, BATON_F32, 0),
      MISSING(gather_v, no_world, data, data, counts, BATON_F32, 0),
      MISSING(scatter, no_world, data, data, 1, BATON_F32, 0),
      MISSING(scatter_v, no_world, data, data, counts, BATON_F32, 0),
      MISSING(all_gather, no_world, data, data, 1, BATON_F32),
      MISSING(all_gather_tensor, no_world, data, extents, 2, data, BATON_F32, 0),
      MISSING(all_gather_v, no_world, data, data, counts, nullptr, BATON_F32),
      MISSING(reduce_scatter, no_world, data, data, 1, BATON_F32, BATON_SUM),
      MISSING(reduce_scatter_v, no_world, data, data, counts, BATON_F32, BATON_SUM),
      MISSING(all_to_all, no_world, data, data, 1, BATON_F32),
      MISSING(all_to_all_tensor, no_world, data, extents, 2, data, BATON_F32, 0, 1),
      MISSING(all_to_all_v, no_world, data, counts, nullptr, data, counts, nullptr, BATON_F32),
      MISSING(scan, no_world, data, data, 1, BATON_F32, BATON_SUM),
      MISSING(exscan, no_world, data, data, 1, BATON_F32, BATON_SUM),
      MISSING(barrier, no_world),
  };
  for (const Missing& missing : calls)
    FAILS(missing.call(), bad, {"expected a communicator, found NULL"});
}

TEST_CASE("missing handles, addresses and texts are refused by every other function") {
  baton_options* options = nullptr;
  OK(baton_options_create(&options));
  baton_schedules* schedules = nullptr;
  OK(baton_schedules_generate("all_reduce", "ring", 2, 4, 0, 0, &schedules));
  baton_schedules* none = nullptr;
  baton_communicator* made = nullptr;
  baton_request* request = nullptr;
  baton_timeline* timeline = nullptr;
  baton_transport* transport = nullptr;
  baton_op op = 0;
  int done = 0;
  std::int64_t number = 0;
  baton_event event{sizeof(baton_event), 0, 0, 0, 0, 0, 0, 0, 0, 0};
  baton_proof proof{sizeof(baton_proof), 0, 0, 0};
  baton_prediction prediction{sizeof(baton_prediction), 0, 0, 0, 0, 0};
  baton_timeline_facts facts{sizeof(baton_timeline_facts), 0, 0, 0, 0, 0, 0};
  const auto function = [](void*, const void*, const void*, std::size_t, void*) {};
  const Missing calls[] = {
      {"an address for the handle", [&] { return baton_options_create(nullptr); }},
      {"an address for the handle", [&] { return baton_options_from_environment(nullptr); }},
      {"options", [&] { return baton_options_set(nullptr, "BATON_CHECK", "1"); }},
      {"a name of an option", [&] { return baton_options_set(options, nullptr, "1"); }},
      {"a value of an option", [&] { return baton_options_set(options, "BATON_CHECK", nullptr); }},
      {"a baton_error", [&] { return baton_last_error_details(nullptr); }},
      {"a function of the op",
       [&] { return baton_op_create(nullptr, nullptr, 1, nullptr, 0, &op); }},
      {"an address for the op",
       [&] { return baton_op_create(function, nullptr, 1, nullptr, 0, nullptr); }},
      {"an address for the transports",
       [&] { return baton_thread_transports(2, nullptr, nullptr); }},
      {"a function for each rank", [&] { return baton_run_threads(2, options, nullptr, nullptr); }},
      {"a function for each rank", [&] { return baton_launch(2, options, nullptr, nullptr); }},
      {"an address for the handle", [&] { return baton_mpi_transport(0, nullptr); }},
      {"the blocks of an exchange", [&] { return baton_blocks_set(nullptr, 0, data, 4); }},
      {"a transport", [&] { return baton_communicator_create(nullptr, options, &made); }},
      {"a communicator", [&] { return baton_split(nullptr, 0, 0, &made); }},
      {"a communicator", [&] { return baton_shrink(nullptr, 1, &made); }},
      {"a communicator", [&] { return baton_send(nullptr, data, 1, BATON_F32, 0, 0); }},
      {"a communicator", [&] { return baton_recv(nullptr, data, 1, BATON_F32, 0, 0); }},
      {"a communicator",
       [&] { return baton_start_send(nullptr, data, 1, BATON_F32, 0, 0, &request); }},
      {"a communicator",
       [&] { return baton_start_recv(nullptr, data, 1, BATON_F32, 0, 0, &request); }},
      {"a communicator", [&] { return baton_progress(nullptr); }},
      {"an address of a request", [&] { return baton_test(nullptr, &done); }},
      {"an address for done", [&] { return baton_test(&request, nullptr); }},
      {"an address of a request", [&] { return baton_wait(nullptr); }},
      {"a plan", [&] { return baton_plan_run(nullptr); }},
      {"a plan", [&] { return baton_plan_start(nullptr, &request); }},
      {"a plan", [&] { return baton_plan_choice(nullptr, nullptr, 0, nullptr); }},
      {"a plan", [&] { return baton_plan_traffic(nullptr, &number, &number); }},
      {"a communicator", [&] { return baton_start_recording(nullptr, 0); }},
      {"a communicator", [&] { return baton_stop_recording(nullptr, "file"); }},
      {"a communicator", [&] { return baton_stop_recording_timeline(nullptr, &timeline); }},
      {"an address for the handle",
       [&] { return baton_stop_recording_timeline(nullptr, nullptr); }},
      {"a name of a computation",
       [&] { return baton_record_computation(nullptr, "forward", 0, 1); }},
      {"a class of computations", [&] { return baton_record_computation("a", nullptr, 0, 1); }},
      {"a list of files", [&] { return baton_read_trace(nullptr, 1, 0, &timeline); }},
      {"a timeline", [&] { return baton_timeline_facts_of(nullptr, &facts); }},
      {"a timeline", [&] { return baton_timeline_event(nullptr, 0, &event); }},
      {"a timeline", [&] { return baton_timeline_operation(nullptr, 0, nullptr, 0, nullptr); }},
      {"a timeline", [&] { return baton_critical_path(nullptr, nullptr, 0, &number); }},
      {"a text", [&] { return baton_schedules_parse(nullptr, nullptr, &none); }},
      {"a name of a collective",
       [&] { return baton_schedules_generate(nullptr, "ring", 2, 4, 0, 0, &none); }},
      {"a name of an algorithm",
       [&] { return baton_schedules_generate("all_reduce", nullptr, 2, 4, 0, 0, &none); }},
      {"schedules", [&] { return baton_schedules_print(nullptr, -1, nullptr, 0, nullptr); }},
      {"schedules", [&] { return baton_walk_through(nullptr, nullptr, 0, nullptr); }},
      {"schedules", [&] { return baton_verify(nullptr, &proof, nullptr, 0, nullptr); }},
      {"a communicator",
       [&] {
         return baton_run_schedules(nullptr, schedules, data, 4, data, 4, BATON_F32, BATON_SUM);
       }},
      {"schedules",
       [&] { return baton_simulate(nullptr, 4, "ideal", nullptr, &prediction, nullptr, nullptr); }},
  };
  for (const Missing& missing : calls)
    FAILS(missing.call(), bad, {"expected ", missing.what, ", found NULL"});
  CHECK((made == nullptr && none == nullptr && request == nullptr && timeline == nullptr));
  baton_schedules_destroy(schedules);
  CHECK(baton_rank(nullptr) == -1);
  CHECK(baton_size(nullptr) == -1);
  CHECK(baton_transport_rank(nullptr) == -1);
  CHECK(baton_transport_size(nullptr) == -1);
  CHECK(baton_schedules_count(nullptr) == -1);
  baton_communicator_destroy(nullptr);
  baton_plan_destroy(nullptr);
  baton_schedules_destroy(nullptr);
  baton_timeline_destroy(nullptr);
  baton_transport_destroy(transport);
  baton_op_destroy(0);
  baton_op_destroy(BATON_SUM);
  OK(baton_wait(&request));
  OK(baton_test(&request, &done));
  CHECK(done == 1);
  baton_options_destroy(options);
}

TEST_CASE("wrong arguments of collectives are refused, and the communicator remains usable") {
  on_ranks(2, [](baton_communicator* world) {
    std::vector<float> x(8, 1), y(8);
    const auto reduce = [&](std::int64_t count, int type, baton_op op, const char* choice) {
      return baton_all_reduce(world, x.data(), y.data(), count, type, op, choice);
    };
    FAILS(reduce(-1, BATON_F32, BATON_SUM, nullptr), bad, {"all_reduce", "at least 0", "-1"});
    FAILS(reduce(4, 13, BATON_SUM, nullptr), bad, {"expected a datatype from 0 to 12, found 13"});
    FAILS(reduce(4, -1, BATON_SUM, nullptr), bad, {"found -1"});
    FAILS(reduce(4, BATON_F32, 0, nullptr), bad, {"expected an op from 1 to 11", "found 0"});
    FAILS(reduce(4, BATON_F32, 12, nullptr), bad, {"found 12"});
    FAILS(reduce(4, BATON_F32, -5, nullptr), bad, {"found -5"});
    FAILS(reduce(4, BATON_F32, BATON_BIT_AND, nullptr), bad, {"defined on f32", "bit_and"});
    FAILS(reduce(4, BATON_F32, BATON_SUM, "rong"), bad, {"found \"rong\""});
    FAILS(reduce(4, BATON_F32, BATON_SUM, "ring:x"), bad, {"choice: expected", "\"ring:x\""});
    FAILS(reduce(4, BATON_USER, BATON_SUM, nullptr), bad, {"element_bytes"});
    FAILS(baton_all_reduce(world, nullptr, y.data(), 4, BATON_F32, BATON_SUM, nullptr), bad,
          {"expected an input of 4 elements, found a null pointer"});
    FAILS(baton_all_reduce(world, x.data(), x.data() + 1, 4, BATON_F32, BATON_SUM, nullptr), bad,
          {"overlapping by 12 bytes"});
    FAILS(baton_broadcast(world, x.data(), 4, BATON_F32, 2, nullptr), bad, {"root from 0 to 1"});
    FAILS(baton_all_gather(world, x.data(), y.data(), INT64_MAX / 2 + 1, BATON_F32, nullptr), bad,
          {"2 blocks have less than 2^63 elements"});
    FAILS(baton_gather_v(world, x.data(), y.data(), nullptr, BATON_F32, 0, nullptr), bad,
          {"expected a list of counts, found NULL"});
    const std::int64_t negative[] = {-1, -1}, cut[] = {3, 2};
    FAILS(baton_all_gather_v(world, x.data(), y.data(), negative, nullptr, BATON_F32, nullptr), bad,
          {"at least 0"});
    FAILS(baton_broadcast_list(world, nullptr, cut, 1, BATON_F32, 0, nullptr), bad,
          {"expected a list of tensors, found NULL"});
    FAILS(baton_broadcast_list(world, tensors, nullptr, 1, BATON_F32, 0, nullptr), bad,
          {"expected a list of counts, found NULL"});
    FAILS(baton_broadcast_list(world, tensors, cut, -1, BATON_F32, 0, nullptr), bad,
          {"at least 0 tensors, found -1"});
    FAILS(baton_all_gather_tensor(world, x.data(), nullptr, 2, y.data(), BATON_F32, 0, nullptr),
          bad, {"expected a list of extents, found NULL"});
    FAILS(baton_all_gather_tensor(world, x.data(), cut, -2, y.data(), BATON_F32, 0, nullptr), bad,
          {"at least 0 dimensions, found -2"});
    for (const int dim : {2, -3})
      FAILS(baton_all_gather_tensor(world, x.data(), cut, 2, y.data(), BATON_F32, dim, nullptr),
            bad, {"dimension from -2 to 1", "found " + std::to_string(dim)});
    FAILS(baton_all_to_all_tensor(world, x.data(), cut, 2, y.data(), BATON_F32, 0, 1, nullptr), bad,
          {"dimension 0", "divide by 2 ranks, found 3"});
    FAILS(baton_send(world, x.data(), 1, BATON_F32, 2, 0), bad, {"found 2"});
    FAILS(baton_send(world, x.data(), 1, BATON_F32, 0, 1024), bad, {"1024"});
    FAILS(baton_send(world, x.data(), 1, 99, 0, 0), bad, {"datatype", "found 99"});
    OK(reduce(8, BATON_F32, BATON_SUM, nullptr));
    CHECK(y == std::vector<float>(8, 2));
  });
}

TEST_CASE("a null address for a handle is refused before anything is started") {
  on_ranks(2, [](baton_communicator* world) {
    float x = 1;
    FAILS(baton_start_all_reduce(world, &x, &x, 1, BATON_F32, BATON_SUM, nullptr, nullptr), bad,
          {"an address for the handle"});
    FAILS(baton_plan_all_reduce(world, &x, &x, 1, BATON_F32, BATON_SUM, nullptr, nullptr), bad,
          {"an address for the handle"});
    FAILS(baton_split(world, 0, 0, nullptr), bad, {"an address for the handle"});
    FAILS(baton_shrink(world, 1, nullptr), bad, {"an address for the handle"});
    baton_communicator* survivors = nullptr;
    FAILS(baton_shrink(world, 0, &survivors), bad, {"patience of more than 0 ms"});
    FAILS(baton_start_send(world, &x, 1, BATON_F32, 0, 0, nullptr), bad,
          {"an address for the handle"});
    OK(baton_barrier(world, nullptr));
  });
}

TEST_CASE("details of an error") {
  baton_error fresh{sizeof(baton_error), 9, 9, 9, 9, 9, nullptr, nullptr, nullptr};
  std::thread([&] {
    OK(baton_last_error_details(&fresh));
    CHECK(std::string(baton_last_error()).empty());
    CHECK(fresh.status == BATON_OK);
    CHECK(std::string(fresh.sentence).empty());
    CHECK(fresh.rank == -1);
  }).join();
  on_ranks(2, [](baton_communicator* world) {
    const int rank = baton_rank(world);
    std::array<float, 4> x{};
    if (rank == 0) {
      OK(baton_send(world, x.data(), 2, BATON_F32, 1, 7));
    } else {
      FAILS(baton_recv(world, x.data(), 3, BATON_F32, 0, 7), BATON_TRUNCATED,
            {"recv of communicator", "a message of 12 bytes from rank 0", "found 8"});
      baton_error error{sizeof(baton_error), 0, 0, 0, 0, 0, nullptr, nullptr, nullptr};
      OK(baton_last_error_details(&error));
      CHECK(error.size == sizeof(baton_error));
      CHECK(error.status == BATON_TRUNCATED);
      CHECK(error.rank == 1);
      CHECK(error.peer == 0);
      CHECK(std::string(error.sentence) == baton_last_error());
      CHECK(std::string(error.operation) == "recv");
      CHECK(std::string(error.backend_text).empty());
      FAILS(baton_barrier(world, nullptr), BATON_TRANSPORT, {"failed earlier"});
    }
  });
}

TEST_CASE("ranks that differ get one sentence with BATON_CHECK") {
  on_ranks(
      3,
      [](baton_communicator* world) {
        float x[4] = {};
        const std::int64_t count = baton_rank(world) == 1 ? 3 : 4;
        FAILS(baton_all_reduce(world, x, x, count, BATON_F32, BATON_SUM, nullptr), BATON_MISMATCH,
              {"rank 1"});
        baton_request* request = nullptr;
        OK(baton_start_all_reduce(world, x, x, count, BATON_F32, BATON_SUM, nullptr, &request));
        FAILS(baton_wait(&request), BATON_MISMATCH, {"rank 1"});
        CHECK(request == nullptr);
        OK(baton_start_all_reduce(world, x, x, count, BATON_F32, BATON_SUM, nullptr, &request));
        int done = 0, status = BATON_OK;
        while (status == BATON_OK && !done) status = baton_test(&request, &done);
        CHECK(status == BATON_MISMATCH);
        CHECK(done == 0);
        CHECK(request == nullptr);
        OK(baton_barrier(world, nullptr));
      },
      {{"BATON_CHECK", "1"}});
}

TEST_CASE("a rank that does not come is a timeout, one that has left a failure") {
  std::latch one(1);
  on_ranks(2,
           [&](baton_communicator* world) {
             if (baton_rank(world) == 1) return one.wait();
             FAILS(baton_barrier(world, nullptr), BATON_TIMEOUT,
                   {"rank 1 has not entered it", "rank 0"});
             one.count_down();
           },
           {{"BATON_TIMEOUT", "0.2"}});
  on_ranks(2, [](baton_communicator* world) {
    if (baton_rank(world) == 0)
      FAILS(baton_barrier(world, nullptr), BATON_TRANSPORT, {"rank 1 has left the communicator"});
  });
}

TEST_CASE("names of statuses") {
  const char* const names[] = {"ok",      "invalid_argument", "mismatch", "truncated", "transport",
                               "timeout", "unsupported",      "memory",   "device",    "failed"};
  for (int status = 0; status < 10; ++status)
    CHECK(std::string(baton_status_name(status)) == names[status]);
  for (const int status : {-1, 10}) CHECK(std::string(baton_status_name(status)) == "unknown");
}

TEST_CASE("structs of programs that were compiled before the last members came") {
  struct First {
    std::size_t size;
    std::int64_t known;
  } first{sizeof(First), 7};
  struct Now {
    std::size_t size;
    std::int64_t known, last;
  };
  auto* const given = reinterpret_cast<Now*>(&first);
  const Now taken = baton::c::taken(given, "Now", sizeof(First));
  CHECK(taken.known == 7);
  CHECK(taken.last == 0);
  baton::c::fill(given, Now{0, 8, 9}, "Now", sizeof(First));
  CHECK(first.size == sizeof(First));
  CHECK(first.known == 8);
  first.size = sizeof(First) - 1;
  const baton::Error error =
      support::error_of([&] { baton::c::taken(given, "Now", sizeof(First)); });
  CHECK(support::holds(error.what(), {"expected a Now of at least 16 bytes, found size 15"}));
}

TEST_CASE("structs of another size") {
  const auto size = static_cast<int>(sizeof(baton_error));
  baton_error old{};
  for (const int wrong : {0, size - 1}) {
    old.size = static_cast<std::size_t>(wrong);
    FAILS(baton_last_error_details(&old), bad,
          {"expected a baton_error of at least " + std::to_string(size) + " bytes, found size " +
           std::to_string(wrong)});
  }
  struct {
    baton_error known;
    std::int64_t later = 5;
  } newer{};
  newer.known.size = sizeof newer;
  OK(baton_last_error_details(&newer.known));
  CHECK(newer.known.status == bad);
  CHECK(newer.known.size == sizeof newer);
  CHECK(newer.later == 0);

  baton_schedules* schedules = nullptr;
  OK(baton_schedules_generate("all_reduce", "ring", 2, 4, 0, 0, &schedules));
  baton_prediction prediction{sizeof(baton_prediction), 0, 0, 0, 0, 0};
  struct {
    baton_simulate_options known;
    std::int64_t later = 0;
  } options{};
  const std::string network = "shared-memory";
  const auto simulate = [&] {
    return baton_simulate(schedules, 4, network.c_str(), &options.known, &prediction, nullptr,
                          nullptr);
  };
  FAILS(simulate(), bad, {"baton_simulate_options of at least", "found size 0"});
  options.known.size = sizeof options;
  OK(simulate());
  options.later = 1;
  FAILS(simulate(), BATON_UNSUPPORTED, {"baton_simulate_options whose members beyond"});
  baton_schedules_destroy(schedules);
}
