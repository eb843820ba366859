#include <doctest/doctest.h>

#include <utility>

#include "support/ranks.hpp"
#include "support/values.hpp"

using namespace baton;
using namespace support;

namespace {
using Ints = Guarded<std::int32_t>;
}

TEST_CASE("messages around a ring, of all lengths") {
  for (const int size : {2, 3, 5}) {
    on_ranks(size, [&](Communicator& c) {
      const int next = (c.rank() + 1) % size, prev = (c.rank() + size - 1) % size;
      for (const std::int64_t n : {0, 1, 7, 1000, 100'000}) {
        const Ints mine = Ints::of(1, c.rank(), n);
        Ints theirs(n);
        Request sent = c.start_send(mine.span(), next, 3);
        c.recv(theirs.span(), prev, 3);
        sent.wait();
        theirs.check(Ints::of(1, prev, n).span(), [] { return std::string("ring"); });
      }
    });
  }
}

TEST_CASE("messages of elements of no known size are refused") {
  on_ranks(2, [](Communicator& c) {
    std::vector<std::int64_t> x(2, c.rank());
    const Data elements(x.data(), 2, Datatype::user);
    const int peer = 1 - c.rank();
    const Error error = error_of([&] {
      if (c.rank() == 0)
        c.send(elements, peer);
      else
        c.recv(elements, peer);
    });
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK(holds(error.what(), {c.rank() == 0 ? "send" : "recv", "known size", "found user"}));
    c.all_reduce(x, sum);
    CHECK(x[1] == 1);
  });
}

TEST_CASE("messages of one tag keep their order; tags do not mix with each other or collectives") {
  for (const std::uint64_t seed : {0, 3}) {
    on_ranks(2,
             [](Communicator& c) {
               constexpr int messages = 50;
               std::vector<std::int64_t> values(messages);
               std::vector<Request> requests;
               if (c.rank() == 0) {
                 for (int i = 0; i < messages; ++i) {
                   values[static_cast<std::size_t>(i)] = i;
                   requests.push_back(c.start_send(
                       std::span(values).subspan(static_cast<std::size_t>(i), 1), 1, i % 2));
                 }
               }
               std::vector<std::int64_t> one{1};
               c.all_reduce(one, sum);
               CHECK(one[0] == 2);
               if (c.rank() == 1) {
                 for (const int tag : {1, 0}) {
                   for (int i = tag; i < messages; i += 2) {
                     std::vector<std::int64_t> got{-1};
                     c.recv(got, 0, tag);
                     CHECK(got[0] == i);
                   }
                 }
               }
               for (Request& request : requests) request.wait();
             },
             test_options(), {.seed = seed});
  }
}

TEST_CASE("a rank sends to itself, too") {
  for (const int size : {1, 3}) {
    on_ranks(size, [](Communicator& c) {
      for (const std::int64_t n : {0, 1, 100'000}) {
        const Ints mine = Ints::of(1, c.rank(), n);
        Ints got(n);
        Request received = c.start_recv(got.span(), c.rank(), 2);
        c.send(mine.span(), c.rank(), 2);
        received.wait();
        got.check(mine.span(), [] { return std::string("receive first"); });
        Ints again(n);
        Request sent = c.start_send(mine.span(), c.rank());
        c.recv(again.span(), c.rank());
        sent.wait();
        again.check(mine.span(), [] { return std::string("send first"); });
      }
    });
  }
}

TEST_CASE("many tags: each message is received by its own, in whatever order") {
  on_ranks(2, [](Communicator& c) {
    constexpr int tags = 200;
    std::vector<std::int32_t> values(tags);
    std::vector<Request> requests;
    for (int tag = 0; tag < tags; ++tag) {
      const auto one = std::span(values).subspan(static_cast<std::size_t>(tag), 1);
      if (c.rank() == 0) {
        one[0] = 7 * tag;
        requests.push_back(c.start_send(one, 1, tag));
      } else {
        requests.push_back(c.start_recv(one, 0, tags - 1 - tag));
      }
    }
    for (Request& request : requests) request.wait();
    for (int tag = 0; c.rank() == 1 && tag < tags; ++tag) {
      CHECK(values[static_cast<std::size_t>(tag)] == 7 * (tags - 1 - tag));
    }
  });
}

TEST_CASE("a message of another length than expected is truncated, and says so") {
  for (const auto& lengths : {std::pair(4u, 3u), {4u, 5u}, {4u, 0u}, {0u, 5u}}) {
    const unsigned expected = lengths.first, found = lengths.second;
    on_ranks(2, [&](Communicator& c) {
      std::vector<float> data(c.rank() == 0 ? found : expected);
      if (c.rank() == 0) {
        c.send(data, 1, 2);
        return;
      }
      const Error error = error_of([&] { c.recv(data, 0, 2); });
      CHECK(error.code == ErrorCode::truncated);
      CHECK(error.rank == 1);
      CHECK(error.peer == 0);
      CHECK(holds(error.what(), {"recv", "expected", std::to_string(4 * expected) + " bytes",
                                 "rank 0", std::to_string(4 * found)}));
    });
  }
}

TEST_CASE("a message of no elements is received when it has been sent") {
  on_ranks(3, [](Communicator& c) {
    std::vector<float> none, one(1, 5);
    const int next = (c.rank() + 1) % 3, prev = (c.rank() + 2) % 3;
    for (int round = 0; round < 3; ++round) {
      Request received = c.start_recv(none, prev, 3);
      c.barrier();
      CHECK(!received.done());
      c.barrier();
      c.send(none, next, 3);
      received.wait();
    }
    // The order of empty messages and others is kept.
    Request sent = c.start_send(none, next), then = c.start_send(one, next);
    c.recv(none, prev);
    std::vector<float> got(1);
    c.recv(got, prev);
    CHECK(got[0] == 5);
    sent.wait();
    then.wait();
  });
}

TEST_CASE("send and recv: bad arguments") {
  on_ranks(3, [](Communicator& c) {
    std::vector<float> data(4);
    const auto refused = [&](const std::function<void()>& call,
                             const std::vector<std::string>& parts) {
      const Error error = error_of(call);
      CHECK(error.code == ErrorCode::invalid_argument);
      CHECK_MESSAGE(holds(error.what(), parts), std::string(error.what()));
    };
    refused([&] { c.send(data, 3); }, {"send", "peer from 0 to 2", "found 3"});
    refused([&] { c.send(data, -1); }, {"send", "found -1"});
    refused([&] { c.send(data, (c.rank() + 1) % 3, 1024); }, {"tag from 0 to 1023", "found 1024"});
    refused([&] { c.recv(data, (c.rank() + 1) % 3, -1); }, {"recv", "tag", "found -1"});
    refused([&] { c.recv(Data(nullptr, 4, Datatype::f32), (c.rank() + 1) % 3); }, {"null pointer"});
    std::vector<std::int32_t> one{1};
    c.all_reduce(one, sum);
    CHECK(one[0] == 3);
  });
}
