#include "baton/ucx.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "baton/mpi.hpp"
#include "baton/staged.hpp"
#include "cases.hpp"
#include "communicator/stream_cases.hpp"
#include "contract.hpp"
#include "support/ranks.hpp"
#include "transport/place.hpp"

using namespace baton;
using namespace std::chrono_literals;
using contract::Bytes;
using contract::finish;
using contract::pattern;
using support::error_of;
using support::holds;

namespace {

std::unique_ptr<Transport> world(const UcxOptions& options = {}) {
  const auto bootstrap = mpi_transport(MPI_COMM_WORLD);
  return ucx_transport(*bootstrap, options);
}

int next(const Transport& t) { return (t.rank() + 1) % t.size(); }
int last(const Transport& t) { return (t.rank() + t.size() - 1) % t.size(); }

/// Calls `t` until a message has come from `peer` through `meeting`.
void progress_until_told(Transport& t, Transport& meeting, int peer) {
  Message m;
  meeting.irecv(peer, 0, nullptr, 0, m);
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  for (std::size_t bytes = 0; !meeting.test(m, bytes);) {
    t.progress();
    REQUIRE(std::chrono::steady_clock::now() < deadline);
  }
}

bool slow_yields = false;
int slow_yields_made = 0;

}  // namespace

/// If asked, as slow as on a core that a computation gives back late.
extern "C" int sched_yield() noexcept {
  static const auto next = reinterpret_cast<int (*)()>(dlsym(RTLD_NEXT, "sched_yield"));
  if (slow_yields) {
    ++slow_yields_made;
    std::this_thread::sleep_for(20ms);
  }
  return next();
}

TEST_CASE("ucx transport: a rank with a busy core gives up a message soon") {
  const auto t = world();
  if (t->size() == 1) return;
  constexpr std::size_t length = 8 << 20;
  const Bytes data = pattern(length, static_cast<std::uint64_t>(t->rank()));
  Message sent;
  t->isend(next(*t), 0, data.data(), length, sent);
  slow_yields = true;
  slow_yields_made = 0;
  t->cancel(sent);
  slow_yields = false;
  CHECK(slow_yields_made < 10);  // of 100 polls; UCX yields, too
  CHECK(support::same_bytes(contract::recv(*t, last(*t), 0, length),
                            pattern(length, static_cast<std::uint64_t>(last(*t)))));
  contract::send(*t, last(*t), 1, {});
  contract::recv(*t, next(*t), 1, 0);  // the data is there until its receiver has it
}

TEST_CASE("ucx transport: keeps the contract") {
  const auto t = world();
  contract::everything(*t, false);
  contract::traffic(*t, 40, 3);
  contract::traffic(*t, 6, 4, 3 << 20);
}

TEST_CASE("ucx transport: a longer message is reported by its length and stays within its room") {
  const auto t = world();
  // Eager in one piece and in several, and by rendezvous; expected and not; to oneself as well.
  const std::size_t pairs[][2] = {{16, 10},         {16, 0},        {5000, 100},
                                  {5000, 0},        {60000, 59999}, {200000, 9000},
                                  {200000, 199999}, {3 << 20, 7},   {3 << 20, 2 << 20}};
  for (const bool receive_first : {false, true}) {
    for (const auto& pair : pairs) {
      const std::size_t sent = pair[0], room = pair[1];
      const Bytes out = pattern(sent, sent), margin = pattern(sent + 4096, 9);
      Bytes in = margin;
      Message sending, receiving;
      if (receive_first) t->irecv(last(*t), 4, in.data(), room, receiving);
      contract::meet(*t);
      t->isend(next(*t), 4, out.data(), sent, sending);
      if (!receive_first) {
        for (int i = 0; i < 50; ++i) t->progress();
        t->irecv(last(*t), 4, in.data(), room, receiving);
      }
      INFO(std::to_string(sent), " into ", std::to_string(room), ", receive first ", receive_first);
      CHECK(finish(*t, receiving, "longer") == sent);
      CHECK(finish(*t, sending, "longer: send") == sent);
      CHECK(contract::same_bytes(std::span(in).subspan(room), std::span(margin).subspan(room)));
    }
  }
  contract::order(*t);  // it is still good
}

