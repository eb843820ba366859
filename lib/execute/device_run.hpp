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

/// The stream of a device that runs of plans on its memory give their folds and copies to.
struct DeviceQueue {
  Device* device;
  Stream stream;
};

/// Appends the operands of a fold, copy or divide, given the base addresses.
void append_rows(const Plan& plan, const Plan::Item& item, std::span<std::byte* const> bases,
                 std::vector<Rows>& rows);
/// Gives the work of steps of one kind to a stream.
void give_rows(Device& device, const Plan& plan, StepKind kind, const Kernels& kernels,
               std::span<const Rows> rows, Stream stream);

/// A run on a device's memory. Folds and copies are given to a stream as soon as all before them is
/// complete or in the same stream; a marker behind them tells when the messages that wait for them
/// may be posted.
class DeviceRun final : public Run {
 public:
  /// `queue` outlives this.
  DeviceRun(std::shared_ptr<const Plan> plan, int window, const DeviceQueue& queue);

  bool on_device() const override { return true; }
  bool start(Transport& transport, const Kernels& kernels, int tag,
             const Patience& patience = {}) override;
  bool drive() override;
  /// Returns when the device works on this run's memory no more.
  void abandon() noexcept override;

 protected:
  void work_on_ready() override;

 private:
  /// Steps that were given to the device, ready_[first] to ready_[last - 1], and the marker behind.
  struct Launched {
    std::unique_ptr<Marker> marker;
    std::uint32_t first, last;
  };
  /// Gives those of the steps that are of this kind to the device.
  void launch(StepKind kind, std::span<const std::uint32_t> steps);
  /// Completes the steps that the device has done.
  void collect();
  void wait_for_device() noexcept;

  const DeviceQueue& queue_;
  std::vector<Launched> launched_;
  std::size_t collected_ = 0;  // of launched_
  base::MarkerPool markers_;
  std::vector<Rows> rows_;  // of the step being given to the device
};

}  // namespace baton::execute
