#include "runs.hpp"

#include <algorithm>
#include <utility>

#include "baton/memory.hpp"

namespace baton::communicator {

using base::BlockPool;

Execution Runs::take(execute::CachedPlan& plan, const execute::Kernels& kernels,
                     std::span<std::byte* const> bases) {
  Execution execution{&plan, plan.take(context_.options.window), kernels};
  const auto places = execution.run->bases();
  if (!execution.run->has_scratch()) {
    BlockPool& pool = scratch_of(*execution.run);
    try {
      places[execute::scratch_base] = pool.take(plan.plan->scratch_bytes());
      places[execute::slot_base] = pool.take(plan.plan->slot_bytes());
    } catch (...) {
      pool.give(places[execute::scratch_base], plan.plan->scratch_bytes());
      plan.give(std::move(execution.run));
      throw;
    }
  }
  std::copy(bases.begin(), bases.end(), places.begin() + execute::first_tensor_base);
  return execution;
}

void Runs::give_back(Execution& execution) noexcept {
  if (!execution.run) return;
  if (!execution.run->has_scratch()) {
    const auto places = execution.run->bases();
    const execute::Plan& plan = *execution.plan->plan;
    BlockPool& pool = scratch_of(*execution.run);
    pool.give(std::exchange(places[execute::scratch_base], nullptr), plan.scratch_bytes());
    pool.give(std::exchange(places[execute::slot_base], nullptr), plan.slot_bytes());
  }
  execution.plan->give(std::move(execution.run));
}

void Runs::give_up(Execution& execution) noexcept {
  if (context_.can.cancels) return give_back(execution);
  static_cast<void>(execution.run.release());
}

void choose_kernels(Collective collective, const Op& op, Datatype type, execute::Kernels& kernels) {
  if (!reducing(collective)) return;
  kernels.op = op.kind;
  kernels.type = type;
  if (op.kind == OpKind::user) {
    kernels.user = op.function;
    kernels.context = op.context;
  } else {
    kernels.fold = host::fold(op.kind, type);
    if (op.kind == OpKind::avg) kernels.divide = host::divide(type);
  }
}

}  // namespace baton::communicator
