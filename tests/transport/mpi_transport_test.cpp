#include "baton/mpi.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "contract.hpp"
#include "transport/mpi/single_copy.hpp"
#include "without_ptrace.hpp"

using namespace baton;
using namespace std::chrono_literals;
using contract::Bytes;
using contract::finish;
using contract::pattern;

namespace {

bool slow_tests = false;
int slow_tests_made = 0;

}  // namespace

/// If asked, as slow as on a core that a computation gives back late.
extern "C" int MPI_Test(MPI_Request* request, int* complete, MPI_Status* status) {
  static const auto next =
      reinterpret_cast<int (*)(MPI_Request*, int*, MPI_Status*)>(dlsym(RTLD_NEXT, "MPI_Test"));
  if (slow_tests) {
    ++slow_tests_made;
    std::this_thread::sleep_for(20ms);
  }
  return next(request, complete, status);
}

TEST_CASE("mpi transport: keeps the contract") {
  const auto t = mpi_transport(MPI_COMM_WORLD);
  // MPICH raises a truncated receive on MPI_COMM_WORLD, whatever the communicator.
  REQUIRE(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) == MPI_SUCCESS);
  contract::everything(*t, false);
  REQUIRE(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL) == MPI_SUCCESS);
  contract::traffic(*t, 40, 3);
}

TEST_CASE("mpi transport: a rank with a busy core gives up a message soon") {
  const auto t = mpi_transport(MPI_COMM_WORLD);
  if (t->size() == 1) return;  // MPICH does not deliver it to the rank itself then
  const int next = (t->rank() + 1) % t->size(), prev = (t->rank() + t->size() - 1) % t->size();
  constexpr std::size_t length = 8 << 20;
  const Bytes data = pattern(length, static_cast<std::uint64_t>(t->rank()));
  Message sent;
  t->isend(next, 0, data.data(), length, sent);
  slow_tests = true;
  slow_tests_made = 0;
  t->cancel(sent);
  slow_tests = false;
  CHECK(slow_tests_made == 1);
  CHECK(support::same_bytes(contract::recv(*t, prev, 0, length),
                            pattern(length, static_cast<std::uint64_t>(prev))));
  contract::send(*t, prev, 1, {});
  contract::recv(*t, next, 1, 0);  // the data is there until its receiver has it
}

TEST_CASE("mpi transport: ranks of one machine with one name share a host") {
  const auto t = mpi_transport(MPI_COMM_WORLD);
  REQUIRE(t->capabilities().hosts.size() == static_cast<std::size_t>(t->size()));
  CHECK(std::ranges::all_of(t->capabilities().hosts, [](int host) { return host == 0; }));
}

TEST_CASE("mpi transport: several on one communicator do not meet") {
  const auto a = mpi_transport(MPI_COMM_WORLD);
  const auto b = mpi_transport(MPI_COMM_WORLD);
  const int next = (a->rank() + 1) % a->size(), prev = (a->rank() + a->size() - 1) % a->size();
  Message to_a, to_b;
  const Bytes in_a = pattern(8, 1), in_b = pattern(8, 2);
  b->isend(next, 0, in_b.data(), 8, to_b);
  a->isend(next, 0, in_a.data(), 8, to_a);
  CHECK(contract::recv(*a, prev, 0, 8) == in_a);
  CHECK(contract::recv(*b, prev, 0, 8) == in_b);
  finish(*a, to_a, "send in a");
  finish(*b, to_b, "send in b");
}

