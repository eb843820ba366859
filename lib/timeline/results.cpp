#include "results.hpp"

#include <algorithm>

namespace baton::timing {
namespace {

/// Whether `step` reads what `earlier` has written.
bool reads(const Schedule& schedule, const Step& step, const Step& earlier) {
  if (earlier.kind == StepKind::send) return false;
  const bool in_place = step.kind == StepKind::send || step.kind == StepKind::divide;
  for (int k = in_place ? 0 : 1; k < operands(step.kind); ++k) {
    for (const Region& read : schedule.operand(step, k)) {
      for (const Region& written : schedule.operand(earlier, 0)) {
        if (overlap(read, written) != Overlap::none) return true;
      }
    }
  }
  return false;
}

}  // namespace

Results::Results(const Steps& steps) {
  bool computes = false;
  for (std::uint32_t s = 0; s < steps.count() && !computes; ++s)
    computes = steps.step(s).kind == StepKind::compute;
  if (!computes) return;
  of_.assign(steps.count(), nullptr);
  for (const std::uint32_t s : steps.order()) of_[s] = carried(steps, s);
}

const Computation* Results::carried(const Steps& steps, std::uint32_t s) const {
  const Step& step = steps.step(s);
  const Schedule& schedule = steps.schedule(s);
  if (step.kind == StepKind::compute) return &schedule.computation(step);
  if (step.kind == StepKind::recv) return of_[steps.partner(s)];
  const auto dependencies = schedule.dependencies(steps.index(s));
  for (auto d = dependencies.rbegin(); d != dependencies.rend(); ++d) {
    const Computation* result = of_[steps.at(steps.rank(s), *d)];
    if (result && reads(schedule, step, schedule.steps()[*d])) return result;
  }
  return nullptr;
}

}  // namespace baton::timing
