#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "../base/block_pool.hpp"
#include "../execute/plan_cache.hpp"
#include "context.hpp"

namespace baton::communicator {

/// A run with its scratch.
struct Execution {
  execute::CachedPlan* plan = nullptr;
  std::unique_ptr<execute::Run> run;
  execute::Kernels kernels;
};

/// Takes runs from plans, gives them scratch and buffers, and takes them back.
class Runs {
 public:
  explicit Runs(const Context& context) : context_(context) {}
  /// Takes the scratch of runs on a device's memory from `pool`.
  void use_device_scratch(base::BlockPool& pool) { device_scratch_ = &pool; }

  /// `bases`: the tensors' addresses. Throws Error(memory).
  Execution take(execute::CachedPlan& plan, const execute::Kernels& kernels,
                 std::span<std::byte* const> bases);
  void give_back(Execution& execution) noexcept;
  /// give_back() for a run with abandoned messages. If the transport cannot cancel, a message may
  /// still arrive: then the run and its scratch are never reused.
  void give_up(Execution& execution) noexcept;

 private:
  base::BlockPool& scratch_of(const execute::Run& run) {
    return run.on_device() ? *device_scratch_ : host_scratch_;
  }

  const Context& context_;
  base::BlockPool host_scratch_;
  base::BlockPool* device_scratch_ = nullptr;
};

/// Completes `kernels` with the functions for the call's op and type.
void choose_kernels(Collective collective, const Op& op, Datatype type, execute::Kernels& kernels);

}  // namespace baton::communicator
