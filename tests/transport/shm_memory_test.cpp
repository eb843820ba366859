/// The shared memory transport between threads, which map each other's memory as processes do.

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "baton/communicator.hpp"
#include "cases.hpp"
#include "contract.hpp"
#include "shm_worlds.hpp"
#include "support/ranks.hpp"
#include "support/sanitizer.hpp"
#include "transport/shm/ring.hpp"

using namespace baton;
using namespace std::chrono_literals;
using contract::Bytes;
using contract::finish;
using contract::pattern;
using shm_worlds::both_ways;
using shm_worlds::InParts;
using shm_worlds::on_exchanges;
using shm_worlds::on_worlds;
using support::error_of;
using support::holds;
using support::same_bytes;

TEST_CASE("shm ring: records of all lengths come in order, whoever is faster") {
  constexpr std::size_t bytes = 2048;
  alignas(64) std::byte memory[bytes] = {};
  shm::RingHead head{};
  shm::RingWriter writer(head, memory, bytes);
  shm::RingReader reader(head, memory, bytes);
  std::uint64_t written = 0, taken = 0;
  const auto length = [](std::uint64_t number) { return number * 37 % 497; };
  std::minstd_rand random(1);
  while (taken < 20'000) {
    for (auto turns = random() % 9; turns > 0; --turns) {
      const std::size_t content = length(written);
      shm::Record* const record = writer.reserve(content);
      if (record == nullptr) break;
      record->bytes = static_cast<std::uint32_t>(content);
      record->tag = static_cast<std::int32_t>(written);
      std::memset(record->content(), static_cast<int>(written % 251), content);
      writer.publish(*record, shm::Kind::whole);
      ++written;
    }
    for (auto turns = random() % 9; turns > 0; --turns) {
      shm::Record* const record = reader.front();
      if (record == nullptr) break;
      REQUIRE(record->tag == static_cast<std::int32_t>(taken));
      REQUIRE(record->bytes == length(taken));
      REQUIRE(std::all_of(record->content(), record->content() + record->bytes,
                          [&](std::byte b) { return b == std::byte(taken % 251); }));
      reader.pop(*record);
      ++taken;
      CHECK_FALSE(reader.give_back());
    }
  }
}

TEST_CASE("shm ring: a full ring takes nothing until its reader gives back, and then tells so") {
  alignas(64) std::byte memory[2048] = {};
  shm::RingHead head{};
  shm::RingWriter writer(head, memory, sizeof memory);
  shm::RingReader reader(head, memory, sizeof memory);
  int count = 0;
  while (shm::Record* const record = writer.reserve(8)) {
    record->bytes = 8;
    writer.publish(*record, shm::Kind::whole);
    ++count;
  }
  CHECK(count == 31);  // a granule stays empty
  writer.await_room();
  CHECK(writer.reserve(8) == nullptr);
  reader.pop(*reader.front());
  CHECK(writer.reserve(8) == nullptr);
  CHECK(reader.give_back());
  CHECK(writer.reserve(8) != nullptr);
  CHECK_FALSE(reader.give_back());
}

TEST_CASE("shm transport: keeps the contract") {
  both_ways([] {
    for (int size : {1, 2, 3, 5, 8}) {
      CAPTURE(size);
      on_worlds(size, [](auto t) {
        contract::everything(*t, true);
        if (t->size() == 3) contract::traffic(*t, 40, 3);
        if (t->size() == 3) contract::traffic(*t, 6, 4, 3 << 20);
      });
    }
  });
}

TEST_CASE("shm transport: many ranks") {
  both_ways([] {
    on_worlds(48, [](auto t) {
      contract::traffic(*t, 3, 1);
      const auto part = t->split(t->rank() % 7, 0);
      contract::traffic(*part, 3, 2);
    });
  });
}

