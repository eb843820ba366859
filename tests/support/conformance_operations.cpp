#include <fmt/core.h>

#include <cstring>

#include "conformance.hpp"
#include "ops.hpp"

namespace support::conformance {
namespace {

using namespace baton;
using Bytes = std::vector<std::byte>;

/// Elements for which the order of any operation does not matter: small whole numbers, and for
/// products mostly ones. 8-bit floats hold the whole numbers up to 8 only, and products up to 2^8.
Bytes small_numbers(OpKind op, Datatype type, int rank, std::int64_t count) {
  Bytes bytes(static_cast<std::size_t>(count) * size_of(type));
  for (std::int64_t i = 0; i < count; ++i) {
    int v = value(11, rank, i) % 5;
    if (op == OpKind::prod) v = v == 0 ? 2 : v > 0 ? 1 : -1;
    if (is_float(type) && size_of(type) == 1 && op != OpKind::prod) v %= 2;
    if (is_float(type) && size_of(type) == 1 && rank >= 8) v = op == OpKind::prod ? 1 : 0;
    const auto put = [&](auto element) {
      std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof element, &element,
                  sizeof element);
    };
    switch (type) {
      case Datatype::i8:
        put(static_cast<std::int8_t>(v));
        break;
      case Datatype::u8:
        put(static_cast<std::uint8_t>(v));
        break;
      case Datatype::i32:
        put(static_cast<std::int32_t>(v));
        break;
      case Datatype::u32:
        put(static_cast<std::uint32_t>(v));
        break;
      case Datatype::i64:
        put(static_cast<std::int64_t>(v));
        break;
      case Datatype::u64:
        put(static_cast<std::uint64_t>(v));
        break;
      case Datatype::f8e4m3:
        put(to_f8e4m3(static_cast<float>(v)));
        break;
      case Datatype::f8e5m2:
        put(to_f8e5m2(static_cast<float>(v)));
        break;
      case Datatype::f16:
        put(to_f16(static_cast<float>(v)));
        break;
      case Datatype::bf16:
        put(to_bf16(static_cast<float>(v)));
        break;
      case Datatype::f32:
        put(static_cast<float>(v));
        break;
      case Datatype::f64:
        put(static_cast<double>(v));
        break;
      case Datatype::user:
        break;
    }
  }
  return bytes;
}

/// The plain loops' result over the ranks [0, last) of the elements from `first` on.
Bytes folded(OpKind op, Datatype type, int size, int last, std::int64_t first, std::int64_t count,
             std::int64_t all) {
  const auto part = [&](int rank) {
    const Bytes whole = small_numbers(op, type, rank, all);
    const auto begin = whole.begin() + first * static_cast<std::int64_t>(size_of(type));
    return Bytes(begin, begin + count * static_cast<std::int64_t>(size_of(type)));
  };
  Bytes result = part(0);
  for (int rank = 1; rank < last; ++rank) {
    const Bytes next = part(rank);
    host::reference_fold(op, type)(result.data(), result.data(), next.data(),
                                   static_cast<std::size_t>(count));
  }
  if (op == OpKind::avg) {
    host::reference_divide(type)(result.data(), static_cast<std::size_t>(count), size);
  }
  return result;
}

struct Typed {
  Communicator& c;
  OpKind op;
  Datatype type;
  std::int64_t n;

  ConstData in(const Bytes& bytes) const {
    return {bytes.data(), static_cast<std::int64_t>(bytes.size() / size_of(type)), type};
  }
  Data out(Bytes& bytes) const {
    return {bytes.data(), static_cast<std::int64_t>(bytes.size() / size_of(type)), type};
  }
  Bytes room() const { return Bytes(static_cast<std::size_t>(n) * size_of(type), std::byte{0x5a}); }
  void check(const Bytes& got, const Bytes& expected, Collective collective) const {
    CHECK_MESSAGE(got == expected,
                  where(c, collective, {}, n, fmt::format("{} of {}", name(op), name(type))));
  }

