// Messages of a run that their receivers read in their senders' memory, and folds of their parts.

#include "run.hpp"

namespace baton::execute {

void Run::offer_or_fetch(const Line& line) {
  Flight& flight = flights_[line.flight];
  const int tag = tag_ + line.lane;
  std::byte* const data = address(line.place);
  if (line.sends) return single_copy_->offer(line.peer, tag, data, line.bytes, flight.message);
  Destination to{data};
  if (line.fold != Plan::no_fold && plan_->element_bytes() <= Destination::most_unit) {
    flight.fold = line.fold;
    flight.folded = 0;
    flight.run = this;
    flight.outgrows = host::outgrows_cache(line.bytes);
    to = {&flight, &Run::take, plan_->element_bytes()};
  }
  single_copy_->fetch(line.peer, tag, to, line.bytes, flight.message);
}

void Run::take(void* which, std::byte* part, std::size_t bytes) {
  Flight& flight = *static_cast<Flight*>(which);
  Run& run = *flight.run;
  const Plan& plan = *run.plan_;
  const Piece& piece = plan.pieces()[plan.items()[flight.fold].first_piece];
  const bool left = piece.at[1] == plan.pieces()[plan.items()[flight.step].first_piece].at[0];
  const std::byte* const other = run.address(piece.at[left ? 2 : 1]) + flight.folded;
  std::byte* const into = run.address(piece.at[0]) + flight.folded;
  const bool around = flight.outgrows && into != other;
  run.fold(around ? part : into, left ? part : other, left ? other : part,
           bytes / plan.element_bytes());
  if (around) host::copy_past_cache(into, part, bytes);
  flight.folded += bytes;
}

void Run::land(Flight& flight) {
  if (recorded_) [[unlikely]]
    note_end(flight.step);
  if (flight.fold == Plan::no_fold) [[likely]]
    return;
  folded_[flight.fold] = 1;
  if (!recorded_) return;
  const std::int64_t end = moments_[flight.step].end;
  moments_[flight.fold] = {end, end, end};
}

}  // namespace baton::execute