TEST_CASE("shm transport: a longer message is reported by its length and stays within its room") {
  both_ways([] {
    on_worlds(3, [](auto t) {
      const int next = (t->rank() + 1) % 3, last = (t->rank() + 2) % 3;
      for (const auto& [sent, room] : std::vector<std::pair<std::size_t, std::size_t>>{
               {16, 10}, {16, 0}, {8192, 100}, {60000, 59999}, {200000, 0}, {3 << 20, 2 << 20}})
        for (const int to : {next, t->rank()}) {
          const int from = to == next ? last : t->rank();
          const Bytes out = pattern(sent, sent), margin = pattern(sent + 4096, 9);
          Bytes in = margin;
          Message sending, receiving;
          t->isend(to, 4, out.data(), sent, sending);
          t->irecv(from, 4, in.data(), room, receiving);
          CHECK(finish(*t, receiving, "longer") == sent);
          CHECK(finish(*t, sending, "longer: send") == sent);
          CHECK(same_bytes(std::span(in).first(room), std::span(out).first(room)));
          CHECK(same_bytes(std::span(in).subspan(room), std::span(margin).subspan(room)));
        }
    });
  });
}

TEST_CASE("shm transport: more messages than the ring and the offers have room for") {
  both_ways([] {
    on_worlds(3, [](auto t) {
      constexpr std::size_t count = 17'000;
      for (const std::size_t length : {std::size_t{100}, std::size_t{9000}}) {
        // Of the long ones, which nobody has asked for, some are given up again.
        const auto kept = [&](std::size_t i) { return length == 100 || i % 1000 != 2; };
        std::deque<Message> messages(count);
        const Bytes data = pattern(length + count, length);
        const auto part = [&](std::size_t i) { return data.data() + i; };
        if (t->rank() == 0) {
          for (std::size_t i = 0; i < count; ++i) t->isend(1, 5, part(i), length, messages[i]);
          for (std::size_t i = 0; i < count; ++i)
            if (!kept(i)) t->cancel(messages[i]);
          contract::send(*t, 2, 6, {});          // later messages to rank 1 wait
          for (std::size_t i = count; i-- > 0;)  // the last first
            if (kept(i)) finish(*t, messages[i], "many: send");
        } else if (t->rank() == 2) {
          contract::recv(*t, 0, 6, 0);
          contract::send(*t, 1, 6, {});
        } else {
          contract::recv(*t, 2, 6, 0);
          bool good = true;
          for (std::size_t i = 0; i < count; ++i)
            if (kept(i)) {
              const Bytes got = contract::recv(*t, 0, 5, length);
              good &= same_bytes(got, std::span(part(i), length));
            }
          CHECK(good);
        }
      }
      contract::meet(*t);
    });
  });
}

TEST_CASE("shm transport: a receive that is given up midway releases its sender") {
  both_ways([] {
    on_worlds(2, [](auto t) {
      constexpr std::size_t length = 5 << 20;
      Message m;
      std::size_t bytes = 0;
      if (t->rank() == 0) {
        const Bytes data = pattern(length, 1);
        t->isend(1, 7, data.data(), length, m);
        contract::send(*t, 1, 9, {});
        // In parts, it is sent to its end.
        if (std::getenv("BATON_SINGLE_COPY") != nullptr) {
          CHECK(finish(*t, m, "given up") == length);
        } else {
          const Error error = error_of([&] { finish(*t, m, "given up"); });
          CHECK_MESSAGE(holds(error.what(), {"rank 0", "with rank 1", "gave it up"}),
                        std::string(error.what()));
        }
      } else {
        Bytes room(length);
        contract::recv(*t, 0, 9, 0);
        t->irecv(0, 7, room.data(), length, m);
        CHECK_FALSE(t->test(m, bytes));
        t->cancel(m);
        room.assign(length, std::byte{7});
        contract::order(*t);
        CHECK(room == Bytes(length, std::byte{7}));
        return;
      }
      contract::order(*t);
    });
  });
}

TEST_CASE("shm transport: who waits for a rank that has left is told so, after what it sent") {
  on_worlds(3, [](auto t) {
    contract::meet(*t);
    if (t->rank() == 2) {
      contract::send(*t, 0, 1, pattern(500, 1));
      t.reset();
      return;
    }
    if (t->rank() != 0) return;
    Message m;
    Bytes room(10);
    t->irecv(2, 0, room.data(), room.size(), m);
    const auto told = [&](const Error& error) {
      CHECK(error.code == ErrorCode::transport);
      CHECK(error.rank == 0);
      CHECK(error.peer == 2);
      CHECK(holds(error.what(), {"rank 0", "with rank 2", "has left"}));
    };
    told(error_of([&] { finish(*t, m, "what never comes"); }));
    CHECK(contract::recv(*t, 2, 1, 500) == pattern(500, 1));
    told(error_of([&] { t->isend(2, 0, room.data(), room.size(), m); }));
  });
}

