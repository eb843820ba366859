#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "baton/schedule/step.hpp"
#include "baton/schedule/text.hpp"

namespace baton {
namespace {

std::optional<std::string> difference(const Schedule::Header& a, const Schedule::Header& b) {
  const auto differ = [](std::string_view what, const auto& x, const auto& y) {
    return fmt::format("{}: {} and {}", what, x, y);
  };
  if (a.collective != b.collective)
    return differ("collective", name(a.collective), name(b.collective));
  if (a.algorithm != b.algorithm) {
    return fmt::format("algorithm: \"{}\" and \"{}\"", a.algorithm, b.algorithm);
  }
  if (a.size != b.size) return differ("size", a.size, b.size);
  if (a.rank != b.rank) return differ("rank", a.rank, b.rank);
  if (a.root != b.root) return differ("root", a.root, b.root);
  if (a.input != b.input) return differ("elements of input", a.input, b.input);
  if (a.output != b.output) return differ("elements of output", a.output, b.output);
  if (a.scratch != b.scratch) return differ("elements of scratch", a.scratch, b.scratch);
  if (a.slots != b.slots) return differ("elements of slots", a.slots, b.slots);
  if (a.in_place != b.in_place) return differ("in place", a.in_place, b.in_place);
  return std::nullopt;
}

std::optional<std::string> difference(const Schedule& a, const Schedule& b, std::size_t i) {
  const Step &x = a.steps()[i], &y = b.steps()[i];
  bool same = x.kind == y.kind && x.peer == y.peer;
  if (same && x.kind == StepKind::compute) same = a.computation(x) == b.computation(y);
  for (int k = 0; same && k < operands(x.kind); ++k) {
    same = std::ranges::equal(a.operand(x, k), b.operand(y, k));
  }
  if (!same) return fmt::format("step {}: \"{}\" and \"{}\"", i, print(a, i), print(b, i));

  const auto differ = [&](std::string_view what, int left, int right) {
    return fmt::format("step {}, \"{}\": {} {} and {}", i, print(a, i), what, left, right);
  };
  if (x.lane != y.lane) return differ("lane", x.lane, y.lane);
  if (x.round != y.round) return differ("round", x.round, y.round);
  if (!std::ranges::equal(a.dependencies(i), b.dependencies(i))) {
    return fmt::format("step {}, \"{}\": waits for {} and {}", i, print(a, i), a.dependencies(i),
                       b.dependencies(i));
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> difference(const Schedule& a, const Schedule& b) {
  if (a == b) return std::nullopt;
  if (auto found = difference(a.header(), b.header())) return found;
  const std::size_t steps = std::min(a.steps().size(), b.steps().size());
  for (std::size_t i = 0; i < steps; ++i) {
    if (auto found = difference(a, b, i)) return found;
  }
  if (a.steps().size() != b.steps().size()) {
    const bool first = a.steps().size() > steps;
    return fmt::format("steps: {} and {}; only the {} has \"{}\"", a.steps().size(),
                       b.steps().size(), first ? "first" : "second", print(first ? a : b, steps));
  }
  return fmt::format(
      "overlaps that were assumed: {} and {}, or the order in which regions are kept",
      a.assumed_overlaps(), b.assumed_overlaps());
}

}  // namespace baton
