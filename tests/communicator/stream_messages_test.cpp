/// Messages of lists in a device's streams, and aborts.

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "baton/stream.hpp"
#include "stream_cases.hpp"
#include "support/ranks.hpp"
#include "support/stand_in.hpp"

using namespace baton;
using namespace stream_cases;
using namespace std::chrono_literals;
using support::error_of;
using support::holds;
using support::StandInDevice;

TEST_CASE("streams: messages of one list progress side by side, to oneself, too") {
  for (const int size : {1, 2, 3, 5})
    for (const std::int64_t count : {0, 1, 7, 5000}) {
      CAPTURE(size);
      CAPTURE(count);
      on_one_device(
          size, stand_in({.seed = 5}),
          [&](Seat& seat) {
            const auto n = static_cast<std::size_t>(count);
            auto* const own = seat.put(numbers(seat.rank, count));
            auto* const all =
                seat.put(std::vector<std::int32_t>(n * static_cast<std::size_t>(size)));
            std::vector<StreamMessage> messages;
            for (int peer = 0; peer < size; ++peer) {
              messages.push_back({true, own, count, Datatype::i32, peer, seat.stream});
              messages.push_back(
                  {false, all + peer * count, count, Datatype::i32, peer, seat.stream});
            }
            for (int round = 0; round < 3; ++round) seat.communicator.exchange(messages);
            seat.synchronize();
            for (int peer = 0; peer < size; ++peer)
              CHECK(seat.got(all + peer * count, n) == numbers(peer, count));
          },
          support::test_options(), 3, count % 7 == 0 ? 16 : 0);
    }
}

TEST_CASE("streams: the k-th message to a rank is its k-th from there, whatever the streams") {
  on_one_device(2, stand_in({.seed = 3}), [](Seat& seat) {
    const bool sends = seat.rank == 0;
    StandInDevice& device = stand_in_of(seat);
    const Stream other = device.make_user_stream();
    auto* const a = seat.put(numbers(seat.rank, 100, 1));
    auto* const b = seat.put(numbers(seat.rank, 100, 2));
    const auto give = [&](std::int32_t* data, Stream stream) {
      const StreamMessage message{sends, data, 100, Datatype::i32, 1 - seat.rank, stream};
      seat.communicator.exchange(std::span(&message, 1));
    };
    // The sender's first stream comes to its message after the second one.
    std::atomic<bool> second = !sends;
    device.run(seat.stream, [&] {
      while (!second) std::this_thread::yield();
    });
    give(a, seat.stream);
    give(b, other);
    if (sends) device.run(other, [&] { second = true; });
    device.synchronize(other);
    seat.synchronize();
    CHECK(seat.got(a, 100) == numbers(0, 100, 1));
    CHECK(seat.got(b, 100) == numbers(0, 100, 2));
  });
}

TEST_CASE("streams: messages of ranks that share a hardware queue wait for each other's places") {
  std::atomic<int> come = 0;
  const auto everybody = [&] {
    thread_local bool counted = false;
    come += std::exchange(counted, true) ? 0 : 1;
    return come == 4;
  };
  on_one_device(4, stand_in({.channels = 1}), [&](Seat& seat) {
    constexpr std::int64_t count = 50000;
    auto* const own = seat.put(numbers(seat.rank, count));
    auto* const theirs = seat.put(std::vector<std::int32_t>(count));
    const StreamMessage messages[] = {
        {true, own, count, Datatype::i32, (seat.rank + 1) % 4, seat.stream},
        {false, theirs, count, Datatype::i32, (seat.rank + 3) % 4, seat.stream}};
    seat.communicator.exchange(messages, everybody);
    seat.synchronize();
    CHECK(seat.got(theirs, count) == numbers((seat.rank + 3) % 4, count));
  });
  // Others that do not come are an error, and an abort ends the wait.
  Options options = support::test_options();
  options.timeout = 300ms;
  for (const bool aborts : {false, true})
    on_one_device(
        1, stand_in(),
        [&](Seat& seat) {
          auto* const data = seat.put(numbers(0, 4));
          const StreamMessage message{true, data, 4, Datatype::i32, 0, seat.stream};
          std::thread other;
          const Error error = error_of([&] {
            seat.communicator.exchange(std::span(&message, 1), [&] {
              if (aborts && !other.joinable())
                other = std::thread([&] { seat.communicator.abort("enough"); });
              return false;
            });
          });
          CHECK(error.code == (aborts ? ErrorCode::transport : ErrorCode::timeout));
          CHECK_MESSAGE(holds(error.what(), {aborts ? "abort()" : "for 0.3 s"}), error.what());
          if (aborts) other.join();
          seat.synchronize();
        },
        options);
}