TEST_CASE("shm transport: who sleeps is woken by a message, a read and room") {
  on_worlds(2, [](auto t) {
    const auto end = std::chrono::steady_clock::now() + 60s;
    const auto sleep_until_done = [&](Message& m) {
      for (std::size_t bytes = 0; !t->test(m, bytes);) {
        t->idle(1h);
        REQUIRE(std::chrono::steady_clock::now() < end);
      }
    };
    for (int round = 0; round < 10; ++round) {
      Message m;
      Bytes data(1 << 20);
      if (t->rank() == 0) {
        std::this_thread::sleep_for(20ms);
        contract::send(*t, 1, 1, {});
        std::this_thread::sleep_for(20ms);
        contract::recv(*t, 1, 2, data.size());
        std::this_thread::sleep_for(20ms);
        for (int i = 0; i < 1000; ++i) contract::recv(*t, 1, 3, 4000);
      } else {
        t->irecv(0, 1, nullptr, 0, m);
        sleep_until_done(m);
        t->isend(0, 2, data.data(), data.size(), m);
        sleep_until_done(m);
        for (int i = 0; i < 1000; ++i) {
          t->isend(0, 3, data.data(), 4000, m);
          sleep_until_done(m);
        }
      }
    }
  });
}

TEST_CASE("shm transport: several threads, each with groups of its own, which it splits") {
  on_worlds(2, [](auto t) { cases::threads_with_groups(*t, 3); }, {.concurrent = true});
}

TEST_CASE("shm transport: collectives") {
  both_ways([] {
    for (const int size : support::under_sanitizer ? std::vector{3} : std::vector{2, 5})
      on_worlds(size, [](auto t) {
        Communicator c(std::move(t), support::test_options());
        cases::collectives(c);
        cases::long_collectives(c);
        cases::probes(c);
      });
  });
}

