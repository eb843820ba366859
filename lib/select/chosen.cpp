#include "baton/select.hpp"

#include "select.hpp"

namespace baton {

Choice chosen(const Registry& registry, const Problem& problem, std::size_t element_bytes) {
  const selecting::Selection selection =
      selecting::select(registry, problem, element_bytes, {}, {});
  return {selection.algorithm->name, selection.segment};
}

Schedule scheduled(const Registry& registry, const Problem& problem, std::size_t element_bytes,
                   const Choice& choice) {
  const Algorithm& algorithm = selecting::serving(registry, problem, choice.algorithm);
  return selecting::scheduled({&algorithm, choice.segment.value_or(0), {}}, problem, element_bytes);
}

}  // namespace baton
