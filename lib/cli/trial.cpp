#include "trial.hpp"

#include <algorithm>

namespace baton::cli {

TrialBuffers::TrialBuffers(int rank, const Exercise& exercise, bool in_place)
    : exercise_(exercise),
      rank_(rank),
      bytes_(size_of(exercise.type)),
      aliased_(is_aliased(in_place)),
      input_(bytes_of(exercise.input_count(rank_)), stale),
      output_(bytes_of(output_room()), stale) {
  place();
}

void TrialBuffers::fill(const Values& values) {
  const bool root = rank_ == exercise_.problem.root;
  if (exercise_.collective() == Collective::broadcast) {
    // Its data is output everywhere: root's is laid there before each run.
    if (root) input_.resize(result_bytes());
    if (root) values.write(rank_, 0, exercise_.output_count(rank_), input_.data());
  } else {
    values.write(rank_, 0, exercise_.input_count(rank_), input_.data());
  }
}

void TrialBuffers::reset() {
  std::fill(output_.begin(), output_.end(), stale);
  if (exercise_.collective() == Collective::broadcast || aliased_) {
    std::copy(input_.begin(), input_.end(), source_);
  }
}

bool TrialBuffers::is_aliased(bool in_place) const {
  Problem p = exercise_.problem.at(rank_);
  p.in_place = exercise_.schedules
                   ? (*exercise_.schedules)[static_cast<std::size_t>(rank_)].header().in_place
                   : in_place && !exercise_.tensor;
  return p.collective != Collective::broadcast && p.aliased();
}

bool TrialBuffers::output_within_input() const {
  return exercise_.collective() == Collective::scatter ||
         exercise_.collective() == Collective::reduce_scatter;
}

std::int64_t TrialBuffers::output_room() const {
  const std::int64_t in = exercise_.input_count(rank_), out = exercise_.output_count(rank_);
  return aliased_ ? std::max(in, out) : out;
}

void TrialBuffers::place() {
  source_ = aliased_ ? output_.data() : input_.data();
  result_ = output_.data();
  const Collective c = exercise_.collective();
  if (c == Collective::broadcast) source_ = output_.data();
  if (!aliased_) return;
  const std::size_t own = bytes_of(exercise_.block_offset(rank_));
  if (output_within_input()) result_ += own;
  if (c == Collective::gather || c == Collective::all_gather) source_ += own;
}

Trial::Trial(Communicator& communicator, const Exercise& exercise, bool in_place)
    : TrialBuffers(communicator.rank(), exercise, in_place),
      communicator_(communicator),
      in_(source_, exercise.input_count(rank_), exercise.type),
      out_(result_, exercise.output_count(rank_), exercise.type) {}

void Trial::run(const Choice& choice) {
  if (exercise_.schedules) return run_schedule();
  exercise_.run(communicator_, in_, out_, choice);
}

Choice Trial::chosen(const Choice& choice) {
  if (exercise_.schedules) return {(*exercise_.schedules)[0].header().algorithm, 0};
  Call call = exercise_.call(in_, out_);
  call.choice = choice;
  return communicator_.chosen(call);
}

void Trial::run_schedule() {
  const Schedule& schedule = (*exercise_.schedules)[static_cast<std::size_t>(rank_)];
  const auto& header = schedule.header();
  if (exercise_.collective() == Collective::barrier) {
    return communicator_.run(schedule, ConstData(&token_, header.input, Datatype::u8),
                             Data(nullptr, 0, Datatype::u8));
  }
  void* const whole = output_.data();
  const void* const in = aliased_ ? whole : input_.data();
  communicator_.run(schedule, ConstData(in, header.input, exercise_.type),
                    Data(whole, header.output, exercise_.type), exercise_.op);
}

}  // namespace baton::cli