  void run() const {
    const Bytes input = small_numbers(op, type, c.rank(), n);
    const auto result = [&](int last) { return folded(op, type, c.size(), last, 0, n, n); };
    Bytes output = room();
    c.all_reduce(in(input), out(output), op);
    check(output, result(c.size()), Collective::all_reduce);
    output = room();
    c.reduce(in(input), out(output), op, c.size() / 2);
    check(output, c.rank() == c.size() / 2 ? result(c.size()) : room(), Collective::reduce);
    output = room();
    c.scan(in(input), out(output), op);
    check(output, result(c.rank() + 1), Collective::scan);
    output = room();
    c.exscan(in(input), out(output), op);
    check(output, c.rank() == 0 ? room() : result(c.rank()), Collective::exscan);
    const Bytes wide = small_numbers(op, type, c.rank(), n * c.size());
    output = room();
    c.reduce_scatter(in(wide), out(output), op);
    check(output, folded(op, type, c.size(), c.size(), c.rank() * n, n, n * c.size()),
          Collective::reduce_scatter);
  }
};

std::uint64_t packed_value(const Op& op, int rank, std::int64_t i) {
  const std::uint64_t bits = mixed(static_cast<std::uint64_t>(rank * 7919 + i));
  return op.commutative ? bits % 0xffffffffffffffc5u : bits;
}

/// Contributions of the ranks [0, last), lower ranks on the left.
std::uint64_t in_order(const Op& op, int last, std::int64_t i) {
  std::uint64_t result = packed_value(op, 0, i);
  for (int rank = 1; rank < last; ++rank) {
    const std::uint64_t next = packed_value(op, rank, i);
    op.function(&result, &result, &next, 1, op.context);
  }
  return result;
}

void user_operation(Communicator& c, const Op& op, std::int64_t n, bool in_place) {
  using Words = Guarded<std::uint64_t>;
  const auto inputs = [&](std::int64_t count) {
    Words words(count);
    for (std::int64_t i = 0; i < count; ++i) words[i] = packed_value(op, c.rank(), i);
    return words;
  };
  const auto results = [&](int last, std::int64_t first) {
    Words words(n);
    for (std::int64_t i = 0; i < n; ++i) words[i] = in_order(op, last, first + i);
    return words;
  };
  const auto for_each = [&](Collective collective, const auto& body) {
    Problem problem = problem_of(c, collective);
    problem.commutative = op.commutative;
    for_choices(c, problem, Scope{{}, {0, 24}, {}}, [&](const Choice& choice) {
      body(choice, [&] { return where(c, collective, choice, n, op.label); });
    });
  };
  const Words input = inputs(n);
  const auto one_to_one = [&](Collective collective, const Words& expected, const auto& run) {
    for_each(collective, [&](const Choice& choice, const auto& context) {
      Words output = in_place ? input : Words(n);
      run(in_place ? ConstData(output.span()) : ConstData(input.span()), output.span(), choice);
      output.check(expected.span(), context);
    });
  };
  one_to_one(
      Collective::all_reduce, results(c.size(), 0),
      [&](ConstData in, Data out, const Choice& choice) { c.all_reduce(in, out, op, choice); });
  one_to_one(Collective::scan, results(c.rank() + 1, 0),
             [&](ConstData in, Data out, const Choice& choice) { c.scan(in, out, op, choice); });
  const Words before = in_place ? input : Words(n);
  one_to_one(Collective::exscan, c.rank() == 0 ? before : results(c.rank(), 0),
             [&](ConstData in, Data out, const Choice& choice) { c.exscan(in, out, op, choice); });
  for (const int root : {0, c.size() - 1, c.size() / 2}) {
    one_to_one(
        Collective::reduce, c.rank() == root ? results(c.size(), 0) : before,
        [&](ConstData in, Data out, const Choice& choice) { c.reduce(in, out, op, root, choice); });
  }
  for_each(Collective::reduce_scatter, [&](const Choice& choice, const auto& context) {
    const Words wide = inputs(n * c.size());
    Words output(n);
    c.reduce_scatter(wide.span(), output.span(), op, choice);
    output.check(results(c.size(), c.rank() * n).span(), context);
  });
}

}  // namespace

void types(Communicator& c) {
  for (int t = 0; t < datatype_count; ++t) {
    for (int k = 0; k < builtin_op_count; ++k) {
      const auto type = static_cast<Datatype>(t);
      const auto op = static_cast<OpKind>(k);
      if (defined_on(op, type)) Typed{c, op, type, 37}.run();
    }
  }
}

void user_operations(Communicator& c) {
  for (const Op& op : {affine_maps, matrices, modular_product}) {
    for (const std::int64_t n : {std::int64_t{1}, std::int64_t{c.size()}, std::int64_t{19}}) {
      user_operation(c, op, n, false);
      user_operation(c, op, n, true);
    }
  }
}

}  // namespace support::conformance