TEST_CASE("places: ranks of one machine share the fewest cores that one of them sees") {
  using transport::Place;
  CHECK(transport::shared_cores(std::vector<Place>{{1, 7, 4}, {2, 7, 3}, {1, 7, 8}}) == 3);
  CHECK(transport::shared_cores(std::vector<Place>{{1, 7, 4}, {2, 8, 4}}) == 0);
  CHECK(transport::crowded(std::vector<Place>{{1, 7, 1}, {2, 7, 2}, {3, 8, 1}}, 0));
  CHECK_FALSE(transport::crowded(std::vector<Place>{{1, 7, 1}, {2, 7, 2}, {3, 8, 1}}, 1));
}

TEST_CASE("ucx transport: all ranks of a machine know its cores") {
  const auto t = world();
  CHECK(t->capabilities().cores == sysconf(_SC_NPROCESSORS_ONLN));
  CHECK(t->split(t->rank() % 2, 0)->capabilities().cores == t->capabilities().cores);
}

TEST_CASE("ucx transport: a segment of TCP leaves though its receiver does nothing") {
  const char* const over = std::getenv("BATON_UCX_TLS");
  const auto t = world();
  if (t->size() == 1 || over == nullptr || std::string(over) != "tcp,self") return;
  const auto meeting = mpi_transport(MPI_COMM_WORLD);
  contract::meet(*t);  // connects the ranks
  const Bytes segment = pattern(65'000, 1);
  Message m;
  if (t->rank() == 0) {
    t->isend(1, 0, segment.data(), segment.size(), m);
    CHECK(finish(*t, m, "send") == segment.size());
  }
  contract::meet(*meeting);
  if (t->rank() == 1) CHECK(contract::recv(*t, 0, 0, segment.size()) == segment);
  contract::meet(*t);
}

TEST_CASE("ucx transport: several groups of the same ranks do not meet") {
  const auto a = world(), b = world();
  const auto c = a->split(0, 0), d = a->split(0, 0);
  Transport* groups[] = {a.get(), b.get(), c.get(), d.get()};
  Message messages[4];
  const Bytes sent[] = {pattern(8, 1), pattern(8, 2), pattern(8, 3), pattern(8, 4)};
  for (std::size_t i = 4; i-- > 0;) groups[i]->isend(next(*a), 0, sent[i].data(), 8, messages[i]);
  for (std::size_t i = 0; i < 4; ++i) CHECK(contract::recv(*groups[i], last(*a), 0, 8) == sent[i]);
  for (std::size_t i = 0; i < 4; ++i) finish(*groups[i], messages[i], "send");
}

TEST_CASE("ucx transport: a split is used at once, by those who are through with it") {
  const auto t = world();
  for (int turn = 0; turn < 20; ++turn) {
    const auto all = t->split(0, -t->rank());
    Message m;
    const auto seed = [&](int rank) { return static_cast<std::uint64_t>(100 * turn + rank); };
    const Bytes out = pattern(300, seed(all->rank()));
    all->isend(next(*all), 0, out.data(), out.size(), m);
    const auto half = all->split(all->rank() % 2, 0);
    CHECK(contract::recv(*all, last(*all), 0, 300) == pattern(300, seed(last(*all))));
    finish(*all, m, "send");
    contract::meet(*half);
  }
}

TEST_CASE("ucx transport: ranks that have split more often than others agree with them") {
  const auto t = world();
  const auto half = t->split(t->rank() % 2, 0);
  if (t->rank() % 2 == 0)
    for (int turn = 0; turn < 3; ++turn) contract::meet(*half->split(0, 0));
  const auto all = t->split(0, 0);
  contract::traffic(*all, 4, 1);
}

TEST_CASE("ucx transport: groups outlive the one that they are parts of") {
  auto t = world();
  auto half = t->split(t->rank() % 2, 0);
  t.reset();
  const auto all = half->split(0, 0);
  half.reset();
  contract::traffic(*all, 6, 1);
}

TEST_CASE("ucx transport: what was sent arrives, though its sender leaves at once") {
  for (int turn = 0; turn < 5; ++turn) {
    auto t = world();
    constexpr int many = 40;
    std::vector<Bytes> data(many);
    if (t->rank() != 0) {
      // More than its receiver looks at before the senders are on their way out.
      for (int i = 0; i < many; ++i) {
        data[i] = pattern(4000, static_cast<std::uint64_t>(100 * t->rank() + i));
        contract::send(*t, 0, i % 3, data[i]);
      }
      t.reset();
    } else {
      for (int from = t->size() - 1; from > 0; --from)
        for (int i = 0; i < many; ++i)
          CHECK(contract::recv(*t, from, i % 3, 4000) ==
                pattern(4000, static_cast<std::uint64_t>(100 * from + i)));
    }
  }
}

TEST_CASE("ucx transport: who leaves is let go by those who stay and progress") {
  const auto meeting = mpi_transport(MPI_COMM_WORLD);
  auto t = world({.farewell = 1h});
  contract::meet(*t);
  if (t->rank() != 0) {
    t.reset();
    contract::send(*meeting, 0, 0, {});
    return;
  }
  for (int left = t->size() - 1; left > 0; --left) progress_until_told(*t, *meeting, left);
}

TEST_CASE("ucx transport: leaving ends, though another rank does nothing") {
  auto t = world({.farewell = 200ms});
  contract::meet(*t);
  const auto meeting = mpi_transport(MPI_COMM_WORLD);
  if (t->rank() == 0) {
    contract::meet(*meeting);
  } else {
    t.reset();
    contract::meet(*meeting);
  }
}

TEST_CASE("ucx transport: who waits for a rank that has left is told so") {
  auto t = world();
  contract::meet(*t);
  if (t->size() == 1) return;
  if (t->rank() == t->size() - 1) {
    t.reset();
    return;
  }
  if (t->rank() != 0) return;
  const int gone = t->size() - 1;
  Message m;
  Bytes room(10);
  t->irecv(gone, 0, room.data(), room.size(), m);
  const auto told = [&](const Error& error) {
    CHECK(error.code == ErrorCode::transport);
    CHECK(error.rank == 0);
    CHECK(error.peer == gone);
    CHECK(error.backend_code != 0);
    CHECK(!error.backend_text.empty());
    CHECK(holds(error.what(), {"with rank " + std::to_string(gone), error.backend_text}));
  };
  told(error_of([&] { finish(*t, m, "what never comes"); }));
  told(error_of([&] { t->isend(gone, 0, room.data(), room.size(), m); }));
  CHECK(contract::recv(*t, 0, 1, (contract::send(*t, 0, 1, Bytes(5)), 5)) == Bytes(5));
}

TEST_CASE("ucx transport: a forked child that ends does not end its parent's part") {
  const auto meeting = mpi_transport(MPI_COMM_WORLD);
  auto t = world({.farewell = 2s});
  contract::meet(*t);
  if (t->rank() == 0) {
    const pid_t child = fork();
    if (child == 0) {
      t.reset();
      _exit(0);
    }
    REQUIRE(waitpid(child, nullptr, 0) == child);
  }
  contract::meet(*meeting);  // the others call nothing meanwhile
  contract::traffic(*t, 6, 1);
}

TEST_CASE("ucx transport: a receive given up does not hang, whether its sender comes or not") {
  const auto meeting = mpi_transport(MPI_COMM_WORLD);
  for (int turn = 0; turn < 16; ++turn) {
    Bytes room(100), data(4 << 20);  // in use until the transport has gone
    auto t = world({.farewell = 1h});
    Message never, late;
    t->irecv(next(*t), 5, room.data(), room.size(), never);
    t->cancel(never);
    if (t->size() < 2 || t->rank() > 1) continue;
    if (t->rank() == 0) {
      t->isend(1, 6, data.data(), data.size(), late);
      contract::send(*t, 1, 7, {});
      contract::recv(*t, 1, 8, 0);
      t->cancel(late);
    } else {
      contract::recv(*t, 0, 7, 0);
      t->irecv(0, 6, data.data(), data.size(), late);
      t->cancel(late);  // on its way, or not begun
      contract::send(*t, 0, 8, {});
    }
    // Both leave, or one stays until the other has left.
    const int stays = turn % 3;
    if (t->rank() == stays) progress_until_told(*t, *meeting, 1 - stays);
    t.reset();
    if (meeting->rank() == 1 - stays) contract::send(*meeting, stays, 0, {});
  }
}

TEST_CASE("ucx transport: what it says of itself") {
  const auto t = world();
  const Capabilities can = t->capabilities();
  CHECK(can.name == "ucx");
  CHECK(holds(can.library, {"UCX 1."}));
  CHECK(can.tags >= 1'000'000);
  CHECK(!can.concurrent);
  CHECK(world({.concurrent = true})->capabilities().concurrent);
  REQUIRE(t->capabilities().hosts.size() == static_cast<std::size_t>(t->size()));
  CHECK(std::ranges::all_of(t->capabilities().hosts, [](int host) { return host == 0; }));
}

TEST_CASE("ucx transport: several threads, each with groups of its own, which it splits") {
  cases::threads_with_groups(*world({.concurrent = true}), 4);
}

TEST_CASE("ucx transport: who sleeps is woken when another thread completes its message") {
  const auto t = world({.concurrent = true});
  if (t->size() == 1) return;
  const auto other = t->split(0, 0);
  for (int round = 0; round < 20; ++round) {
    if (t->rank() != 0) {
      std::this_thread::sleep_for(30ms);
      contract::send(*t, 0, round, {});
      continue;
    }
    std::atomic<bool> all_came = false;
    std::thread completes([&] {
      while (!all_came) other->progress();
    });
    for (int peer = 1; peer < t->size(); ++peer) {
      Message m;
      t->irecv(peer, round, nullptr, 0, m);
      for (std::size_t bytes = 0; !t->test(m, bytes);) t->idle(1h);
    }
    all_came = true;
    completes.join();
  }
}

TEST_CASE("ucx transport: who sleeps is woken though another thread is about to sleep") {
  const auto t = world({.concurrent = true});
  if (t->size() == 1) return;
  const auto ours = t->split(0, 0), other = t->split(0, 0);
  const auto sleep_until_came = [](Transport& group, int tag) {
    Message m;
    group.irecv(1, tag, nullptr, 0, m);
    for (std::size_t bytes = 0; !group.test(m, bytes);) group.idle(1h);
  };
  constexpr int rounds = 200;
  if (t->rank() == 0) {
    std::thread waits([&] { sleep_until_came(*other, 0); });
    for (int round = 0; round < rounds; ++round) {
      sleep_until_came(*ours, 1);
      contract::send(*ours, 1, 2, {});
    }
    waits.join();
  } else if (t->rank() == 1) {
    for (int round = 0; round < rounds; ++round) {
      std::this_thread::sleep_for(3ms);  // until both threads sleep, or nearly
      contract::send(*ours, 0, 1, {});
      contract::recv(*ours, 0, 2, 0);
    }
    contract::send(*other, 0, 0, {});
  }
}

TEST_CASE("ucx transport: collectives in streams, staged through the host's memory") {
  const int size = mpi_transport(MPI_COMM_WORLD)->size();
  stream_cases::TestDevice test_device = stream_cases::stand_in({.seed = 7});
  test_device.launch = [device = test_device.device](const auto& body) {
    body(staged_transport(world({.concurrent = true}), device, 50));
  };
  stream_cases::every_collective(size, test_device);
  stream_cases::in_order(size, test_device);
  stream_cases::many_ranks(size, test_device);
  if (size == 4) stream_cases::tensors(test_device);
}

TEST_CASE("ucx transport: collectives") {
  Communicator c(world(), support::test_options());
  cases::collectives(c);
}

TEST_CASE("ucx transport: collectives by rendezvous") {
  Communicator c(world(), support::test_options());
  cases::long_collectives(c);
}

TEST_CASE("ucx transport: a probe names the sender of a message that nobody has asked for") {
  Communicator c(world());
  cases::probes(c);
}
