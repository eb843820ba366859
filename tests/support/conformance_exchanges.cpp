#include "conformance.hpp"

namespace support::conformance {
namespace {

using namespace baton;
using Ints = Guarded<std::int32_t>;

void all_gather(Communicator& c, std::int64_t n, std::uint64_t seed, const Choice& choice) {
  for (const bool in_place : {false, true}) {
    const auto context = [&] {
      return where(c, Collective::all_gather, choice, n, in_place ? "in place" : "");
    };
    const Ints input = Ints::of(seed, c.rank(), n);
    Ints output(n * c.size()), expected(n * c.size());
    for (std::int64_t i = 0; i < expected.size(); ++i) {
      expected[i] = value(seed, static_cast<int>(i / n), i % n);
    }
    const auto own =
        output.span().subspan(static_cast<std::size_t>(c.rank() * n), static_cast<std::size_t>(n));
    if (in_place) std::copy(input.span().begin(), input.span().end(), own.begin());
    c.all_gather(in_place ? ConstData(own) : ConstData(input.span()), output.span(), choice);
    output.check(expected.span(), context);
    input.check(Ints::of(seed, c.rank(), n).span(), context);
  }
}

void all_to_all(Communicator& c, std::int64_t n, std::uint64_t seed, const Choice& choice) {
  for (const bool in_place : {false, true}) {
    const auto context = [&] {
      return where(c, Collective::all_to_all, choice, n, in_place ? "in place" : "");
    };
    const std::int64_t all = n * c.size();
    const Ints input = Ints::of(seed, c.rank(), all);
    Ints output = in_place ? input : Ints(all);
    Ints expected(all);
    for (std::int64_t i = 0; i < all; ++i) {
      expected[i] = value(seed, static_cast<int>(i / n), c.rank() * n + i % n);
    }
    c.all_to_all(in_place ? ConstData(output.span()) : ConstData(input.span()), output.span(),
                 choice);
    output.check(expected.span(), context);
    input.check(Ints::of(seed, c.rank(), all).span(), context);
  }
}

}  // namespace

void exchanges(Communicator& c, const Scope& scope) {
  std::uint64_t seed = 1;
  for (const std::int64_t n : scope.counts) {
    for_choices(c, problem_of(c, Collective::all_gather), scope,
                [&](const Choice& choice) { all_gather(c, n, ++seed, choice); });
    for_choices(c, problem_of(c, Collective::all_to_all), scope,
                [&](const Choice& choice) { all_to_all(c, n, ++seed, choice); });
  }
}

}  // namespace support::conformance
