#include <doctest/doctest.h>

#include <numeric>

#include "support/ranks.hpp"

using namespace baton;
using namespace support;

TEST_CASE("a persistent call reads its buffers anew at each start") {
  on_ranks(4, [](Communicator& c) {
    std::vector<float> input(1000), output(1000);
    PersistentCall call = c.plan(calls::all_reduce(input, output, sum));
    for (int turn = 0; turn < 5; ++turn) {
      std::fill(input.begin(), input.end(), static_cast<float>(turn + c.rank()));
      if (turn % 2 == 0) {
        call.run();
      } else {
        call.start().wait();
      }
      CHECK(output == std::vector<float>(1000, static_cast<float>(4 * turn + 6)));
    }
  });
}

TEST_CASE("several persistent calls interleave, and outlive the communicator object") {
  on_ranks(3, [](Communicator& c) {
    std::vector<std::int64_t> a{1}, b(3), mine{c.rank()};
    PersistentCall reduce, gather;
    {
      Communicator part = c.split(0);
      reduce = part.plan(calls::all_reduce(a, a, prod));
      gather = part.plan(calls::all_gather(mine, b));
    }
    for (int turn = 0; turn < 3; ++turn) {
      a[0] = 2;
      Request first = reduce.start(), second = gather.start();
      second.wait();
      first.wait();
      CHECK(a[0] == 8);
      CHECK(b == std::vector<std::int64_t>{0, 1, 2});
    }
  });
}

TEST_CASE("few plans are kept, and none that is in use is lost") {
  for (const int plans : {1, 2, 5}) {
    Options options = test_options();
    options.plans = plans;
    on_ranks(
        3,
        [](Communicator& c) {
          std::vector<float> kept(50, 1), sums(50);
          PersistentCall persistent = c.plan(calls::all_reduce(kept, sums, sum));
          for (int turn = 0; turn < 4; ++turn) {
            std::vector<std::vector<std::int32_t>> data;
            std::vector<Request> requests;
            for (std::size_t n = 1; n <= 12; ++n) data.emplace_back(37 * n, 1);
            for (auto& each : data) requests.push_back(c.start_all_reduce(each, sum));
            for (std::size_t n = 1; n <= 12; ++n) {
              std::vector<std::int32_t> small(n, 2);
              c.all_reduce(small, sum);  // made again and again as its plan is dropped
              CHECK(small == std::vector<std::int32_t>(n, 6));
              c.broadcast(small, 1);
            }
            persistent.run();
            CHECK(sums == std::vector<float>(50, 3));
            for (Request& request : requests) request.wait();
            for (const auto& each : data) CHECK(each == std::vector<std::int32_t>(each.size(), 3));
          }
        },
        options);
  }
}

TEST_CASE("a persistent call with checking on finds out that others call something else") {
  Options options = test_options();
  options.check = true;
  on_ranks(
      2,
      [](Communicator& c) {
        std::vector<float> x(4, 1);
        PersistentCall reduce = c.plan(calls::all_reduce(x, x, sum));
        PersistentCall broadcast = c.plan(calls::broadcast(x, 0));
        const Error error = error_of([&] { c.rank() == 0 ? reduce.run() : broadcast.run(); });
        CHECK(error.code == ErrorCode::mismatch);
        reduce.run();
        CHECK(x[0] == 2);
      },
      options);
}

TEST_CASE("planning says what is wrong before anything is started") {
  on_ranks(2, [](Communicator& c) {
    std::vector<float> three(3), four(4);
    const Error error = error_of([&] { c.plan(calls::all_reduce(three, four, sum)); });
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK(holds(error.what(), {"all_reduce", "3", "found 4"}));
    c.barrier();
  });
}

TEST_CASE("calls by description: each does what the member of its name does") {
  on_ranks(3, [](Communicator& c) {
    const int r = c.rank();
    std::vector<int> one{r + 1}, all(3), many{10 * r, 10 * r + 1, 10 * r + 2}, out(3), single(1);
    c.run(calls::all_gather(one, all));
    CHECK(all == std::vector<int>{1, 2, 3});
    c.run(calls::all_to_all(many, out));
    CHECK(out == std::vector<int>{r, 10 + r, 20 + r});
    c.run(calls::reduce_scatter(many, single, sum));
    CHECK(single[0] == 30 + 3 * r);
    c.run(calls::scan(one, single, sum));
    CHECK(single[0] == (r + 1) * (r + 2) / 2);
    c.run(calls::exscan(one, single, sum));
    if (r > 0) CHECK(single[0] == r * (r + 1) / 2);
    c.run(calls::gather(one, all, 1));
    c.run(calls::scatter(many, single, 2));
    CHECK(single[0] == 20 + r);
    c.run(calls::reduce(one, single, max, 0));
    if (r == 0) CHECK(single[0] == 3);
    single[0] = r;
    c.run(calls::broadcast(single, 1));
    CHECK(single[0] == 1);
    c.run(calls::barrier());
    c.start(calls::all_reduce(one, single, sum)).wait();
    CHECK(single[0] == 6);
    const std::vector<float> x(4, static_cast<float>(r));
    std::vector<float> y(12);
    c.run(calls::all_gather(ConstTensor(x.data(), Shape{2, 2}), Tensor(y.data(), Shape{2, 6}), 1));
    CHECK(y == std::vector<float>{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2});
  });
}
