#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "../base/marker_pool.hpp"
#include "baton/device.hpp"
#include "run.hpp"

namespace baton::execute {

/// A device and its stream for the folds and copies of plans on its memory.
struct DeviceQueue {
  Device* device;
  Stream stream;
};

/// Appends the operands of a fold, copy or divide, given the base addresses.
void append_rows(const Plan& plan, const Plan::Item& item, std::span<std::byte* const> bases,
                 std::vector<Rows>& rows);
/// Enqueues steps of one kind.
void give_rows(Device& device, const Plan& plan, StepKind kind, const Kernels& kernels,
               std::span<const Rows> rows, Stream stream);

/// A run on a device's memory. It enqueues a fold or copy as soon as its dependencies are complete
/// or in the same stream. A marker behind it tells when the messages that depend on it may be
/// posted.
class DeviceRun final : public Run {
 public:
  /// `queue` outlives this.
  DeviceRun(std::shared_ptr<const Plan> plan, int window, const DeviceQueue& queue);

  bool on_device() const override { return true; }
  bool start(Transport& transport, const Kernels& kernels, int tag,
             const Patience& patience = {}) override;
  bool drive() override;
  /// Returns when the device no longer works on this run's memory.
  void abandon() noexcept override;

 protected:
  void work_on_ready() override;

 private:
  /// Enqueued steps, ready_[first] to ready_[last - 1], and the marker behind them.
  struct Launched {
    std::unique_ptr<Marker> marker;
    std::uint32_t first, last;
  };
  /// Enqueues those of the steps that are of this kind.
  void launch(StepKind kind, std::span<const std::uint32_t> steps);
  /// Completes the steps that the device has finished.
  void collect();
  void wait_for_device() noexcept;

  const DeviceQueue& queue_;
  std::vector<Launched> launched_;
  std::size_t collected_ = 0;  // in launched_
  base::MarkerPool markers_;
  std::vector<Rows> rows_;  // of the step being enqueued
};

}  // namespace baton::execute
