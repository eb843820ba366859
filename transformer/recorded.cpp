#include "recorded.hpp"

#include <fmt/core.h>

#include <utility>

namespace baton::transformer {

void record_units(Context& context, int micro_batch) {
  if (!records_computations()) return;
  const auto begin = std::make_shared<std::int64_t>(0);
  context.before = [begin, before = std::move(context.before)](std::size_t unit, bool backward) {
    if (before) before(unit, backward);
    *begin = RecordedWork::now();
  };
  context.after = [begin, micro_batch, after = std::move(context.after)](std::size_t unit,
                                                                         bool backward) {
    const Computation what{fmt::format("{}{}{}", unit, backward ? 'B' : 'F', micro_batch),
                           backward ? ComputationKind::backward : ComputationKind::forward, 0};
    record_computation(what, *begin, RecordedWork::now());
    if (after) after(unit, backward);
  };
}

}  // namespace baton::transformer
