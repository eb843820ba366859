#include "single_copy_run.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "../memory/copy.hpp"

namespace baton::execute {

SingleCopyRun::SingleCopyRun(std::shared_ptr<const Plan> plan, int window)
    : Run(std::move(plan), window) {
  const auto plain = [](const Plan::Item& item) { return item.partner == Plan::none; };
  if (std::ranges::all_of(plan_->items(), plain)) return;
  tasks_.resize(flights_.size());
  with_message_.resize(plan_->items().size());
}

void SingleCopyRun::use(Transport& transport) {
  Run::use(transport);
  single_copy_ = transport.single_copy();
  giving_ = transport.giving();
  least_read_ =
      single_copy_ ? single_copy_->least_bytes() : std::numeric_limits<std::size_t>::max();
  std::ranges::fill(with_message_, With::none);
  mark_sent();
}

/// Notes the copies that gather messages while they are sent.
void SingleCopyRun::mark_sent() {
  if (giving_ == nullptr) return;
  for (const Plan::Item& item : plan_->items())
    if (item.kind == StepKind::send && item.partner != Plan::none &&
        reads(item.peer, static_cast<std::size_t>(item.bytes)) &&
        giving_->gives(item.peer, plan_->element_bytes()))
      with_message_[item.partner] = With::sent;
}

std::uint32_t SingleCopyRun::taker_after(std::uint32_t step,
                                         std::span<const std::uint32_t> waits) const {
  const Plan::Item& item = plan_->items()[step];
  const bool may_take = item.kind == StepKind::recv && item.partner != Plan::none;
  return may_take && waits[item.partner] == 1 ? item.partner : Plan::none;
}

void SingleCopyRun::post(std::uint32_t flight) {
  const std::uint32_t step = flights_[flight].step;
  const Plan::Item& item = plan_->items()[step];
  if (reads(item.peer, static_cast<std::size_t>(item.bytes))) {
    post_read(flight, taker_after(step, waits_));
  } else {
    Run::post(flight);
  }
}

void SingleCopyRun::post_read(std::uint32_t which, std::uint32_t local) {
  Flight& flight = flights_[which];
  const Plan::Item& item = plan_->items()[flight.step];
  const auto bytes = static_cast<std::size_t>(item.bytes);
  const std::size_t unit = plan_->element_bytes();
  const int tag = tag_ + item.lane;
  const auto strides = [&](std::uint32_t step, int operand) {
    return Strides(plan_->pieces_of(plan_->items()[step]), operand, unit);
  };
  if (item.kind == StepKind::send) {
    if (item.partner == Plan::none || with_message_[item.partner] != With::sent)
      return single_copy_->offer(item.peer, tag, address(message_place(item)), bytes,
                                 flight.message);
    Task& task = tasks_[which];
    task = {.run = this, .flight = which, .strides = strides(item.partner, 1)};
    task.source = {&task, &SingleCopyRun::gather_part, unit};
    return giving_->give(item.peer, tag, task.source, bytes, flight.message);
  }
  Destination to{address(message_place(item))};
  if (local != Plan::none && unit <= Destination::most_unit) {
    Task& task = tasks_[which];
    const bool copies = plan_->items()[local].kind == StepKind::copy;
    task = {.run = this, .flight = which, .step = local, .outgrows = host::outgrows_cache(bytes)};
    if (copies) task.strides = strides(local, 0);
    ++taking_;
    to = {&task, copies ? &SingleCopyRun::scatter_part : &SingleCopyRun::fold_part, unit};
  }
  single_copy_->fetch(item.peer, tag, to, bytes, flight.message);
}

void SingleCopyRun::fold_part(void* which, std::byte* part, std::size_t bytes) {
  Task& task = *static_cast<Task*>(which);
  SingleCopyRun& run = *task.run;
  const Plan& plan = *run.plan_;
  const Piece& piece = plan.pieces()[plan.items()[task.step].first_piece];
  const Plan::Item& message = plan.items()[run.flights_[task.flight].step];
  const bool left = piece.at[1] == run.message_place(message);
  const std::byte* const other = run.address(piece.at[left ? 2 : 1]) + task.folded;
  std::byte* const into = run.address(piece.at[0]) + task.folded;
  const bool around = task.outgrows && into != other;
  run.fold(around ? part : into, left ? part : other, left ? other : part,
           bytes / plan.element_bytes());
  if (around) host::copy_past_cache(into, part, bytes);
  task.folded += bytes;
}

void SingleCopyRun::scatter_part(void* which, std::byte* part, std::size_t bytes) {
  Task& task = *static_cast<Task*>(which);
  task.strides.next(bytes, [&](const Place& place, std::size_t length) {
    host::copy(task.run->address(place), part, length, task.outgrows);
    part += length;
  });
}

void SingleCopyRun::gather_part(void* which, std::byte* part, std::size_t bytes) noexcept {
  Task& task = *static_cast<Task*>(which);
  task.strides.next(bytes, [&](const Place& place, std::size_t length) {
    std::memcpy(part, task.run->address(place), length);
    part += length;
  });
}

void SingleCopyRun::note_taken(std::uint32_t flight) {
  const std::uint32_t step = std::exchange(tasks_[flight].step, Plan::none);
  if (step == Plan::none) return;
  --taking_;
  with_message_[step] = With::received;
  if (!recorded_) return;
  const std::int64_t end = moments_[flights_[flight].step].end;
  moments_[step] = {end, end, end};
}

bool SingleCopyRun::was_with_message(std::uint32_t step) {
  if (with_message_[step] == With::none) return false;
  if (with_message_[step] == With::received) {
    with_message_[step] = With::none;
  } else if (recorded_) {
    const std::int64_t now = tracing::now();
    moments_[step] = {now, now, now};
  }
  return true;
}

void SingleCopyRun::work(std::uint32_t step) {
  if (!with_message(step)) Run::work(step);
}

void SingleCopyRun::abandon() noexcept {
  Run::abandon();
  for (Task& task : tasks_) task.step = Plan::none;
  taking_ = 0;
  std::ranges::replace(with_message_, With::received, With::none);
}

}  // namespace baton::execute
