#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "baton/schedule.hpp"
#include "support/ranks.hpp"

using namespace baton;
using namespace support;

namespace {

/// A maximum and where it is: 12 bytes, which no datatype of the library has.
struct Place {
  std::int32_t value;
  std::int32_t rank;
  std::int32_t index;
  bool operator==(const Place&) const = default;
};

void keep_greater(void* into, const void* left, const void* right, std::size_t count, void*) {
  const auto* a = static_cast<const Place*>(left);
  const auto* b = static_cast<const Place*>(right);
  auto* out = static_cast<Place*>(into);
  for (std::size_t i = 0; i < count; ++i) out[i] = b[i].value > a[i].value ? b[i] : a[i];
}
const Op greatest = Op::user(keep_greater, nullptr, true, "greatest", sizeof(Place));

std::int32_t value_of(int rank, int i) { return (rank * 7 + i * 5) % 11; }

std::vector<Place> places(int rank, int n) {
  std::vector<Place> all;
  for (int i = 0; i < n; ++i) all.push_back({value_of(rank, i), rank, i});
  return all;
}

/// The first rank's of those that have the greatest value.
Place expected(int size, int i) {
  Place best{value_of(0, i), 0, i};
  for (int rank = 1; rank < size; ++rank) {
    if (value_of(rank, i) > best.value) best = {value_of(rank, i), rank, i};
  }
  return best;
}

Data data(std::vector<Place>& elements) {
  return {elements.data(), static_cast<std::int64_t>(elements.size()), Datatype::user};
}

}  // namespace

TEST_CASE("elements of the user's own size: a schedule of one's own") {
  on_ranks(4, [](Communicator& c) {
    std::vector<Place> input = places(c.rank(), 5), output(5), plain = input;
    c.all_reduce(data(input), data(output), greatest, {"ring", 0});
    Problem problem;
    problem.collective = Collective::all_reduce;
    problem.rank = c.rank();
    problem.size = 4;
    problem.count = 5;
    const Schedule ring = c.registry().find(Collective::all_reduce, "ring").generate(problem);
    std::vector<Place> found(5);
    c.run(ring, data(plain), data(found), greatest);
    CHECK(found == output);
    const auto refused = [&](const Schedule& schedule, const Op& op, const char* what) {
      const Error error = error_of([&] { c.run(schedule, data(plain), data(found), op); });
      CHECK(error.code == ErrorCode::invalid_argument);
      CHECK(holds(error.what(), {what}));
    };
    refused(ring, sum, "element_bytes");
    problem.average = true;
    refused(c.registry().find(Collective::all_reduce, "ring").generate(problem), greatest,
            "does not divide user");
    c.barrier();
  });
}

TEST_CASE("elements of the user's own size: every algorithm, in pieces and whole") {
  const auto test = [](const ThreadOptions& threads, int size) {
    const auto body = [&](Communicator& c) {
      const int n = 3 * size + 1;
      Problem problem;
      problem.size = size;
      problem.count = n;
      problem.hosts = c.hosts();
      for (const Algorithm* algorithm : c.registry().of(Collective::all_reduce)) {
        if (!refusal(*algorithm, problem).empty()) continue;
        for (const std::int64_t segment : {0, 30}) {
          std::vector<Place> input = places(c.rank(), n), output(input.size());
          Op in_order = greatest;
          in_order.commutative = !algorithm->ordered;
          c.all_reduce(data(input), data(output), in_order, {algorithm->name, segment});
          for (int i = 0; i < n; ++i) {
            const Place& found = output[static_cast<std::size_t>(i)];
            CHECK(found.value == expected(size, i).value);
            if (algorithm->ordered) CHECK(found == expected(size, i));
          }
        }
      }
      std::vector<Place> input = places(c.rank(), 2 * size), output(2);
      c.reduce_scatter(data(input), data(output), greatest);
      for (int i = 0; i < 2; ++i)
        CHECK(output[static_cast<std::size_t>(i)].value == expected(size, 2 * c.rank() + i).value);
    };
    on_ranks(size, body, support::test_options(), threads);
  };
  for (const int size : {1, 2, 3, 5, 8}) test({}, size);
  ThreadOptions pairs;
  pairs.hosts = {0, 0, 1, 1, 2, 2};
  test(pairs, 6);
}