TEST_CASE("mpi transport: the program's own messages are not taken") {
  const auto t = mpi_transport(MPI_COMM_WORLD);
  const int next = (t->rank() + 1) % t->size(), prev = (t->rank() + t->size() - 1) % t->size();
  MPI_Request own[2];
  int sent = 1, got = 0;
  REQUIRE(MPI_Isend(&sent, 1, MPI_INT, next, 0, MPI_COMM_WORLD, &own[0]) == MPI_SUCCESS);
  Message m;
  const Bytes data = pattern(4, 2);
  t->isend(next, 0, data.data(), 4, m);
  CHECK(contract::recv(*t, prev, 0, 4) == data);
  finish(*t, m, "send");
  REQUIRE(MPI_Irecv(&got, 1, MPI_INT, prev, 0, MPI_COMM_WORLD, &own[1]) == MPI_SUCCESS);
  REQUIRE(MPI_Waitall(2, own, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
  CHECK(got == 1);
}

TEST_CASE("mpi transport: what MPI refuses is an error with MPI's own code and text") {
  const auto t = mpi_transport(MPI_COMM_WORLD);
  Message m;
  const std::byte data{};
  try {
    t->isend(t->size(), 0, &data, 1, m);
    FAIL("a send to a rank that does not exist was expected to fail");
  } catch (const Error& error) {
    CHECK(error.code == ErrorCode::transport);
    CHECK(error.rank == t->rank());
    CHECK(error.peer == t->size());
    int kind = MPI_SUCCESS;
    CHECK(MPI_Error_class(error.backend_code, &kind) == MPI_SUCCESS);
    CHECK(kind == MPI_ERR_RANK);
    CHECK(std::string(error.what()).find("MPI_Isend") != std::string::npos);
    CHECK(std::string(error.what()).find(error.backend_text) != std::string::npos);
    CHECK(!error.backend_text.empty());
  }
  contract::order(*t);  // it is still good
}

TEST_CASE("mpi transport: no communicator and intercommunicators are refused") {
  CHECK_THROWS_WITH_AS(mpi_transport(MPI_COMM_NULL),
                       "an MPI transport needs a communicator, but got MPI_COMM_NULL", Error);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size < 2) return;
  MPI_Comm side = MPI_COMM_NULL, both = MPI_COMM_NULL;
  REQUIRE(MPI_Comm_split(MPI_COMM_WORLD, rank == 0, 0, &side) == MPI_SUCCESS);
  REQUIRE(MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, rank == 0, 0, &both) == MPI_SUCCESS);
  CHECK_THROWS_AS(mpi_transport(both), Error);
  MPI_Comm_free(&both);
  MPI_Comm_free(&side);
}

TEST_CASE("mpi transport: the capabilities are MPI's") {
  const auto t = mpi_transport(MPI_COMM_WORLD);
  int* most = nullptr;
  int found = 0, level = MPI_THREAD_SINGLE;
  REQUIRE(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found) == MPI_SUCCESS);
  REQUIRE(MPI_Query_thread(&level) == MPI_SUCCESS);
  const Capabilities can = t->capabilities();
  CHECK(can.name == "mpi");
  // The same for any rank, also one that is alone on its host.
  const int answers = 1 << 15;  // to what is read in its sender's memory
  CHECK(can.tags - 1 + answers == std::min(*most, std::numeric_limits<int>::max() - 1));
  const auto whole = t->split(0, 0), alone = t->split(t->rank(), 0);
  CHECK(whole->capabilities().tags == can.tags);
  CHECK(alone->capabilities().tags == can.tags);
  // Ranks that share a core wait alike, in whatever group.
  CHECK(whole->capabilities().spins == can.spins);
  CHECK(alone->capabilities().spins == can.spins);
  CHECK(can.concurrent == (level == MPI_THREAD_MULTIPLE));
}

TEST_CASE("mpi transport: a message to a group that has given up meets no later group") {
  const auto world = mpi_transport(MPI_COMM_WORLD);
  if (world->size() < 2) return;
  for (int round = 0; round < 5; ++round) {
    auto first = world->split(0, 0);
    // Rank 0 gives up before it receives anything, and leaves; the others send only then.
    if (world->rank() == 0) {
      first->expect_strays();
      first.reset();
    }
    contract::meet(*world);
    if (world->rank() == 1) contract::send(*first, 0, 3, contract::pattern(16, 1));
    contract::meet(*world);
    if (world->rank() != 0) first->expect_strays();
    first.reset();
    auto second = world->split(0, 0);
    if (world->rank() == 1) contract::send(*second, 0, 3, contract::pattern(16, 2));
    if (world->rank() == 0) CHECK(contract::recv(*second, 1, 3, 16) == contract::pattern(16, 2));
    contract::meet(*second);
  }
}

