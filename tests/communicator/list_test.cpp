#include <doctest/doctest.h>

#include "support/conformance.hpp"
#include "support/ranks.hpp"

using namespace baton;
using namespace support;

namespace {

using Ints = Guarded<std::int32_t>;

/// Tensors of these sizes, each with margins of its own, and the list that names them.
struct Tensors {
  std::vector<Ints> parts;
  std::vector<Data> list;

  Tensors(const Counts& sizes, std::uint64_t seed, int rank) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      parts.push_back(Ints::of(seed + i, rank, sizes[i]));
    }
    for (Ints& part : parts) list.emplace_back(part.span());
  }
};

}  // namespace

TEST_CASE("a list of tensors is reduced and broadcast as one") {
  const std::vector<Counts> lists{
      {5}, {3, 4}, {1, 0, 17, 2, 2, 0}, {0, 0}, {100, 1, 50, 3, 300, 7}};
  for (const int size : {1, 2, 3, 5, 8}) {
    on_ranks(size, [&](Communicator& c) {
      for (const Counts& sizes : lists) {
        Problem problem = conformance::problem_of(c, Collective::all_reduce);
        const Scope scope{{}, {0, 12, 100}, {}};
        conformance::for_choices(c, problem, scope, [&](const Choice& choice) {
          Tensors tensors(sizes, 3, c.rank());
          c.all_reduce(tensors.list, sum, choice);
          for (std::size_t t = 0; t < sizes.size(); ++t) {
            Ints expected(sizes[t], 0);
            for (int rank = 0; rank < size; ++rank) {
              for (std::int64_t i = 0; i < sizes[t]; ++i) expected[i] += value(3 + t, rank, i);
            }
            tensors.parts[t].check(expected.span(), [&] {
              return conformance::where(c, Collective::all_reduce, choice, sizes[t], "list");
            });
          }
        });
        problem.collective = Collective::broadcast;
        conformance::for_choices(c, problem, scope, [&](const Choice& choice) {
          const int root = size - 1;
          Tensors tensors(sizes, 3, c.rank());
          c.broadcast(tensors.list, root, choice);
          for (std::size_t t = 0; t < sizes.size(); ++t) {
            tensors.parts[t].check(Ints::of(3 + t, root, sizes[t]).span(), [&] {
              return conformance::where(c, Collective::broadcast, choice, sizes[t], "list");
            });
          }
        });
      }
    });
  }
}

TEST_CASE("lists of inputs and of outputs, cut at different places") {
  on_ranks(4, [](Communicator& c) {
    Tensors in({3, 8, 1}, 5, c.rank()), out({6, 6}, 9, c.rank());
    std::vector<ConstData> inputs(in.list.begin(), in.list.end());
    for (const char* algorithm : {"ring", "recursive_doubling", "circulant", "in_order"}) {
      Call call;
      call.collective = Collective::all_reduce;
      call.op = sum;
      call.inputs = inputs;
      call.outputs = out.list;
      call.choice = {algorithm, 8};
      c.run(call);
      for (std::int64_t i = 0; i < 12; ++i) {
        int expected = 0;
        for (int rank = 0; rank < 4; ++rank) {
          expected += i < 3    ? value(5, rank, i)
                      : i < 11 ? value(6, rank, i - 3)
                               : value(7, rank, i - 11);
        }
        CHECK(out.parts[static_cast<std::size_t>(i / 6)][i % 6] == expected);
      }
    }
  });
}

TEST_CASE("a list that is used twice, and nonblocking") {
  on_ranks(3, [](Communicator& c) {
    for (int turn = 0; turn < 3; ++turn) {
      Tensors tensors({10, 20}, 1, c.rank());
      c.start_all_reduce(tensors.list, max).wait();
      for (std::int64_t i = 0; i < 20; ++i) {
        CHECK(tensors.parts[1][i] == std::max({value(2, 0, i), value(2, 1, i), value(2, 2, i)}));
      }
    }
    Tensors tensors({10, 20}, 1, c.rank());
    std::vector<float> other(3);
    tensors.list.emplace_back(other);
    const Error error = error_of([&] { c.all_reduce(tensors.list, sum); });
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK(holds(error.what(), {"all_reduce", "expected", "i32", "found f32"}));
  });
}

