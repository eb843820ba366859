#include <fmt/core.h>

#include "baton/error.hpp"
#include "baton/schedule/algorithm.hpp"

namespace baton {

void Registry::add(Algorithm algorithm) {
  const auto refuse = [&](std::string_view why) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("algorithm \"{}\" of {} {}", algorithm.name, name(algorithm.collective), why));
  };
  if (algorithm.name.empty()) refuse("has no name");
  if (!algorithm.generate) refuse("has no generator");
  if (!algorithm.cost) refuse("has no cost");
  for (const Algorithm* known : of(algorithm.collective)) {
    if (known->name == algorithm.name) refuse("is registered already");
  }
  algorithms_.push_back(std::move(algorithm));
}

const Algorithm& Registry::find(Collective collective, std::string_view name) const {
  std::string known;
  for (const Algorithm* algorithm : of(collective)) {
    if (algorithm->name == name) return *algorithm;
    known += (known.empty() ? "" : ", ") + algorithm->name;
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("expected an algorithm of {} ({}), found \"{}\"", baton::name(collective),
                          known, name));
}

std::vector<const Algorithm*> Registry::of(Collective collective) const {
  std::vector<const Algorithm*> found;
  for (const Algorithm& algorithm : algorithms_) {
    if (algorithm.collective == collective) found.push_back(&algorithm);
  }
  return found;
}

std::string refusal(const Algorithm& algorithm, const Problem& problem) {
  if (problem.uneven() && !algorithm.uneven) return "takes even counts only, found uneven ones";
  if (reducing(problem.collective) && !problem.commutative && !algorithm.ordered) {
    return "does not keep rank order, found an operation that does not commute";
  }
  if (algorithm.hierarchical) {
    if (!problem.hosts) return "needs ranks on several hosts, found one host";
    if (problem.hosts->largest() == 1) return "needs ranks that share a host, found none";
  }
  return algorithm.refuses ? algorithm.refuses(problem) : std::string();
}

}  // namespace baton