TEST_CASE("mpi transport: a receive given up does not hang, whether its sender comes or not") {
  const auto t = mpi_transport(MPI_COMM_WORLD);
  Message never, late;
  Bytes room(100);
  t->irecv((t->rank() + 1) % t->size(), 5, room.data(), room.size(), never);
  t->cancel(never);
  if (t->size() < 2 || t->rank() > 1) return;
  Bytes data(1 << 20);
  if (t->rank() == 0) {
    t->isend(1, 6, data.data(), data.size(), late);
    contract::send(*t, 1, 7, {});
    contract::recv(*t, 1, 8, 0);
  } else {
    contract::recv(*t, 0, 7, 0);
    t->irecv(0, 6, data.data(), data.size(), late);
    t->cancel(late);  // on its way, or not begun
    contract::send(*t, 0, 8, {});
    Message again;
    t->irecv(0, 6, data.data(), data.size(), again);
    t->cancel(again);
  }
  if (t->rank() == 0) t->cancel(late);
}

TEST_CASE("mpi transport: messages beyond 2 GiB") {
  const auto t = mpi_transport(MPI_COMM_WORLD);
  constexpr std::size_t length = (std::size_t{1} << 31) + 12345;
  struct sysinfo machine {};
  REQUIRE(sysinfo(&machine) == 0);
  const auto free_bytes =
      static_cast<double>(machine.freeram + machine.bufferram) * machine.mem_unit;
  if (t->size() != 2) return;
  if (free_bytes < 3.0 * static_cast<double>(length)) {
    MESSAGE("not run: expected 6 GiB of free memory, found " << free_bytes / (1 << 30));
    return;
  }
  // Every 4096th byte and the ends say where they are; a longer room is reported as such.
  const auto mark = [](std::size_t at) { return static_cast<std::byte>(at >> 12 ^ at >> 20); };
  const std::size_t room = length + (t->rank() == 1 ? 1000 : 0);
  const auto data = std::make_unique<std::byte[]>(room);
  Message m;
  if (t->rank() == 0) {
    for (std::size_t at = 0; at < length; at += 4096) data[at] = mark(at);
    data[length - 1] = std::byte{99};
    t->isend(1, 0, data.get(), length, m);
    CHECK(finish(*t, m, "send of 2 GiB", 200s) == length);
  } else {
    t->irecv(0, 0, data.get(), room, m);
    CHECK(finish(*t, m, "recv of 2 GiB", 200s) == length);
    std::size_t wrong = 0;
    for (std::size_t at = 0; at < length; at += 4096) wrong += data[at] != mark(at);
    CHECK(wrong == 0);
    CHECK(data[length - 1] == std::byte{99});
    CHECK(data[length] == std::byte{0});
  }
}

namespace {

/// Sets BATON_SINGLE_COPY for a while.
class SingleCopyVariable {
 public:
  explicit SingleCopyVariable(const char* value) {
    REQUIRE(setenv("BATON_SINGLE_COPY", value, 1) == 0);
  }
  ~SingleCopyVariable() { unsetenv("BATON_SINGLE_COPY"); }
};

constexpr std::size_t large = 3 << 20;

/// Memory whose last 256 KiB nobody can read.
class ShortOfReadable {
 public:
  explicit ShortOfReadable(std::size_t bytes)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    constexpr std::size_t hidden = 256 << 10;
    REQUIRE(data_ != MAP_FAILED);
    REQUIRE(mprotect(static_cast<std::byte*>(data_) + bytes - hidden, hidden, PROT_NONE) == 0);
  }
  ShortOfReadable(const ShortOfReadable&) = delete;
  ~ShortOfReadable() { munmap(data_, bytes_); }
  const void* data() const { return data_; }

 private:
  std::size_t bytes_;
  void* data_;
};

/// Whether messages of so many bytes are read in their sender's memory.
bool reads(Transport& t, int peer, std::size_t bytes) {
  SingleCopy* const single_copy = t.single_copy();
  return single_copy && bytes >= single_copy->least_bytes() && single_copy->reads(peer);
}

}  // namespace

