#include "baton/select.hpp"

#include "base/raise.hpp"
#include "select.hpp"

namespace baton {
namespace {

void check(std::size_t element_bytes) {
  if (element_bytes == 0) base::refuse("expected elements of at least 1 byte, found 0");
}

}  // namespace

Choice chosen(const Registry& registry, const Problem& problem, std::size_t element_bytes,
              int cores) {
  check(element_bytes);
  if (cores < 0) base::refuse("expected at least 0 cores, found {}", cores);
  const selecting::Selection selection =
      selecting::select(registry, problem, element_bytes, {}, {}, nullptr, {.cores = cores});
  return {selection.algorithm->name, selection.segment};
}

Schedule scheduled(const Registry& registry, const Problem& problem, std::size_t element_bytes,
                   const Choice& choice) {
  check(element_bytes);
  const Algorithm& algorithm = selecting::serving(registry, problem, choice.algorithm);
  return selecting::scheduled({&algorithm, choice.segment.value_or(0), {}}, problem, element_bytes);
}

}  // namespace baton
