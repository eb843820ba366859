#include <doctest/doctest.h>

#include "support/ops.hpp"
#include "support/ranks.hpp"

using namespace baton;
using namespace support;

namespace {

std::vector<float> floats(24), more(24);
constexpr std::int64_t negative[] = {4, -1, 1}, two_counts[] = {1, 2}, three[] = {1, 2, 3};
constexpr std::int64_t beyond[] = {0, 4, 22}, ones[] = {1, 1, 1}, twos[] = {2, 2, 2};

Data some(std::int64_t count, std::int64_t first = 0) {
  return {floats.data() + first, count, Datatype::f32};
}
Data other(std::int64_t count) { return {more.data(), count, Datatype::f32}; }
ConstTensor in_shape(const Shape& shape) { return {floats.data(), shape}; }
Tensor out_shape(const Shape& shape) { return {more.data(), shape}; }

struct Bad {
  std::string what;
  Call call;
  std::vector<std::string> says;  ///< parts of the sentence, in order
  bool in_own_words = false;      ///< each rank's sentence has numbers of its own
};

Call with(Call call, const Choice& choice) {
  call.choice = choice;
  return call;
}
Call with_send(Call call, std::span<const std::int64_t> counts) {
  call.send_counts = counts;
  return call;
}
Call with_recv(Call call, std::span<const std::int64_t> counts,
               std::span<const std::int64_t> offsets = {}) {
  call.recv_counts = counts;
  call.recv_offsets = offsets;
  return call;
}

/// Calls that are wrong on each of three ranks.
std::vector<Bad> bad_calls(int rank) {
  using enum Datatype;
  std::vector<Bad> bad{
      {"root too large",
       calls::broadcast(some(4), 3),
       {"broadcast", "root from 0 to 2", "found 3"}},
      {"root negative", calls::reduce(some(4), other(4), sum, -1), {"reduce", "root", "found -1"}},
      {"root of gather", calls::gather(some(2), other(6), 7), {"gather", "root", "found 7"}},
      {"root of scatter", calls::scatter(some(6), other(2), 3), {"scatter", "root", "found 3"}},
      {"null input",
       calls::all_reduce({nullptr, 4, f32}, other(4), sum),
       {"all_reduce", "input of 4 elements", "null pointer"}},
      {"null output",
       calls::all_reduce(some(4), {nullptr, 4, f32}, sum),
       {"all_reduce", "output of 4 elements", "null pointer"}},
      {"null to broadcast", calls::broadcast({nullptr, 1, f32}, 0), {"broadcast", "null pointer"}},
      {"negative count",
       calls::all_reduce(some(-1), other(-1), sum),
       {"all_reduce", "at least 0", "found -1"}},
      {"lengths differ",
       calls::all_reduce(some(4), other(5), sum),
       {"all_reduce", "output of 4", "found 5"}},
      {"scan lengths", calls::scan(some(4), other(3), sum), {"scan", "output of 4", "found 3"}},
      {"exscan lengths",
       calls::exscan(some(1), other(0), sum),
       {"exscan", "output of 1", "found 0"}},
      {"all_gather lengths",
       calls::all_gather(some(2), other(5)),
       {"all_gather", "output of 6", "found 5"}},
      {"reduce_scatter lengths",
       calls::reduce_scatter(some(5), other(2), sum),
       {"reduce_scatter", "input of 6", "found 5"}},
      {"all_to_all indivisible",
       calls::all_to_all(some(7), other(7)),
       {"all_to_all", "divide by 3", "found 7"}},
      {"all_to_all lengths",
       calls::all_to_all(some(6), other(3)),
       {"all_to_all", "output of 6", "found 3"}},
      {"types differ",
       calls::all_reduce(some(4), {more.data(), 4, i32}, sum),
       {"all_reduce", "f32", "found i32"}},
      {"op on float",
       calls::all_reduce(some(4), other(4), bit_xor),
       {"all_reduce", "operation", "f32", "found bit_xor"}},
      {"logical op on f64",
       calls::scan({floats.data(), 2, f64}, {more.data(), 2, f64}, logical_and),
       {"scan", "f64", "found logical_and"}},
      {"user op without function",
       calls::all_reduce(some(4), other(4), Op::user(nullptr, nullptr, true)),
       {"all_reduce", "function", "found none"}},
      {"partly overlapping",
       calls::all_reduce(some(8), some(8, 4), sum),
       {"all_reduce", "apart or in place", "overlapping by 16 bytes"}},
      {"overlapping the other way", calls::scan(some(8, 4), some(8), sum), {"scan", "overlapping"}},
      {"all_to_all overlapping",
       calls::all_to_all(some(6), some(6, 1)),
       {"all_to_all", "overlapping"}},
      {"reduce_scatter at another's block",
       calls::reduce_scatter(some(9), some(3, 5), sum),
       {"reduce_scatter", "overlapping by 12 bytes"}},
      {"all_gather at another's block",
       calls::all_gather(some(3, 1), some(9)),
       {"all_gather", "overlapping by 12 bytes"}},
      {"overlapping by another amount on each rank",
       calls::all_reduce(some(8), some(8, 1 + rank), sum),
       {"all_reduce", "overlapping"},
       true},
      {"unknown algorithm",
       with(calls::all_reduce(some(4), other(4), sum), {"rong", 0}),
       {"all_reduce", "gather_broadcast", "ring", "rabenseifner", "found \"rong\""}},
      {"algorithm of another collective",
       with(calls::broadcast(some(4), 0), {"bruck", 0}),
       {"broadcast", "binomial", "found \"bruck\""}},
      {"outside its domain",
       with(calls::all_gather(some(2), other(6)), {"neighbor_exchange", 0}),
       {"all_gather", "neighbor_exchange", "even", "found 3"}},
      {"not for uneven counts",
       with(with_recv(with_send(calls::all_to_all(some(3), other(3)), ones), ones), {"bruck", 0}),
       {"all_to_all", "bruck", "even counts"}},
      {"not in rank order",
       with(calls::all_reduce({floats.data(), 3, u64}, {more.data(), 3, u64}, affine_maps),
            {"ring", 0}),
       {"all_reduce", "ring", "rank order", "does not commute"}},
      {"indivisible dimension",
       calls::all_to_all(in_shape({2, 4, 3}), out_shape({6, 4, 1}), 1, 0),
       {"all_to_all", "dimension 1 of [2, 4, 3]", "divide by 3", "found 4"}},
      {"dimension too large",
       calls::all_to_all(in_shape({3, 4}), out_shape({3, 4}), 2, 0),
       {"all_to_all", "scatter dimension from -2 to 1", "rank 2", "found 2"}},
      {"dimension too negative",
       calls::all_to_all(in_shape({3, 4}), out_shape({3, 4}), 0, -3),
       {"all_to_all", "gather dimension from -2 to 1", "found -3"}},
      {"all_gather dimension",
       calls::all_gather(in_shape({2, 2}), out_shape({2, 6}), 2),
       {"all_gather", "gather dimension from -2 to 1", "found 2"}},
      {"wrong output shape",
       calls::all_to_all(in_shape({3, 4}), out_shape({3, 4}), 0, 1),
       {"all_to_all", "shape [1, 12]", "found [3, 4]"}},
      {"wrong output rank",
       calls::all_gather(in_shape({2, 2}), out_shape({2, 2, 3}), 1),
       {"all_gather", "shape [2, 6]", "found [2, 2, 3]"}},
      {"too few counts",
       with_recv(calls::all_gather(some(1), other(6)), two_counts),
       {"all_gather", "3 counts", "found 2"}},
      {"too few offsets",
       with_recv(calls::all_gather(some(1), other(6)), ones, two_counts),
       {"all_gather", "3 offsets", "found 2"}},
      {"negative counts",
       with_send(calls::reduce_scatter(some(6), other(1), sum), negative),
       {"reduce_scatter", "at least 0", "found -1", "rank 1"}},
      {"counts beyond the buffer",
       with_recv(calls::all_gather(some(1), other(5)), twos),
       {"all_gather", "fit into 5 elements", "rank 2", "ends at 6"}},
      {"offsets beyond the buffer",
       with_recv(calls::all_gather(some(3), other(24)), three, beyond),
       {"all_gather", "fit into 24", "rank 2", "ends at 25"}},
      {"not this rank's count",
       with_recv(calls::all_gather(some(4), other(6)), twos),
       {"all_gather", "input of 2", "found 4"}},
      {"counts of one side only",
       with_send(calls::all_to_all(some(6), other(6)), twos),
       {"all_to_all", "3 receive counts", "found 0"}},
  };
  return bad;
}

void works(Communicator& c) {
  std::vector<std::int32_t> one{c.rank() + 1};
  c.all_reduce(one, sum);
  CHECK(one[0] == 6);
}

void go_through(Communicator& c) {
  for (const Bad& bad : bad_calls(c.rank())) {
    const auto check = [&](const Error& error) {
      const bool differ = c.options().check && bad.in_own_words;
      CHECK_MESSAGE(error.code == (differ ? ErrorCode::mismatch : ErrorCode::invalid_argument),
                    bad.what, ": ", std::string(error.what()));
      CHECK_MESSAGE(holds(error.what(), bad.says), bad.what, ": ", std::string(error.what()));
    };
    check(error_of([&] { c.run(bad.call); }));
    works(c);
    check(error_of([&] { c.start(bad.call).wait(); }));
    works(c);
  }
}

}  // namespace