TEST_CASE("mpi transport: large messages within a host are read in their sender's memory") {
  const auto whole = mpi_transport(MPI_COMM_WORLD);
  const auto part = whole->split(whole->rank() % 2, 0);
  for (Transport* const t : {whole.get(), part.get()}) {
    const int next = (t->rank() + 1) % t->size(), prev = (t->rank() + t->size() - 1) % t->size();
    CHECK(!reads(*t, t->rank(), large));
    if (t->size() == 1) continue;
    REQUIRE(reads(*t, next, large));
    CHECK(!reads(*t, next, 1 << 10));
    // Several at once, of one tag, among them short ones: their order is kept.
    constexpr int count = 5;
    std::vector<Bytes> out, in;
    std::vector<Message> sends(count), receives(count);
    for (int i = 0; i < count; ++i) {
      const std::size_t bytes = i % 2 == 0 ? large + static_cast<std::size_t>(i) : 100;
      out.push_back(pattern(bytes, static_cast<std::uint64_t>(100 * t->rank() + i)));
      in.emplace_back(bytes);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t bytes = out[i].size();
      if (reads(*t, prev, bytes))
        t->single_copy()->fetch(prev, 3, {in[i].data()}, bytes, receives[i]);
      else
        t->irecv(prev, 3, in[i].data(), bytes, receives[i]);
      if (reads(*t, next, bytes))
        t->single_copy()->offer(next, 3, out[i].data(), bytes, sends[i]);
      else
        t->isend(next, 3, out[i].data(), bytes, sends[i]);
    }
    // Sends first: what is awaited of others goes on meanwhile.
    for (std::size_t i = 0; i < count; ++i) CHECK(finish(*t, sends[i], "send") == out[i].size());
    for (std::size_t i = 0; i < count; ++i) {
      CHECK(finish(*t, receives[i], "receive") == in[i].size());
      CHECK(in[i] == pattern(in[i].size(), 100 * static_cast<std::uint64_t>(prev) + i));
    }
  }
}

