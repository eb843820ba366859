#include <fmt/core.h>

#include "conformance.hpp"

namespace support::conformance {
namespace {

using namespace baton;
using Ints = Guarded<std::int32_t>;

/// One call of each kind: all ranks' inputs are `Ints::of(seed, rank, n)`.
struct Rooted {
  Communicator& c;
  int root;
  std::int64_t n;
  std::uint64_t seed;
  Choice choice;

  bool is_root() const { return c.rank() == root; }
  auto context(Collective collective, std::string_view more = {}) const {
    return [this, collective, more] {
      return where(c, collective, choice, n, fmt::format("root {} {}", root, more));
    };
  }

  void broadcast() const {
    Ints data = is_root() ? Ints::of(seed, root, n) : Ints(n);
    c.broadcast(data.span(), root, choice);
    data.check(Ints::of(seed, root, n).span(), context(Collective::broadcast));
  }

  void reduce(bool in_place) const {
    const Ints input = Ints::of(seed, c.rank(), n);
    Ints output = in_place && is_root() ? input : Ints(n);
    Ints expected(n, is_root() ? 0 : Ints::unset);
    for (int rank = 0; is_root() && rank < c.size(); ++rank) {
      for (std::int64_t i = 0; i < n; ++i) expected[i] += value(seed, rank, i);
    }
    const ConstData from = in_place && is_root() ? ConstData(output.span()) : input.span();
    c.reduce(from, output.span(), sum, root, choice);
    output.check(expected.span(), context(Collective::reduce, in_place ? "in place" : ""));
    input.check(Ints::of(seed, c.rank(), n).span(), context(Collective::reduce, "input"));
  }

  void gather(bool in_place) const {
    const Ints input = Ints::of(seed, c.rank(), n);
    const std::int64_t all = is_root() ? n * c.size() : 0;
    Ints output(all), expected(all);
    for (std::int64_t i = 0; i < all; ++i) {
      expected[i] = value(seed, static_cast<int>(i / n), i % n);
    }
    ConstData from = input.span();
    if (in_place && is_root()) {
      const auto own =
          output.span().subspan(static_cast<std::size_t>(n * root), static_cast<std::size_t>(n));
      std::copy(input.span().begin(), input.span().end(), own.begin());
      from = own;
    }
    c.gather(from, output.span(), root, choice);
    output.check(expected.span(), context(Collective::gather, in_place ? "in place" : ""));
    input.check(Ints::of(seed, c.rank(), n).span(), context(Collective::gather, "input"));
  }

  void scatter(bool in_place) const {
    Ints input = is_root() ? Ints::of(seed, root, n * c.size()) : Ints(0);
    Ints output(n), expected(n);
    for (std::int64_t i = 0; i < n; ++i) expected[i] = value(seed, root, c.rank() * n + i);
    if (in_place && is_root()) {
      c.scatter(
          input.span(),
          input.span().subspan(static_cast<std::size_t>(n * root), static_cast<std::size_t>(n)),
          root, choice);
    } else {
      c.scatter(input.span(), output.span(), root, choice);
      output.check(expected.span(), context(Collective::scatter));
    }
    if (is_root()) {
      input.check(Ints::of(seed, root, n * c.size()).span(),
                  context(Collective::scatter, in_place ? "in place, input" : "input"));
    }
  }
};

}  // namespace

void rooted(Communicator& c, const Scope& scope) {
  std::uint64_t seed = 1;
  for (const std::int64_t root : scope.roots) {
    for (const std::int64_t n : scope.counts) {
      const auto for_each = [&](Collective collective, const auto& body) {
        Problem problem = problem_of(c, collective);
        problem.root = static_cast<int>(root);
        for_choices(c, problem, scope, [&](const Choice& choice) {
          body(Rooted{c, static_cast<int>(root), n, ++seed, choice});
        });
      };
      for_each(Collective::broadcast, [](const Rooted& call) { call.broadcast(); });
      for (const bool in_place : {false, true}) {
        for_each(Collective::reduce, [&](const Rooted& call) { call.reduce(in_place); });
        for_each(Collective::gather, [&](const Rooted& call) { call.gather(in_place); });
        for_each(Collective::scatter, [&](const Rooted& call) { call.scatter(in_place); });
      }
    }
  }
}

}  // namespace support::conformance