TEST_CASE("what is wrong on all ranks is refused on all, by name, and nothing is sent") {
  on_ranks(3, go_through);
}

TEST_CASE("the same with checking on") {
  Options options = test_options();
  options.check = true;
  on_ranks(3, go_through, options);
}

TEST_CASE("blocks of one side may lie between those of the other") {
  on_ranks(3, [](Communicator& c) {
    constexpr std::int64_t even[] = {0, 2, 4}, odd[] = {1, 3, 5}, alone[] = {1, 0, 1};
    const int rank = c.rank();
    std::vector<std::int32_t> all(6, -1), expected(6, -1);
    for (int peer = 0; peer < 3; ++peer) {
      all[static_cast<std::size_t>(2 * peer)] = 10 * rank + peer;
      expected[static_cast<std::size_t>(2 * peer)] = 10 * rank + peer;
      expected[static_cast<std::size_t>(2 * peer + 1)] = 10 * peer + rank;
    }
    c.all_to_all_v(all, ones, all, ones, even, odd);
    CHECK(all == expected);
    constexpr std::int64_t shifted[] = {1, 2, 5};
    const Error error = error_of([&] { c.all_to_all_v(all, ones, all, ones, even, shifted); });
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK(holds(error.what(), {"all_to_all", "overlapping by 4 bytes"}));
    // Rank 1 gives nothing, in the middle of the output.
    std::vector<std::int32_t> sent{rank}, received{7, 8, 9};
    const std::int32_t* const from = rank == 1 ? received.data() + 1 : sent.data();
    constexpr std::int64_t ends[] = {0, 1, 2};
    c.all_gather_v({from, rank == 1 ? 0 : 1, Datatype::i32}, received, alone, ends);
    CHECK(received == std::vector<std::int32_t>{0, 8, 2});
  });
}