TEST_CASE("shm transport: an operation that throws breaks the communicator, not the program") {
  both_ways([] {
    on_worlds(2, [](auto t) {
      Communicator c(std::move(t), support::giving_up_after(5s));
      const Op throws = Op::user([](void*, const void*, const void*, std::size_t,
                                    void*) { throw std::runtime_error("no sum today"); },
                                 nullptr, true, "throws");
      for (const std::size_t count : {4, 300, 50'000})
        for (const bool at_once : {true, false}) {
          Communicator part = c.split(0);
          std::vector<float> x(count, 1), y(count, 1);
          const auto failing = [&] {
            if (at_once) return part.all_reduce(x, throws, {"recursive_doubling", 0});
            Request other = part.start_all_reduce(y, throws);
            part.start_all_reduce(x, throws, {"ring", 0}).wait();
            other.wait();
          };
          try {
            failing();
            FAIL_CHECK("expected an exception");
          } catch (const std::exception& error) {
            // Of this rank's, or told by the other; or that gave up a message of this rank before.
            const std::string said = error.what();
            CHECK_MESSAGE((holds(said, {"no sum today"}) || holds(said, {"gave it up midway"})),
                          said);
          }
          CHECK(error_of([&] { part.barrier(); }).code != ErrorCode::unsupported);
          c.barrier();
        }
      std::vector<float> x(50'000, 1);
      c.all_reduce(x, sum);
      CHECK(x == std::vector<float>(50'000, 2));
    });
  });
}

TEST_CASE("shm transport: what a fold throws is its own receive's, whoever runs it") {
  on_worlds(2, [](auto t) {
    for (const std::size_t bytes : {1000, 100'000}) {  // from the ring, in the sender's memory
      REQUIRE(t->single_copy()->reads(1 - t->rank()));
      Message folded;
      const Bytes data(bytes);
      if (t->rank() == 0) {
        t->single_copy()->offer(1, 1, data.data(), bytes, folded);
        contract::send(*t, 1, 2, data);
        if (bytes == 1000)
          finish(*t, folded, "offer");
        else
          CHECK(holds(error_of([&] { finish(*t, folded, "offer"); }).what(), {"gave it up"}));
      } else {
        Message plain;
        Bytes room(bytes);
        t->single_copy()->fetch(
            0, 1,
            {.data = nullptr,
             .take = [](void*, std::byte*, std::size_t) { throw std::runtime_error("no fold"); }},
            bytes, folded);
        t->irecv(0, 2, room.data(), bytes, plain);
        CHECK(finish(*t, plain, "the other message") == bytes);
        CHECK_THROWS_WITH_AS(finish(*t, folded, "fetch"), "no fold", std::runtime_error);
      }
      contract::order(*t);
    }
  });
}

TEST_CASE("shm transport: a forked child that ends does not end its parent's part") {
  auto t = shm_transport(0, 1, Exchange([](const Bytes& own) { return std::vector<Bytes>{own}; }));
  const pid_t child = fork();
  if (child == 0) {
    t.reset();
    _exit(0);
  }
  REQUIRE(waitpid(child, nullptr, 0) == child);
  contract::order(*t);
}

TEST_CASE("shm transport: what it says of itself") {
  on_worlds(3, [](auto t) {
    const Capabilities can = t->capabilities();
    CHECK(can.name == "shm");
    CHECK(can.tags >= 1'000'000);
    CHECK(!can.concurrent);
    CHECK(can.cancels);
    CHECK(can.probes);
    CHECK(can.cores == sysconf(_SC_NPROCESSORS_ONLN));
    CHECK(can.hosts == std::vector<int>{0, 0, 0});
  });
}

TEST_CASE("shm transport: a meeting that cannot be") {
  const auto says = [](const std::function<void()>& call, ErrorCode code,
                       const std::vector<std::string>& parts) {
    const Error error = error_of(call);
    CHECK(error.code == code);
    CHECK_MESSAGE(holds(error.what(), parts), std::string(error.what()));
  };
  const Exchange own_alone = [](const Bytes& own) { return std::vector<Bytes>{own}; };
  says([&] { shm_transport(0, 1025, own_alone); }, ErrorCode::invalid_argument,
       {"a shared memory transport has at most 1024 ranks, but found 1025"});
  says([&] { shm_transport(2, 2, own_alone); }, ErrorCode::invalid_argument,
       {"rank from 0 to size - 1, but found rank 2 of size 2"});
  says([&] { shm_transport(0, 1, Exchange()); }, ErrorCode::invalid_argument,
       {"a function that exchanges addresses was expected"});
  says([&] { shm_transport(0, 2, own_alone); }, ErrorCode::transport,
       {"expected to bring 2 blocks, but brought 1"});
  says([&] { shm_transport(0, 1, [](const Bytes&) { return std::vector<Bytes>(1); }); },
       ErrorCode::transport, {"the address of rank 0, but brought 0 bytes"});
  // One that comes alone, with the other's block.
  says(
      [&] {
        shm_transport(0, 2,
                      [](const Bytes& own) {
                        return std::vector<Bytes>{own, own};
                      },
                      {.meeting = 300ms});
      },
      ErrorCode::timeout, {"rank 0 has waited 300 ms", "missing: 1"});
}

TEST_CASE("shm transport: a rank that cannot map another's memory tells all") {
  constexpr int size = 4;
  std::int64_t told = 1'000'000;
  std::string found = "expected to open the shared memory of rank 1";
  SUBCASE("that is not there") {}
  SUBCASE("that is not this job's") {
    told = memfd_create("another", MFD_CLOEXEC);
    found = "expected the shared memory of rank 1 as file";
  }
  on_exchanges(size, [&](int rank, const Exchange& exchange) {
    const Exchange broken = [&](const Bytes& own) {
      auto blocks = exchange(own);
      if (rank == 2)  // it is told of another file
        std::memcpy(blocks[1].data() + blocks[1].size() - sizeof told, &told, sizeof told);
      return blocks;
    };
    const Error error = error_of([&] { shm_transport(rank, size, broken, {.meeting = 20'000ms}); });
    CHECK(error.code == ErrorCode::transport);
    CHECK_MESSAGE(holds(error.what(), {"rank 2", found}), std::string(error.what()));
  });
}