TEST_CASE("elements of the user's own need an operation that states their size") {
  on_ranks(2, [](Communicator& c) {
    std::vector<Place> input(2), output(2);
    for (const Op& op : {Op(sum), Op::user(keep_greater, nullptr, true)}) {
      const Error error = error_of([&] { c.all_reduce(data(input), data(output), op); });
      CHECK(error.code == ErrorCode::invalid_argument);
      CHECK(holds(error.what(), {"all_reduce", "Datatype::user", "element_bytes"}));
    }
    CHECK(holds(error_of([&] { c.broadcast(data(output), 0); }).what(),
                {"broadcast", "Datatype::user"}));
    c.barrier();
  });
}

TEST_CASE("counts that the root alone knows, blocks out of order and empty ones among them") {
  for (const int size : {1, 2, 3, 5, 8}) {
    for (const bool check : {false, true}) {
      Options options = test_options();
      options.check = check;
      const auto body = [&](Communicator& c) {
        const auto count = [](int rank) { return std::int64_t{rank == 1 ? 0 : 3 * rank + 2}; };
        const int root = size / 2;
        std::vector<std::int64_t> counts, offsets;
        std::int64_t end = 0;
        for (int rank = size; rank-- > 0; end += count(rank) + 1)
          offsets.insert(offsets.begin(), end);
        for (int rank = 0; rank < size; ++rank) counts.push_back(count(rank));
        const std::vector<std::int32_t> own(static_cast<std::size_t>(count(c.rank())),
                                            c.rank() + 1);
        std::vector<std::int32_t> all(static_cast<std::size_t>(end), -1);

        Call gather = calls::gather(own, c.rank() == root ? Data(all) : Data(), root);
        gather.counts_at_root = true;
        if (c.rank() == root) {
          gather.recv_counts = counts;
          gather.recv_offsets = offsets;
        }
        c.run(gather);
        if (c.rank() == root) {
          for (int rank = 0; rank < size; ++rank) {
            const auto at = static_cast<std::size_t>(offsets[static_cast<std::size_t>(rank)]);
            for (std::size_t i = 0; i < static_cast<std::size_t>(count(rank)); ++i)
              CHECK(all[at + i] == rank + 1);
            CHECK(all[at + static_cast<std::size_t>(count(rank))] == -1);
          }
        }

        std::vector<std::int32_t> back(own.size(), -1);
        Call scatter = calls::scatter(c.rank() == root ? ConstData(all) : ConstData(), back, root);
        scatter.counts_at_root = true;
        if (c.rank() == root) {
          scatter.send_counts = counts;
          scatter.send_offsets = offsets;
        }
        c.run(scatter);
        CHECK(back == own);
      };
      on_ranks(size, body, options);
    }
  }
}

TEST_CASE("done() says what test() would, and advances nothing") {
  on_ranks(2, [](Communicator& c) {
    std::array<std::int32_t, 1> data{c.rank()};
    Request request = c.start_all_reduce(data, sum);
    while (!request.done()) c.progress();
    CHECK(data[0] == 1);
    CHECK(request.test());
    CHECK(request.done());
    CHECK(Request().done());
  });
}

TEST_CASE("a communicator like another has its options, and needs no message") {
  on_ranks(3, [](Communicator& c) {
    Options options = c.options();
    options.choices[static_cast<std::size_t>(Collective::all_reduce)] = {"ring", 0};
    const Communicator set(c.transport().split(0, 0), options);
    Communicator like(c.transport().split(0, -c.rank()), set);
    CHECK(like.rank() == 2 - c.rank());
    std::array<std::int32_t, 1> data{1};
    CHECK(like.chosen(calls::all_reduce(data, data, sum)).algorithm == "ring");
    like.all_reduce(data, sum);
    CHECK(data[0] == 3);
  });
}