TEST_CASE("mpi transport: where one process hides its memory, none reads and messages arrive") {
  int rank = 0, size = 0;
  REQUIRE(MPI_Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS);
  REQUIRE(MPI_Comm_size(MPI_COMM_WORLD, &size) == MPI_SUCCESS);
  for (const int hidden : {0, size - 1}) {
    const WithoutPtrace without(rank == hidden);
    REQUIRE(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);  // all have no right
    const auto t = mpi_transport(MPI_COMM_WORLD);
    for (int peer = 0; peer < size; ++peer) CHECK(!reads(*t, peer, large));
    const auto part = t->split(t->rank() % 2, 0);
    for (int peer = 0; peer < part->size(); ++peer) CHECK(!reads(*part, peer, large));
    contract::traffic(*t, 40, 3, longest_unread);
    REQUIRE(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
  }
  const auto t = mpi_transport(MPI_COMM_WORLD);
  CHECK(reads(*t, (rank + 1) % size, large) == (size > 1));
}

TEST_CASE("mpi transport: who takes a message gets it in parts of whole units, in order") {
  const auto t = mpi_transport(MPI_COMM_WORLD);
  const int next = (t->rank() + 1) % t->size(), prev = (t->rank() + t->size() - 1) % t->size();
  if (t->size() == 1) return;
  constexpr std::size_t unit = 24, bytes = large / unit * unit;
  struct Parts {
    Bytes all;
    std::size_t count = 0;
    bool whole = true;
  } parts;
  const auto take = [](void* to, std::byte* part, std::size_t size) {
    auto& into = *static_cast<Parts*>(to);
    into.all.insert(into.all.end(), part, part + size);
    into.whole &= size % unit == 0;
    ++into.count;
  };
  const Bytes out = pattern(bytes, static_cast<std::uint64_t>(t->rank()));
  Message send, receive;
  t->single_copy()->offer(next, 0, out.data(), bytes, send);
  t->single_copy()->fetch(prev, 0, {&parts, take, unit}, bytes, receive);
  std::size_t found = 0, before = 0, most = 0;  // bytes, the latter of one test
  for (bool complete = false; !complete;) {
    complete = t->test(receive, found);
    most = std::max(most, parts.all.size() - std::exchange(before, parts.all.size()));
    t->idle(200us);
  }
  CHECK(found == bytes);
  CHECK(most < bytes);  // other messages have their turn in between
  finish(*t, send, "send");
  CHECK(parts.all == pattern(bytes, static_cast<std::uint64_t>(prev)));
  CHECK(parts.whole);
  CHECK(parts.count > 1);
}

TEST_CASE("mpi transport: what is of another length than expected is not read") {
  const auto t = mpi_transport(MPI_COMM_WORLD);
  const int next = (t->rank() + 1) % t->size(), prev = (t->rank() + t->size() - 1) % t->size();
  if (t->size() == 1) return;
  const Bytes out = pattern(large, 1);
  Bytes in(large);
  Message send, receive;
  t->single_copy()->offer(next, 0, out.data(), large - 8, send);
  t->single_copy()->fetch(prev, 0, {in.data()}, large, receive);
  CHECK(finish(*t, receive, "receive") == large - 8);
  CHECK(finish(*t, send, "send") == large - 8);
  CHECK(in == Bytes(large));
  t->isend(next, 0, out.data(), 8, send);
  t->single_copy()->fetch(prev, 0, {in.data()}, large, receive);
  CHECK(finish(*t, receive, "receive") == 8);
  finish(*t, send, "send");
  // Nobody is told that it was read.
  t->progress();
  t->isend(next, 0, out.data(), 8, send);
  CHECK(contract::recv(*t, prev, 0, 8) == Bytes(out.begin(), out.begin() + 8));
  finish(*t, send, "send");
}

TEST_CASE("mpi transport: who offers is told if the receiver gives up, or cannot read") {
  const auto t = mpi_transport(MPI_COMM_WORLD);
  const int next = (t->rank() + 1) % t->size(), prev = (t->rank() + t->size() - 1) % t->size();
  if (t->size() == 1) return;
  Bytes in(large);
  Message send, receive;
  const auto refused = [&](Message& message, const char* words) {
    try {
      finish(*t, message, "message");
      FAIL("expected an error");
    } catch (const Error& error) {
      CHECK(error.code == ErrorCode::transport);
      CHECK(std::string(error.what()).find(words) != std::string::npos);
    }
  };
  // Nothing lies at the lowest addresses; of the other, all but the end can be read.
  const ShortOfReadable most(large);
  for (const void* const data : {reinterpret_cast<const void*>(64), most.data()}) {
    t->single_copy()->offer(next, 0, data, large, send);
    t->single_copy()->fetch(prev, 0, {in.data()}, large, receive);
    refused(receive, "process_vm_readv said: Bad address");
    refused(send, "gave up");
    // As whoever abandons all that is under way does.
    t->cancel(receive);
    t->cancel(send);
  }
  // What comes behind the announcement has been received, so the announcement has, too.
  const std::byte behind{1};
  std::byte got{};
  Message last;
  t->single_copy()->fetch(prev, 0, {in.data()}, large, receive);
  t->single_copy()->offer(next, 0, in.data(), large, send);
  t->isend(next, 0, &behind, 1, last);
  CHECK(recv(*t, {prev, 0, &got, 1}) == 1);
  t->cancel(receive);
  refused(send, "gave up");
  finish(*t, last, "send");
  MPI_Barrier(MPI_COMM_WORLD);
  t->single_copy()->fetch(prev, 0, {in.data()}, large, receive);
  t->single_copy()->offer(next, 0, in.data(), large, send);
  t->cancel(receive);  // whether it has come or not
  t->cancel(send);
  MPI_Barrier(MPI_COMM_WORLD);
  // The transport is still good, and nobody's messages are another's.
  const auto part = t->split(0, 0);
  for (Transport* const still : {t.get(), part.get()}) {
    const Bytes out[] = {pattern(large, 1), pattern(large, 2)};
    Bytes both[] = {Bytes(large), Bytes(large)};
    Message sends[2], receives[2];
    for (const std::size_t i : {0u, 1u}) {
      still->single_copy()->fetch(prev, 1, {both[i].data()}, large, receives[i]);
      still->single_copy()->offer(next, 1, out[i].data(), large, sends[i]);
    }
    for (const std::size_t i : {0u, 1u}) {
      CHECK(finish(*still, receives[i], "receive") == large);
      CHECK(both[i] == out[i]);
    }
    for (Message& one : sends) finish(*still, one, "send");
  }
}

TEST_CASE("mpi transport: what a fold throws is its own receive's, whoever runs it") {
  // A duplicate of the communicator has the attribute, too, and counts when it is freed.
  static int freed = 0;
  int key = MPI_KEYVAL_INVALID;
  const auto on_free = [](MPI_Comm, int, void*, void*) { return ++freed, MPI_SUCCESS; };
  MPI_Comm_create_keyval(MPI_COMM_DUP_FN, on_free, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_WORLD, key, nullptr);
  auto t = mpi_transport(MPI_COMM_WORLD);
  MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
  MPI_Comm_free_keyval(&key);
  freed = 0;
  enum class Awaits { recv, fetch, offer };
  for (const Awaits awaits : {Awaits::recv, Awaits::fetch, Awaits::offer}) {
    CAPTURE(static_cast<int>(awaits));
    if (t->size() == 1) continue;
    Message folded, other;
    const Bytes data = pattern(large, 1);
    Bytes in(large);
    if (t->rank() == 0) {
      t->single_copy()->offer(1, 1, data.data(), large, folded);
      CHECK_THROWS_WITH_AS(finish(*t, folded, "offer"), doctest::Contains("gave up"), Error);
      // Only now: so the other rank folds while it awaits this.
      if (awaits == Awaits::recv) t->isend(1, 2, data.data(), 8, other);
      if (awaits == Awaits::fetch) t->single_copy()->offer(1, 2, data.data(), large, other);
      if (awaits == Awaits::offer) t->single_copy()->fetch(1, 2, {in.data()}, large, other);
      finish(*t, other, "the other message");
    } else if (t->rank() == 1) {
      int parts = 0;
      const auto take = [](void* count, std::byte*, std::size_t) {
        if (++*static_cast<int*>(count) == 2) throw std::runtime_error("no fold");
      };
      t->single_copy()->fetch(0, 1, {&parts, take}, large, folded);
      if (awaits == Awaits::recv) t->irecv(0, 2, in.data(), 8, other);
      if (awaits == Awaits::fetch) t->single_copy()->fetch(0, 2, {in.data()}, large, other);
      if (awaits == Awaits::offer) t->single_copy()->offer(0, 2, data.data(), large, other);
      CHECK(finish(*t, other, "the other message") == (awaits == Awaits::recv ? 8 : large));
      CHECK_THROWS_WITH_AS(finish(*t, folded, "fetch"), "no fold", std::runtime_error);
      CHECK(parts == 2);
      if (awaits == Awaits::fetch) CHECK(in == data);
    }
    contract::order(*t);
  }
  // Those that have abandoned a message leave the communicator to MPI_Finalize.
  const bool abandoned = t->size() > 1 && t->rank() < 2;
  t.reset();
  CHECK(freed == (abandoned ? 0 : 1));
}

TEST_CASE("mpi transport: what nobody received reaches no later transport") {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int next = (rank + 1) % size, prev = (rank + size - 1) % size;
  if (size == 1) return;
  const Bytes stale = pattern(8, 1), fresh = pattern(8, 2);
  enum class Left { not_received, given_up, given_up_and_sent_later };
  for (const Left left : {Left::not_received, Left::given_up, Left::given_up_and_sent_later}) {
    CAPTURE(static_cast<int>(left));
    auto before = mpi_transport(MPI_COMM_WORLD);
    const bool later = left == Left::given_up_and_sent_later;
    const bool gives_up = later ? rank == 1 : left == Left::given_up;
    if (gives_up) {
      Message receive;
      Bytes none(8);
      before->irecv(prev, 0, none.data(), 8, receive);
      before->cancel(receive);
      if (later) before.reset();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (!later || next == 1) {
      Message send;
      before->isend(next, 0, stale.data(), 8, send);
      finish(*before, send, "send");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    before.reset();
    const auto t = mpi_transport(MPI_COMM_WORLD);
    Message send;
    t->isend(next, 0, fresh.data(), 8, send);
    CHECK(contract::recv(*t, prev, 0, 8) == fresh);
    finish(*t, send, "send");
  }
}

TEST_CASE("mpi transport: whatever a rank does meanwhile, what others wait for is read") {
  const auto t = mpi_transport(MPI_COMM_WORLD);
  if (t->size() == 1) return;
  constexpr int wanted = 1, awaited = 2, told = 3;  // tags
  enum class Does { awaits_fetch, awaits_recv, progresses };
  for (const Does does : {Does::awaits_fetch, Does::awaits_recv, Does::progresses}) {
    const Bytes out = pattern(large, 1);
    Message first, second;
    if (t->rank() == 1) {
      t->single_copy()->offer(0, wanted, out.data(), large, first);
      CHECK(finish(*t, first, "offer") == large);
      if (does == Does::awaits_fetch)
        t->single_copy()->offer(0, awaited, out.data(), large, second);
      if (does == Does::awaits_recv) t->isend(0, awaited, out.data(), 8, second);
      if (does == Does::progresses)
        MPI_Send(nullptr, 0, MPI_BYTE, 0, told, MPI_COMM_WORLD);
      else
        finish(*t, second, "second");
    } else if (t->rank() == 0) {
      Bytes in(large), more(large);
      t->single_copy()->fetch(1, wanted, {in.data()}, large, first);
      if (does == Does::awaits_fetch)
        t->single_copy()->fetch(1, awaited, {more.data()}, large, second);
      if (does == Does::awaits_recv) t->irecv(1, awaited, more.data(), 8, second);
      if (does == Does::progresses) {
        const auto deadline = std::chrono::steady_clock::now() + 60s;
        for (int arrived = 0; arrived == 0;) {
          t->progress();
          MPI_Iprobe(1, told, MPI_COMM_WORLD, &arrived, MPI_STATUS_IGNORE);
          REQUIRE(std::chrono::steady_clock::now() < deadline);
        }
        MPI_Recv(nullptr, 0, MPI_BYTE, 1, told, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else {
        finish(*t, second, "second");
      }
      CHECK(finish(*t, first, "fetch") == large);
      CHECK(in == out);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("mpi transport: there are answers for more messages than tags") {
  const auto t = mpi_transport(MPI_COMM_WORLD);
  if (t->size() != 2) return;
  constexpr std::size_t least = 6 << 10;
  constexpr int tags = 1 << 15;
  REQUIRE(reads(*t, 1 - t->rank(), least));
  Bytes in(least), out(least);
  std::size_t wrong = 0;
  for (int i = 0; i < tags + 2; ++i) {
    Message message;
    const auto mark = static_cast<std::byte>(i);
    if (t->rank() == 0) {
      out.front() = out.back() = mark;
      t->single_copy()->offer(1, 0, out.data(), least, message);
    } else {
      t->single_copy()->fetch(0, 0, {in.data()}, least, message);
    }
    wrong += finish(*t, message, "message") != least;
    if (t->rank() == 1) wrong += in.front() != mark || in.back() != mark;
  }
  CHECK(wrong == 0);
}

TEST_CASE("mpi transport: only processes of one's own host are read") {
  const auto t = mpi_transport(MPI_COMM_WORLD);
  const int rank = t->rank(), size = t->size();
  std::vector<baton::transport::Place> places;
  for (int r = 0; r < size; ++r) places.push_back({static_cast<std::uint64_t>(r % 2), 0, 1});
  const std::vector<pid_t> found = transport::readable_processes(*t, places);
  REQUIRE(found.size() == places.size());
  for (int peer = 0; peer < size; ++peer) {
    const pid_t process = found[static_cast<std::size_t>(peer)];
    CHECK((process != 0) == (peer != rank && peer % 2 == rank % 2));
    CHECK(process != getpid());
  }
}

TEST_CASE("mpi transport: BATON_SINGLE_COPY=0 leaves large messages to MPI") {
  {
    const SingleCopyVariable off("0");
    const auto t = mpi_transport(MPI_COMM_WORLD);
    for (int peer = 0; peer < t->size(); ++peer) CHECK(!reads(*t, peer, large));
  }
  const SingleCopyVariable wrong("yes");
  CHECK_THROWS_WITH_AS(static_cast<void>(mpi_transport(MPI_COMM_WORLD)),
                       "BATON_SINGLE_COPY: expected 0 or 1, found 'yes'", Error);
}
