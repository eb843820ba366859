#include "conformance.hpp"

namespace support::conformance {
namespace {

using namespace baton;
using Ints = Guarded<std::int32_t>;

/// Sum over the ranks [0, last) of elements first, first + 1, ….
Ints sums(std::uint64_t seed, int last, std::int64_t first, std::int64_t count) {
  Ints out(count, 0);
  for (int rank = 0; rank < last; ++rank) {
    for (std::int64_t i = 0; i < count; ++i) out[i] += value(seed, rank, first + i);
  }
  return out;
}

/// all_reduce, scan and exscan: n elements in, n elements out.
template <class Run>
void vector_reduction(Communicator& c, Collective collective, std::int64_t n, std::uint64_t seed,
                      const Choice& choice, const Ints& expected, const Run& run) {
  for (const bool in_place : {false, true}) {
    const auto context = [&] {
      return where(c, collective, choice, n, in_place ? "in place" : "");
    };
    const Ints input = Ints::of(seed, c.rank(), n);
    const bool untouched = collective == Collective::exscan && c.rank() == 0;
    Ints output = in_place ? input : Ints(n);
    const Ints& wanted = untouched ? Ints(output) : expected;
    run(in_place ? ConstData(output.span()) : ConstData(input.span()), Data(output.span()));
    output.check(wanted.span(), context);
    input.check(Ints::of(seed, c.rank(), n).span(), context);
  }
}

void reduce_scatter(Communicator& c, std::int64_t n, std::uint64_t seed, const Choice& choice) {
  const Ints expected = sums(seed, c.size(), c.rank() * n, n);
  const auto own = [&](Ints& data) {
    return data.span().subspan(static_cast<std::size_t>(c.rank() * n), static_cast<std::size_t>(n));
  };
  const Ints original = Ints::of(seed, c.rank(), n * c.size());
  Ints input = original, output(n);
  c.reduce_scatter(input.span(), output.span(), sum, choice);
  const auto context = [&] { return where(c, Collective::reduce_scatter, choice, n); };
  output.check(expected.span(), context);
  input.check(original.span(), context);

  c.reduce_scatter(input.span(), own(input), sum, choice);
  Ints wanted = original;
  std::copy(expected.span().begin(), expected.span().end(), own(wanted).begin());
  input.check(wanted.span(),
              [&] { return where(c, Collective::reduce_scatter, choice, n, "in place"); });
}

}  // namespace

void reductions(Communicator& c, const Scope& scope) {
  std::uint64_t seed = 1;
  for (const std::int64_t n : scope.counts) {
    const auto for_each = [&](Collective collective, const auto& body) {
      for_choices(c, problem_of(c, collective), scope,
                  [&](const Choice& choice) { body(++seed, choice); });
    };
    for_each(Collective::all_reduce, [&](std::uint64_t s, const Choice& choice) {
      vector_reduction(c, Collective::all_reduce, n, s, choice, sums(s, c.size(), 0, n),
                       [&](ConstData in, Data out) { c.all_reduce(in, out, sum, choice); });
    });
    for_each(Collective::scan, [&](std::uint64_t s, const Choice& choice) {
      vector_reduction(c, Collective::scan, n, s, choice, sums(s, c.rank() + 1, 0, n),
                       [&](ConstData in, Data out) { c.scan(in, out, sum, choice); });
    });
    for_each(Collective::exscan, [&](std::uint64_t s, const Choice& choice) {
      vector_reduction(c, Collective::exscan, n, s, choice, sums(s, c.rank(), 0, n),
                       [&](ConstData in, Data out) { c.exscan(in, out, sum, choice); });
    });
    for_each(Collective::reduce_scatter,
             [&](std::uint64_t s, const Choice& choice) { reduce_scatter(c, n, s, choice); });
  }
}

}  // namespace support::conformance