TEST_CASE("lists that are the same memory are in place; any other overlap is refused") {
  constexpr int size = 4;
  on_ranks(size, [](Communicator& c) {
    std::vector<std::int32_t> memory(64), theirs(64);
    const auto fill = [&] {
      for (int i = 0; i < 64; ++i) memory[static_cast<std::size_t>(i)] = 100 * c.rank() + i;
    };
    // Cut at other places, and with a tensor of no elements.
    const Data whole(memory);
    const auto part = [&](std::size_t first, std::size_t n) {
      return Data(std::span(memory).subspan(first, n));
    };
    const std::vector<ConstData> inputs{part(0, 40), part(40, 24)}, late{part(4, 36), part(40, 24)};
    const std::vector<Data> outputs{part(0, 10), part(10, 0), part(10, 54)};
    Call call;
    call.collective = Collective::all_to_all;
    for (const char* algorithm : {"spread_out", "bruck", "pairwise"}) {
      CAPTURE(algorithm);
      fill();
      call.choice = {algorithm, 0};
      call.inputs = inputs;
      call.outputs = outputs;
      c.run(call);
      for (int i = 0; i < 64; ++i)
        CHECK(memory[static_cast<std::size_t>(i)] == 100 * (i / 16) + 16 * c.rank() + i % 16);
    }
    const auto refused = [&](const char* bytes) {
      const Error error = error_of([&] { c.run(call); });
      CHECK(error.code == ErrorCode::invalid_argument);
      CHECK_MESSAGE(holds(error.what(), {"apart or in place", bytes}), std::string(error.what()));
    };
    const std::vector<Data> swapped{part(24, 40), part(0, 24)};
    call.outputs = swapped;
    refused("overlapping by 256 bytes");
    // An all-gather's own part, as PyTorch's callers have it, and a part of another rank.
    const std::vector<Data> parts{part(0, 16), part(16, 16), part(32, 16), part(48, 16)};
    const auto own = static_cast<std::size_t>(c.rank());
    call = {};
    call.collective = Collective::all_gather;
    call.outputs = parts;
    for (const char* algorithm : {"ring", "bruck", "recursive_doubling"}) {
      CAPTURE(algorithm);
      fill();
      call.choice = {algorithm, 0};
      const ConstData mine[] = {parts[own]};
      call.inputs = mine;
      c.run(call);
      for (int i = 0; i < 64; ++i) CHECK(memory[static_cast<std::size_t>(i)] == 100 * (i / 16) + i);
    }
    const ConstData other[] = {parts[(own + 1) % size]};
    call.inputs = other;
    refused("overlapping by 64 bytes");
    // Input and output lists that are apart, one between the parts of the other.
    const std::vector<Data> odd{part(8, 8), part(24, 8)}, even{part(0, 8), part(16, 8)};
    const std::vector<ConstData> from(odd.begin(), odd.end());
    fill();
    call = {};
    call.collective = Collective::all_reduce;
    call.inputs = from;
    call.outputs = even;
    c.run(call);
    CHECK(memory[0] == 600 + 4 * 8);
    CHECK(memory[16] == 600 + 4 * 24);
    CHECK(memory[8] == 100 * c.rank() + 8);
  });
}

TEST_CASE("the type of a list of inputs is its first tensor's") {
  on_ranks(2, [](Communicator& c) {
    std::vector<std::int32_t> in(3, c.rank() + 1), out(3);
    double other = 0;
    const ConstData inputs[] = {in, {&other, 1, Datatype::f64}};
    const Data outputs[] = {out};
    Call call = calls::all_reduce(in, out, sum);
    call.input = {};
    call.output = {};
    call.inputs = std::span(inputs).first(1);
    call.outputs = outputs;
    c.run(call);
    CHECK(out == std::vector<std::int32_t>(3, 3));
    call.inputs = inputs;
    CHECK(error_of([&] { c.run(call); }).code == ErrorCode::invalid_argument);
  });
}
