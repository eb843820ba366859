#include "single_copy_run.hpp"

#include <algorithm>

#include "../memory/copy.hpp"

namespace baton::execute {

SingleCopyRun::SingleCopyRun(std::shared_ptr<const Plan> plan, int window)
    : Run(std::move(plan), window) {
  if (std::ranges::none_of(plan_->items(), [](const auto& item) { return item.folds(); })) return;
  folds_.resize(flights_.size());
  folded_.resize(plan_->items().size());
}

void SingleCopyRun::use(Transport& transport) {
  Run::use(transport);
  single_copy_ = transport.single_copy();
  least_read_ =
      single_copy_ ? single_copy_->least_bytes() : std::numeric_limits<std::size_t>::max();
}

void SingleCopyRun::post(std::uint32_t flight) {
  const std::uint32_t step = flights_[flight].step;
  const Plan::Item& item = plan_->items()[step];
  if (reads(item.peer, static_cast<std::size_t>(item.bytes))) {
    post_read(flight, fold_after(step, waits_));
  } else {
    Run::post(flight);
  }
}

void SingleCopyRun::post_read(std::uint32_t which, std::uint32_t step) {
  Flight& flight = flights_[which];
  const Plan::Item& item = plan_->items()[flight.step];
  const auto bytes = static_cast<std::size_t>(item.bytes);
  const int tag = tag_ + item.lane;
  std::byte* const data = address(message_place(item));
  if (item.kind == StepKind::send)
    return single_copy_->offer(item.peer, tag, data, bytes, flight.message);
  Destination to{data};
  if (step != Plan::no_fold && plan_->element_bytes() <= Destination::most_unit) {
    folds_[which] = {this, which, step, 0, host::outgrows_cache(bytes)};
    ++folding_;
    to = {&folds_[which], &SingleCopyRun::take, plan_->element_bytes()};
  }
  single_copy_->fetch(item.peer, tag, to, bytes, flight.message);
}

void SingleCopyRun::take(void* which, std::byte* part, std::size_t bytes) {
  Fold& fold = *static_cast<Fold*>(which);
  SingleCopyRun& run = *fold.run;
  const Plan& plan = *run.plan_;
  const Piece& piece = plan.pieces()[plan.items()[fold.step].first_piece];
  const Plan::Item& message = plan.items()[run.flights_[fold.flight].step];
  const bool left = piece.at[1] == run.message_place(message);
  const std::byte* const other = run.address(piece.at[left ? 2 : 1]) + fold.folded;
  std::byte* const into = run.address(piece.at[0]) + fold.folded;
  const bool around = fold.outgrows && into != other;
  run.fold(around ? part : into, left ? part : other, left ? other : part,
           bytes / plan.element_bytes());
  if (around) host::copy_past_cache(into, part, bytes);
  fold.folded += bytes;
}

void SingleCopyRun::note_fold(std::uint32_t flight) {
  const std::uint32_t step = std::exchange(folds_[flight].step, Plan::no_fold);
  if (step == Plan::no_fold) return;
  --folding_;
  folded_[step] = 1;
  if (!recorded_) return;
  const std::int64_t end = moments_[flights_[flight].step].end;
  moments_[step] = {end, end, end};
}

void SingleCopyRun::work(std::uint32_t step) {
  if (!folded(step)) Run::work(step);
}

void SingleCopyRun::abandon() noexcept {
  Run::abandon();
  for (Fold& fold : folds_) fold.step = Plan::no_fold;
  folding_ = 0;
  std::fill(folded_.begin(), folded_.end(), char{0});
}

}  // namespace baton::execute
