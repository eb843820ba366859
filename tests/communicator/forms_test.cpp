/// Every collective in every form: waiting, started, planned, by description, and in a stream.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <vector>

#include "baton/communicator.hpp"
#include "stream_cases.hpp"
#include "support/ranks.hpp"

using namespace baton;
using namespace support;

namespace {

using Ints = std::vector<std::int32_t>;
using Counts = std::vector<std::int64_t>;

constexpr int size = 3;
constexpr std::size_t room = 18;  // elements of a buffer

#define COUNT(...) +1
constexpr int lines_of_the_table = 0 BATON_COLLECTIVES(COUNT);
#undef COUNT

/// One line for each of the table, on the buffers of Arguments.
#define EVERY_LINE(form)                                                                          \
  form(broadcast, out(4), 1) form(broadcast, tensors, 1) form(reduce, in(4), out(4), sum, 2)      \
      form(all_reduce, in(4), out(4), sum) form(all_reduce, out(4), max)                          \
          form(all_reduce, tensors, prod) form(gather, in(2), out(6), 1)                          \
              form(gather_v, in(own), out(6), counts, 1) form(scatter, in(6), out(2), 1)          \
                  form(scatter_v, in(6), out(own), counts, 1) form(all_gather, in(2), out(6))     \
                      form(all_gather, ConstTensor(input, Datatype::i32, {2, 1, 3}),              \
                           Tensor(output, Datatype::i32, {2, 3, 3}),                              \
                           1) form(all_gather_v, in(own), out(6), counts)                         \
                          form(all_gather_v, in(own), out(9), counts, offsets)                    \
                              form(reduce_scatter, in(6), out(2), sum) form(                      \
                                  reduce_scatter_v, in(6), out(own), counts, sum)                 \
                                  form(all_to_all, in(6), out(6)) form(                           \
                                      all_to_all, ConstTensor(input, Datatype::i32, {1, 2, 3}),   \
                                      Tensor(output, Datatype::i32, {1, 6, 1}), 2, 1)             \
                                      form(all_to_all_v, in(6), send_counts, out(8), recv_counts) \
                                          form(all_to_all_v, in(9), send_counts, out(12),         \
                                               recv_counts, send_offsets, recv_offsets)           \
                                              form(scan, in(4), out(4), sum)                      \
                                                  form(exscan, in(4), out(4), sum) form(barrier)

/// Arguments of one rank's calls.
struct Arguments {
  std::int32_t *input, *output;
  int rank;
  Counts counts{1, 2, 3}, offsets{6, 4, 0};
  std::int64_t own = rank + 1;
  Counts send_counts = std::array<Counts, size>{{{1, 2, 3}, {0, 1, 3}, {2, 2, 1}}}[index()];
  Counts recv_counts = std::array<Counts, size>{{{1, 0, 2}, {2, 1, 2}, {3, 3, 1}}}[index()];
  Counts send_offsets{0, 3, 6}, recv_offsets{8, 4, 0};
  std::array<Data, 2> list{{{output, 2, Datatype::i32}, {output + 4, 3, Datatype::i32}}};
  std::span<const Data> tensors{list};

  std::size_t index() const { return static_cast<std::size_t>(rank); }
  ConstData in(std::int64_t count) const { return {input, count, Datatype::i32}; }
  Data out(std::int64_t count) const { return {output, count, Datatype::i32}; }
};

Ints inputs(int rank) { return stream_cases::numbers(rank, room, 1); }
Ints outputs(int rank) { return stream_cases::numbers(rank, room, 2); }

/// What the lines of EVERY_LINE name.
#define NAME(name) [[maybe_unused]] const auto& name = arguments.name;
#define NAMES_OF_ARGUMENTS                                                                  \
  NAME(input)                                                                               \
  NAME(output)                                                                              \
  NAME(rank) NAME(counts) NAME(offsets) NAME(own) NAME(send_counts) NAME(recv_counts)       \
      NAME(send_offsets) NAME(recv_offsets) NAME(list) NAME(tensors)                        \
          [[maybe_unused]] const auto in = [&](std::int64_t n) { return arguments.in(n); }; \
  [[maybe_unused]] const auto out = [&](std::int64_t n) { return arguments.out(n); };

}  // namespace

TEST_CASE("every collective in every form and in streams gives the same result") {
  std::vector<std::vector<Ints>> results(size);  // of each rank and line
  on_ranks(size, [&](Communicator& c) {
    Ints from = inputs(c.rank()), to(room);
    const Arguments arguments{from.data(), to.data(), c.rank()};
    NAMES_OF_ARGUMENTS
    std::vector<Ints>& expected = results[arguments.index()];
    const auto equal = [&](std::initializer_list<std::function<void()>> forms) {
      expected.emplace_back();
      for (const auto& form : forms) {
        std::ranges::copy(outputs(c.rank()), to.begin());
        form();
        if (expected.back().empty()) expected.back() = to;
        CHECK(to == expected.back());
      }
    };
#define FORMS(name, ...)                                                                         \
  equal({[&] { c.run(calls::name(__VA_ARGS__)); }, [&] { c.name(__VA_ARGS__); },                 \
         [&] { c.start_##name(__VA_ARGS__).wait(); }, [&] { c.plan_##name(__VA_ARGS__).run(); }, \
         [&] { c.plan_##name(__VA_ARGS__).start().wait(); }});
    EVERY_LINE(FORMS)
#undef FORMS
    CHECK(expected.size() == lines_of_the_table);
  });

  for (const auto& test_device : {stream_cases::stand_in(), stream_cases::in_groups()}) {
    stream_cases::on_one_device(size, test_device, [&](stream_cases::Seat& seat) {
      auto* const from = seat.put(inputs(seat.rank));
      auto* const to = seat.put(outputs(seat.rank));
      const Arguments arguments{from, to, seat.rank};
      NAMES_OF_ARGUMENTS
      const std::vector<Ints>& expected = results[arguments.index()];
      std::size_t line = 0;
      const auto equal = [&](const std::function<void()>& form) {
        CAPTURE(line);
        const Ints before = outputs(seat.rank);
        test_device.write(reinterpret_cast<std::byte*>(to), before.data(),
                          room * sizeof(std::int32_t));
        form();
        seat.synchronize();
        CHECK(seat.got(to, room) == expected.at(line++));
      };
#define FORMS(name, ...) \
  equal([&] { seat.communicator.name(__VA_ARGS__ __VA_OPT__(, ) seat.stream); });
      EVERY_LINE(FORMS)
#undef FORMS
      seat.meet();
      seat.free(from);
      seat.free(to);
    });
  }
}

TEST_CASE("a planned call needs its caller's lists no more") {
  on_ranks(size, [](Communicator& c) {
    Ints data(6, c.rank() + 1), more(3, 10 * (c.rank() + 1)), all(6);
    PersistentCall reduce, gather;
    {
      std::vector<Data> tensors{data, more};
      reduce = c.plan_all_reduce(tensors, sum);
      Counts counts{1, 2, 3};
      gather = c.plan_all_gather_v(std::span(data).first(static_cast<std::size_t>(c.rank()) + 1),
                                   all, counts);
      std::ranges::fill(counts, -1);
      std::ranges::fill(tensors, Data());
    }
    reduce.start().wait();
    CHECK(data == Ints(6, 6));
    CHECK(more == Ints(3, 60));
    gather.run();
    gather.start().wait();
    CHECK(all == Ints(6, 6));
  });
}