TEST_CASE("streams: wrong messages are refused before any is sent") {
  on_one_device(2, stand_in(), [](Seat& seat) {
    auto* const data = seat.put(numbers(seat.rank, 8));
    std::vector<std::int32_t> host(8);
    const int peer = 1 - seat.rank;
    const auto refused = [&](const StreamMessage& wrong, const std::vector<std::string>& parts) {
      const StreamMessage messages[] = {{true, data, 8, Datatype::i32, peer, seat.stream}, wrong};
      const Error error = error_of([&] { seat.communicator.exchange(messages); });
      CHECK(error.code == ErrorCode::invalid_argument);
      CHECK_MESSAGE(holds(error.what(), parts), error.what());
    };
    refused({true, data, 8, Datatype::i32, 2, seat.stream}, {"send", "0 to 1", "found 2"});
    refused({false, data, -1, Datatype::i32, peer, seat.stream}, {"recv", "at least 0", "-1"});
    refused({true, data, 8, Datatype::user, peer, seat.stream}, {"send", "known size", "user"});
    refused({false, host.data(), 8, Datatype::i32, peer, seat.stream},
            {"recv", "a buffer in the memory of", "the host's"});
    refused({false, data, 8, Datatype::i32, peer, nullptr}, {"stream of its own"});
    seat.meet();
  });
}

TEST_CASE("streams: an abort lets the streams go on, and ends a call that waits") {
  on_one_device(2, stand_in(), [](Seat& seat) {
    auto* const data = seat.put(numbers(seat.rank, 100));
    CHECK_NOTHROW(seat.communicator.check());
    seat.meet();
    if (seat.rank == 1) return;
    // Nobody sends this message.
    const StreamMessage message{false, data, 100, Datatype::i32, 1, seat.stream};
    seat.communicator.exchange(std::span(&message, 1));
    CHECK_NOTHROW(seat.communicator.check());
    std::thread other([&] { seat.communicator.abort("enough"); });
    seat.synchronize();
    other.join();
    const auto call = [&] { seat.communicator.exchange(std::span(&message, 1)); };
    CHECK(holds(error_of(call).what(), {"usable communicator", "enough"}));
    CHECK(error_of([&] { seat.communicator.check(); }).code == ErrorCode::transport);
  });
  on_one_device(1, stand_in(), [](Seat& seat) {
    seat.communicator.abort("");
    CHECK(holds(error_of([&] { seat.communicator.check(); }).what(), {"no reason was given"}));
  });
  on_one_device(2, stand_in(), [](Seat& seat) {
    seat.meet();
    if (seat.rank == 1) return;
    // Ranks as threads meet in a collective: the other one does not come.
    std::thread other([&] {
      std::this_thread::sleep_for(20ms);
      seat.communicator.abort("enough");
    });
    CHECK(error_of([&] { seat.communicator.barrier(seat.stream); }).code == ErrorCode::transport);
    other.join();
  });
}

TEST_CASE("streams: a call that comes while another thread aborts throws Error(transport)") {
  constexpr int messages = 100;  // so that the abort takes a while
  for (int round = 0; round < 20; ++round)
    on_one_device(1, stand_in(), [&](Seat& seat) {
      auto* const data = seat.put(numbers(0, 4));
      const StreamMessage message{false, data, 4, Datatype::i32, 0, seat.stream};
      seat.communicator.exchange(std::vector(messages, message));
      std::atomic<bool> ready = false;
      std::thread other([&] {
        while (!ready) std::this_thread::yield();
        seat.communicator.abort("enough");
      });
      const auto call = [&] {
        ready = true;
        for (;;) seat.communicator.exchange(std::span(&message, 1));
      };
      CHECK(error_of(call).code == ErrorCode::transport);
      other.join();
      seat.synchronize();
    });
}
