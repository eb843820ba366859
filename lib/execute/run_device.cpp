#include <thread>

#include "baton/error.hpp"
#include "run.hpp"

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

void Run::launch_local() {
  if (local_head_ == local_tail_) return;
  const std::uint32_t first = local_head_;
  while (local_head_ < local_tail_) {
    // Steps that are ready at once are independent of one another: one launch for all of a kind.
    const auto ready = std::span(local_).subspan(local_head_, local_tail_ - local_head_);
    for (const StepKind kind : {StepKind::copy, StepKind::fold, StepKind::divide})
      launch(kind, ready);
    local_head_ = local_tail_;
    for (const std::uint32_t step : ready) {
      for (const std::uint32_t next : plan_->dependents_of(step)) {
        if (plan_->items()[next].local() && --waits_[next] == 0) local_[local_tail_++] = next;
      }
    }
  }
  std::unique_ptr<Marker> marker = markers_.take(*queue_->device);
  marker->set(queue_->stream);
  launched_.push_back({std::move(marker), first, local_head_});
}

void Run::launch(StepKind kind, std::span<const std::uint32_t> steps) {
  rows_.clear();
  for (const std::uint32_t step : steps) {
    const Plan::Item& item = plan_->items()[step];
    if (item.kind != kind) continue;
    if (recorded_) [[unlikely]]
      moments_[step].posted = moments_[step].start = tracing::now();
    append_rows(*plan_, item, bases_, rows_);
  }
  if (!rows_.empty()) give_rows(*queue_->device, *plan_, kind, kernels_, rows_, queue_->stream);
}

void Run::collect_launched() {
  while (collected_ < launched_.size() && launched_[collected_].marker->passed()) {
    const Launched& launched = launched_[collected_++];
    for (std::uint32_t i = launched.first; i < launched.last; ++i) {
      const std::uint32_t step = local_[i];
      if (recorded_) [[unlikely]]
        note_end(step);
      ++completed_;
      for (const std::uint32_t next : plan_->dependents_of(step)) {
        const Plan::Item& item = plan_->items()[next];
        if (!item.local() && --waits_[next] == 0) post_ready(item.channel);
      }
    }
  }
}

void Run::forget_launched() {
  for (Launched& launched : launched_) markers_.give(std::move(launched.marker));
  launched_.clear();
  collected_ = 0;
}

void Run::wait_for_device() noexcept {
  while (collected_ < launched_.size()) {
    try {
      if (launched_[collected_].marker->passed()) {
        ++collected_;
      } else {
        std::this_thread::yield();
      }
    } catch (const Error&) {
      collected_ = launched_.size();  // it does nothing any more
    }
  }
}

}  // namespace baton::execute
