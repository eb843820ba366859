#include "device_run.hpp"

#include <thread>

#include "baton/error.hpp"

namespace baton::execute {

void append_rows(const Plan& plan, const Plan::Item& item, std::span<std::byte* const> bases,
                 std::vector<Rows>& rows) {
  for (const Piece& piece : plan.pieces_of(item)) {
    Rows& one = rows.emplace_back();
    for (int k = 0; k < operands(item.kind); ++k) {
      one.at[k] = bases[piece.at[k].base] + piece.at[k].offset;
      one.stride[k] = piece.stride[k];
    }
    one.block = piece.block;
    one.rows = piece.rows;
  }
}

void give_rows(Device& device, const Plan& plan, StepKind kind, const Kernels& kernels,
               std::span<const Rows> rows, Stream stream) {
  if (kind == StepKind::copy) {
    device.copy(rows, plan.element_bytes(), stream);
  } else if (kind == StepKind::fold) {
    device.fold(kernels.op, kernels.type, rows, stream);
  } else {
    device.divide(kernels.type, plan.header().size, rows, stream);
  }
}

DeviceRun::DeviceRun(std::shared_ptr<const Plan> plan, int window, const DeviceQueue& queue)
    : Run(std::move(plan), window), queue_(queue) {
  launched_.reserve(ready_.size());
  markers_.reserve(ready_.size());
}

bool DeviceRun::start(Transport& transport, const Kernels& kernels, int tag,
                      const Patience& patience) {
  for (Launched& launched : launched_) markers_.give(std::move(launched.marker));
  launched_.clear();
  collected_ = 0;
  return Run::start(transport, kernels, tag, patience);
}

bool DeviceRun::drive() {
  collect();
  return Run::drive();
}

void DeviceRun::work_on_ready() {
  if (ready_begin_ == ready_end_) return;
  const std::uint32_t first = ready_begin_;
  while (ready_begin_ < ready_end_) {
    // Steps that are ready together are independent: one launch for all of a kind.
    const auto ready = std::span(ready_).subspan(ready_begin_, ready_end_ - ready_begin_);
    for (const StepKind kind : {StepKind::copy, StepKind::fold, StepKind::divide})
      launch(kind, ready);
    ready_begin_ = ready_end_;
    for (const std::uint32_t step : ready) {
      for (const std::uint32_t next : plan_->dependents_of(step)) {
        if (plan_->items()[next].local() && --waits_[next] == 0) ready_[ready_end_++] = next;
      }
    }
  }
  std::unique_ptr<Marker> marker = markers_.take(*queue_.device);
  marker->set(queue_.stream);
  launched_.push_back({std::move(marker), first, ready_begin_});
}

void DeviceRun::launch(StepKind kind, std::span<const std::uint32_t> steps) {
  rows_.clear();
  for (const std::uint32_t step : steps) {
    const Plan::Item& item = plan_->items()[step];
    if (item.kind != kind) continue;
    if (recorded_) [[unlikely]]
      moments_[step].posted = moments_[step].start = tracing::now();
    append_rows(*plan_, item, bases_, rows_);
  }
  if (!rows_.empty()) give_rows(*queue_.device, *plan_, kind, kernels_, rows_, queue_.stream);
}

void DeviceRun::collect() {
  while (collected_ < launched_.size() && launched_[collected_].marker->passed()) {
    const Launched& launched = launched_[collected_++];
    for (std::uint32_t i = launched.first; i < launched.last; ++i) {
      const std::uint32_t step = ready_[i];
      if (recorded_) [[unlikely]]
        moments_[step].end = tracing::now();
      ++completed_;
      for (const std::uint32_t next : plan_->dependents_of(step)) {
        const Plan::Item& item = plan_->items()[next];
        if (!item.local() && --waits_[next] == 0) post_ready(item.channel);
      }
    }
  }
}

void DeviceRun::abandon() noexcept {
  wait_for_device();
  Run::abandon();
}

void DeviceRun::wait_for_device() noexcept {
  while (collected_ < launched_.size()) {
    try {
      if (launched_[collected_].marker->passed()) {
        ++collected_;
      } else {
        std::this_thread::yield();
      }
    } catch (const Error&) {
      collected_ = launched_.size();  // the device has finished
    }
  }
}

}  // namespace baton::execute
