#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include "baton/error.hpp"
#include "baton/timeline.hpp"
#include "baton/trace.hpp"
#include "support/ranks.hpp"
#include "world.hpp"

namespace nccl_stand_in {

using namespace baton;
using namespace std::chrono_literals;

namespace {

Bytes ints(std::size_t count, int rank) { return numbers(Datatype::i32, count, rank); }

/// A variable of the environment while it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (before_.empty())
      unsetenv(name_);
    else
      setenv(name_, before_.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::string before_;
};

}  // namespace

void aborted(const Layout& layout) {
  if (layout.size() == 1) return;  // no message waits
  World world(layout), other(layout);
  std::vector<std::byte*> data;
  for (const Rank& one : world.own()) {
    data.push_back(one.put(ints(10, one.rank)));
    // Nobody sends this message.
    ok(ncclRecv(data.back(), 10, ncclInt32, (one.rank + 1) % world.size(), one.comm, one.stream));
    ncclResult_t state = ncclInternalError;
    ok(ncclCommGetAsyncError(one.comm, &state));
    CHECK(state == ncclSuccess);
  }
  layout.meet();
  for (const Rank& one : world.own()) {
    // By another thread, as a watchdog does it.
    std::thread([&] { ok(ncclCommAbort(one.comm)); }).join();
    one.synchronize();  // the stream goes on
    ncclResult_t state = ncclSuccess;
    failed(ncclCommGetAsyncError(one.comm, &state), ncclInvalidArgument, {"one that has ended"});
  }
  world.own().clear();
  ok(ncclCommAbort(nullptr));
  ok(ncclCommDestroy(nullptr));

  // Revoked: no calls.
  for (const Rank& one : other.own()) {
    std::byte* const memory = one.put(ints(10, 0));
    ok(ncclRecv(memory, 10, ncclInt32, (one.rank + 1) % other.size(), one.comm, one.stream));
    ok(ncclCommRevoke(one.comm, NCCL_REVOKE_DEFAULT));
    one.synchronize();
    CHECK(ncclSend(memory, 10, ncclInt32, 0, one.comm, one.stream) == ncclInvalidArgument);
  }
}

void failures(const Layout& layout) {
  if (layout.size() > 1) {  // a message waits
    World other(layout);
    const Variable timeout("BATON_TIMEOUT", "3");
    World world(layout);
    for (const Rank& one : world.own()) {
      std::byte* const memory = one.put(ints(10, 0));
      ok(ncclRecv(memory, 10, ncclInt32, (one.rank + 1) % world.size(), one.comm, one.stream));
    }
    for (const Rank& one : world.own()) {
      one.synchronize();  // the stream goes on
      ncclResult_t state = ncclSuccess;
      for (int i = 0; state == ncclSuccess && i < 20000; ++i) {
        ok(ncclCommGetAsyncError(one.comm, &state));
        std::this_thread::sleep_for(1ms);
      }
      failed(state, ncclRemoteError,
             {"recv", "no progress for 3 s", "rank " + std::to_string(one.rank) + " waits for"},
             one.comm);
      ok(ncclCommGetAsyncError(one.comm, &state));
      CHECK(state == ncclRemoteError);  // it stays
    }
    other.meet();  // nobody has left before all have waited
    for (const Rank& one : world.own()) {
      std::byte* const memory = one.put(ints(10, 0));
      failed(ncclSend(memory, 10, ncclInt32, 0, one.comm, one.stream), ncclRemoteError,
             {"recv", "no progress for"}, one.comm);
      ok(ncclCommAbort(one.comm));
    }
    world.own().clear();
  }
  if (layout.process > 0) {
    static_cast<void>(layout.identifier());
    return;
  }
  // Ranks that do not come are named.
  const Variable timeout("BATON_TIMEOUT", "0.3");
  const ncclUniqueId identifier = layout.identifier();
  ncclComm_t comm = nullptr;
  failed(ncclCommInitRank(&comm, 3, identifier, 1), ncclRemoteError,
         {"3 ranks", "within 300 ms", "did not come: 0 2"});
  CHECK(comm == nullptr);
}

void named(const Layout& layout) {
  if (layout.size() == 1) return;
  const Variable timeout("BATON_TIMEOUT", "2");
  World world(layout, "weights");
  const auto part_of_all = [&](const ncclConfig_t& config) {
    std::vector<Rank> members = world.own();
    std::size_t i = 0;
    world.together([&](const Rank& one) {
      ncclConfig_t own = config;
      return ncclCommSplit(one.comm, 0, one.rank, &members[i++].comm, &own);
    });
    for (Rank& one : members) one.stream = make_stream(one.device);
    return World(world.size(), std::move(members));
  };
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  World unnamed = part_of_all(config);
  config.commName = "half";
  World part = part_of_all(config);
  config.size = offsetof(ncclConfig_t, commName);  // of a program that was built before names
  World older = part_of_all(config);

  // Without the first rank, where two others are left.
  config = NCCL_CONFIG_INITIALIZER;
  config.commName = "fewer";
  std::vector<Rank> others;
  for (const Rank& one : world.own())
    if (one.rank > 0 && world.size() > 2) others.push_back(one);
  int first = 0;
  ok(ncclGroupStart());
  for (Rank& one : others) {
    ok(ncclCommShrink(one.comm, &first, 1, &one.comm, &config, NCCL_SHRINK_DEFAULT));
    one.stream = make_stream(one.device);
  }
  ok(ncclGroupEnd());
  World fewer(world.size() - 1, std::move(others));

  // The last rank does not come, or has left: the sentence names the communicator.
  const std::pair<World*, const char*> all[] = {{&world, "weights"},
                                                {&unnamed, "weights/1:0"},
                                                {&part, "half"},
                                                {&older, "weights/3:0"},
                                                {&fewer, "fewer"}};
  const auto those_that_call = [&](const auto& body) {
    for (const auto& [members, name] : all)
      for (const Rank& one : members->own())
        if (one.rank + 1 < world.size()) body(one, name);
  };
  ok(ncclGroupStart());
  those_that_call([](const Rank& one, const char*) {
    std::byte* const memory = one.put(ints(10, 0));
    ok(ncclAllReduce(memory, memory, 10, ncclInt32, ncclSum, one.comm, one.stream));
  });
  ncclGroupEnd();  // says so itself where ranks share a device and meet first
  those_that_call([](const Rank& one, const char* name) {
    one.synchronize();
    ncclResult_t state = ncclSuccess;
    for (int i = 0; state == ncclSuccess && i < 20000; ++i) {
      ok(ncclCommGetAsyncError(one.comm, &state));
      std::this_thread::sleep_for(1ms);
    }
    CHECK(state == ncclRemoteError);
    const std::string text = ncclGetLastError(one.comm);
    CHECK_MESSAGE(support::holds(text, {"of communicator '" + std::string(name) + "'"}), text);
  });
  for (const auto& [members, name] : all) {
    for (const Rank& one : members->own()) ok(ncclCommAbort(one.comm));
    members->own().clear();
  }
}

void wrong_arguments(const Layout& layout) {
  World world(layout);
  const Rank& one = world.own().front();
  std::byte* const data = one.put(ints(100, 0));
  std::byte host[16] = {};
  const auto all_reduce = [&](const void* in, void* out, std::size_t count, int type, int op,
                              ncclComm_t comm, cudaStream_t stream) {
    return ncclAllReduce(in, out, count, static_cast<ncclDataType_t>(type),
                         static_cast<ncclRedOp_t>(op), comm, stream);
  };
  const auto refused = [](ncclResult_t found, const std::vector<std::string>& parts) {
    failed(found, ncclInvalidArgument, parts);
  };
  refused(all_reduce(data, data, 4, ncclNumTypes, ncclSum, one.comm, one.stream),
          {"datatype from 0 to 11", "12"});
  refused(all_reduce(data, data, 4, -1, ncclSum, one.comm, one.stream), {"datatype", "-1"});
  refused(all_reduce(data, data, 4, ncclInt32, 77, one.comm, one.stream), {"operation", "77"});
  refused(all_reduce(data, data, std::size_t{1} << 63, ncclInt32, ncclSum, one.comm, one.stream),
          {"at most", "9223372036854775808"});
  refused(all_reduce(data, data, 4, ncclInt32, ncclSum, nullptr, one.stream),
          {"communicator", "null"});
  refused(ncclBroadcast(data, data, 4, ncclInt32, world.size(), one.comm, one.stream),
          {"root from 0", std::to_string(world.size())});
  refused(ncclSend(data, 4, ncclInt32, world.size(), one.comm, one.stream), {"peer from 0"});
  refused(ncclRecv(nullptr, 4, ncclInt32, 0, one.comm, one.stream), {"buffer", "null"});
  if (const int other = (one.rank + 1) % world.size(); other != one.rank) {
    refused(ncclSend(host, 4, ncclInt32, other, one.comm, one.stream), {"memory of", "the host's"});
    refused(ncclSend(data, 4, ncclInt32, other, one.comm, nullptr), {"stream", "default"});
  }
  // Of all ranks, where all are wrong.
  ok(ncclGroupStart());
  for (const Rank& each : world.own())
    ok(all_reduce(host, host, 4, ncclInt32, ncclSum, each.comm, each.stream));
  failed(ncclGroupEnd(), ncclInvalidArgument, {"memory of", "the host's"});

  ncclUniqueId identifier{};
  ncclComm_t comm = nullptr;
  refused(ncclCommInitRank(&comm, 2, identifier, 0), {"identifier", "this library"});
  ok(ncclGetUniqueId(&identifier));
  refused(ncclCommInitRank(&comm, 0, identifier, 0), {"at least 1 rank"});
  refused(ncclCommInitRank(&comm, 2, identifier, 2), {"rank from 0 to 1", "found 2"});
  refused(ncclCommInitRank(nullptr, 2, identifier, 0), {"null"});
  refused(ncclGetUniqueId(nullptr), {"null"});
  ncclConfig_t config{};
  refused(ncclCommInitRankConfig(&comm, 1, identifier, 0, &config), {"NCCL_CONFIG_INITIALIZER"});
  config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 3;
  refused(ncclCommInitRankConfig(&comm, 1, identifier, 0, &config), {"blocking", "3"});
  const int beyond[] = {devices};
  refused(ncclCommInitAll(&comm, 1, beyond), {"devices from 0"});
  refused(ncclCommInitRankScalable(&comm, 1, 0, 2, &identifier, nullptr), {"identifiers"});
  refused(ncclCommSplit(one.comm, -3, 0, &comm, nullptr), {"color", "-3"});
  int self[] = {one.rank}, twice[] = {one.rank, one.rank};
  refused(ncclCommShrink(one.comm, self, 1, &comm, nullptr, 0), {"ranks that stay"});
  refused(ncclCommShrink(one.comm, twice, 2, &comm, nullptr, 0), {"once"});
  refused(ncclCommRevoke(one.comm, 9), {"NCCL_REVOKE_DEFAULT", "9"});
  refused(ncclCommDeregister(one.comm, host), {"registered"});
  refused(ncclRedOpDestroy(static_cast<ncclRedOp_t>(99), one.comm), {"ncclRedOpCreatePreMulSum"});
  float scalar = 1;
  ncclRedOp_t op{};
  ok(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat, ncclScalarHostImmediate, one.comm));
  refused(ncclAllReduce(data, data, 4, ncclInt32, op, one.comm, one.stream), {"f32", "i32"});
  world.meet();  // nothing of this broke anything
}

