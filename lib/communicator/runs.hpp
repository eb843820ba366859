#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "../execute/plan_cache.hpp"
#include "../execute/scratch_pool.hpp"
#include "context.hpp"

namespace baton::communicator {

/// A run taken from its plan, with scratch.
struct Execution {
  execute::CachedPlan* plan = nullptr;
  std::unique_ptr<execute::Run> run;
  execute::Kernels kernels;
};

/// Takes runs from plans, gives them scratch and buffers, and takes them back.
class Runs {
 public:
  explicit Runs(const Context& context) : context_(context) {}
  /// Runs on a device's memory take their scratch from here.
  void use_device_scratch(execute::ScratchPool& pool) { device_scratch_ = &pool; }

  /// `bases`: of the tensors. Throws Error(memory).
  Execution take(execute::CachedPlan& plan, const execute::Kernels& kernels,
                 std::span<std::byte* const> bases);
  void give_back(Execution& execution) noexcept;
  /// As give_back(), for a run whose messages were abandoned. Where the transport cannot cancel,
  /// one may still arrive: then the run and its scratch are kept for good.
  void give_up(Execution& execution) noexcept;

 private:
  execute::ScratchPool& scratch_of(const execute::Run& run) {
    return run.on_device() ? *device_scratch_ : host_scratch_;
  }

  const Context& context_;
  execute::ScratchPool host_scratch_;
  execute::ScratchPool* device_scratch_ = nullptr;
};

/// Sets the functions that a call applies to data, in kernels that are empty.
void choose_kernels(Collective collective, const Op& op, Datatype type, execute::Kernels& kernels);

}  // namespace baton::communicator