TEST_CASE("a call that was good before is looked at again") {
  on_ranks(3, [](Communicator& c) {
    std::vector<float> a(16), b(16);
    const auto part = [](std::vector<float>& v, std::int64_t first, std::int64_t n) {
      return Data(v.data() + first, n, Datatype::f32);
    };
    const auto refused = [&](const std::function<void()>& call) {
      CHECK(error_of(call).code == ErrorCode::invalid_argument);
      works(c);
    };
    for (int repeat = 0; repeat < 3; ++repeat) {
      c.all_reduce(part(a, 0, 8), part(b, 0, 8), sum);
      refused([&] { c.all_reduce(part(a, 0, 8), part(a, 4, 8), sum); });
      refused([&] { c.all_reduce(part(a, 4, 8), part(a, 0, 8), sum); });
      refused([&] { c.all_reduce(Data(nullptr, 8, Datatype::f32), part(b, 0, 8), sum); });
      refused([&] { c.all_reduce(part(a, 0, 8), Data(nullptr, 8, Datatype::f32), sum); });
      c.all_reduce(part(a, 0, 8), part(a, 8, 8), sum);
      c.all_reduce(part(a, 0, 8), sum);
      refused([&] { c.all_reduce(part(a, 0, 8), part(a, 1, 8), sum); });
      c.all_gather(part(a, c.rank() * 2, 2), part(a, 0, 6));
      refused([&] { c.all_gather(part(a, c.rank() * 2 + 1, 2), part(a, 0, 6)); });
      c.broadcast(part(a, 0, 4), 1);
      refused([&] { c.broadcast(Data(nullptr, 4, Datatype::f32), 1); });
      refused([&] { c.broadcast(part(a, 0, 4), 3); });
    }
  });
}

TEST_CASE("shapes: rank and extents") {
  CHECK(holds(error_of([] {
                Shape({1, 1, 1, 1, 1, 1, 1, 1, 1});
              }).what(),
              {"rank 0 to 8", "found rank 9"}));
  CHECK(holds(error_of([] { Shape({2, -3}); }).what(), {"at least 0", "[2, -3]"}));
  CHECK(Shape({4, 128, 8, 64}).text() == "[4, 128, 8, 64]");
  CHECK(Shape({4, 3}).with(1, 7) == Shape({4, 7}));
  CHECK(Shape({2, 3, 4}).product(1, 3) == 12);
  CHECK(Shape().elements() == 1);
}

TEST_CASE("one rank alone") {
  on_ranks(1, [](Communicator& c) {
    std::vector<double> in{1, 2, 3}, out(3);
    c.all_reduce(in, out, avg);
    CHECK(out == in);
    const Error error = error_of([&] { c.broadcast(in, 1); });
    CHECK(holds(error.what(), {"broadcast", "root from 0 to 0", "found 1"}));
  });
}