void services(const Layout& layout) {
  int version = 0;
  ok(ncclGetVersion(&version));
  CHECK(version == NCCL_VERSION_CODE);
  CHECK(std::string(ncclGetErrorString(ncclSuccess)) == "no error");
  for (int code = 1; code < ncclNumResults; ++code)
    CHECK(std::string(ncclGetErrorString(static_cast<ncclResult_t>(code))) !=
          ncclGetErrorString(ncclNumResults));

  World world(layout);
  world.meet();
  for (const Rank& one : world.own()) {
    set_device(one.device);
    void *memory = nullptr, *handle = nullptr;
    ok(ncclMemAlloc(&memory, 1000));
    CHECK(one.on().residence(memory) == Residence::device);
    ok(ncclCommRegister(one.comm, memory, 1000, &handle));
    CHECK(handle != nullptr);
    ok(ncclCommDeregister(one.comm, handle));
    CHECK(ncclCommDeregister(one.comm, handle) == ncclInvalidArgument);
    ncclWindow_t window = nullptr;
    ok(ncclCommWindowRegister(one.comm, memory, 1000, &window, NCCL_WIN_COLL_SYMMETRIC));
    ok(ncclCommWindowDeregister(one.comm, window));
    ok(ncclMemFree(memory));
    int number = -1;
    ok(ncclCommCount(one.comm, &number));
    CHECK(number == world.size());
    ok(ncclCommUserRank(one.comm, &number));
    CHECK(number == one.rank);
    ok(ncclCommCuDevice(one.comm, &number));
    CHECK(number == one.device);
  }
  set_device(0);
  // Finalized: what was called ends, and no further call is taken.
  for (const Rank& one : world.own()) {
    ok(ncclCommFinalize(one.comm));
    ncclResult_t state = ncclInternalError;
    ok(ncclCommGetAsyncError(one.comm, &state));
    CHECK(state == ncclSuccess);
    failed(ncclBroadcast(one.put(ints(1, 0)), nullptr, 1, ncclInt32, 0, one.comm, one.stream),
           ncclInvalidArgument, {});
  }

  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclUniqueId identifiers[] = {layout.identifier(), layout.identifier()};
  std::vector<ncclComm_t> comms(static_cast<std::size_t>(layout.ranks_each));
  ok(ncclGroupStart());
  for (int i = 0; i < layout.ranks_each; ++i) {
    const int rank = layout.process * layout.ranks_each + i;
    ncclComm_t* const to = &comms[static_cast<std::size_t>(i)];
    ok(ncclCommInitRankScalable(to, layout.size(), rank, std::min(2, layout.size()), identifiers,
                                &config));
  }
  ok(ncclGroupEnd());
  for (const ncclComm_t comm : comms) {
    ncclResult_t state = ncclInternalError;
    ok(ncclCommGetAsyncError(comm, &state));
    CHECK(state == ncclSuccess);
    ok(ncclCommDestroy(comm));
  }

  // All devices of one process, and several ranks on one device.
  ncclComm_t all[4] = {};
  const int same[] = {0, 1, 1, 0};
  ok(ncclCommInitAll(all, 4, same));
  for (int rank = 0; rank < 4; ++rank) {
    int number = -1;
    ok(ncclCommUserRank(all[rank], &number));
    CHECK(number == rank);
    ok(ncclCommCuDevice(all[rank], &number));
    CHECK(number == same[rank]);
    ok(ncclCommDestroy(all[rank]));
  }
  ok(ncclCommInitAll(all, devices, nullptr));
  for (int rank = 0; rank < devices; ++rank) ok(ncclCommDestroy(all[rank]));
}

void left_behind(const Layout& layout) {
  World idle(layout), busy(layout);
  for (const Rank& one : busy.own()) {
    if (busy.size() == 1) break;  // no message waits
    std::byte* const memory = one.put(ints(10, 0));
    ok(ncclRecv(memory, 10, ncclInt32, (one.rank + 1) % busy.size(), one.comm, one.stream));
  }
  idle.meet();
  idle.own().clear();
  busy.own().clear();
}

void recorded(const Layout& layout) {
  const std::string file = layout.folder + "/trace";
  {
    const Variable trace("BATON_TRACE", file);
    World world(layout);
    world.meet();
    std::vector<std::byte*> data;
    for (const Rank& one : world.own()) data.push_back(one.put(ints(10, one.rank)));
    std::size_t i = 0;
    world.together([&](const Rank& one) {
      std::byte* const own = data[i++];
      ok(ncclSend(own, 5, ncclInt32, (one.rank + 1) % world.size(), one.comm, one.stream));
      return ncclRecv(own + 20, 5, ncclInt32, (one.rank + world.size() - 1) % world.size(),
                      one.comm, one.stream);
    });
    world.synchronize();
  }
  if (layout.process > 0 || layout.size() == 1) return;  // a rank alone has no steps to record
  // The ranks end side by side, after ncclCommDestroy; until then the file is not complete.
  const std::string files[] = {file};
  Timeline timeline;
  for (int i = 0; i < 20000 && timeline.operations.empty(); ++i) {
    std::this_thread::sleep_for(1ms);
    try {
      timeline = read_trace(files).timeline;
    } catch (const Error&) {  // not yet
    }
  }
  std::map<std::string, int> count;
  for (const TimedOperation& operation : timeline.operations) ++count[operation.name];
  CHECK(count["all_reduce"] == 1);
  CHECK(count["message"] == layout.size());
}

}  // namespace nccl_stand_in
