#include "case_runner.hpp"

#include <algorithm>

namespace baton::cli::measure {

CaseBuffers::CaseBuffers(int rank, const Case& subject, bool in_place)
    : subject_(subject),
      rank_(rank),
      bytes_(size_of(subject.type)),
      aliased_(is_aliased(in_place)),
      input_(bytes_of(subject.input_count(rank_)), stale),
      output_(bytes_of(output_room()), stale) {
  place();
}

void CaseBuffers::fill(const Values& values) {
  const bool root = rank_ == subject_.problem.root;
  if (subject_.collective() == Collective::broadcast) {
    // Its data is output everywhere: root's is laid there before each run.
    if (root) input_.resize(result_bytes());
    if (root) values.write(rank_, 0, subject_.output_count(rank_), input_.data());
  } else {
    values.write(rank_, 0, subject_.input_count(rank_), input_.data());
  }
}

void CaseBuffers::reset() {
  std::fill(output_.begin(), output_.end(), stale);
  if (subject_.collective() == Collective::broadcast || aliased_) {
    std::copy(input_.begin(), input_.end(), source_);
  }
}

bool CaseBuffers::is_aliased(bool in_place) const {
  Problem p = subject_.problem.at(rank_);
  p.in_place = subject_.schedules
                   ? (*subject_.schedules)[static_cast<std::size_t>(rank_)].header().in_place
                   : in_place && !subject_.tensor;
  return p.collective != Collective::broadcast && p.aliased();
}

bool CaseBuffers::output_within_input() const {
  return subject_.collective() == Collective::scatter ||
         subject_.collective() == Collective::reduce_scatter;
}

std::int64_t CaseBuffers::output_room() const {
  const std::int64_t in = subject_.input_count(rank_), out = subject_.output_count(rank_);
  return aliased_ ? std::max(in, out) : out;
}

void CaseBuffers::place() {
  source_ = aliased_ ? output_.data() : input_.data();
  result_ = output_.data();
  const Collective c = subject_.collective();
  if (c == Collective::broadcast) source_ = output_.data();
  if (!aliased_) return;
  const std::size_t own = bytes_of(subject_.block_offset(rank_));
  if (output_within_input()) result_ += own;
  if (c == Collective::gather || c == Collective::all_gather) source_ += own;
}

CaseRunner::CaseRunner(Communicator& communicator, const Case& subject, bool in_place)
    : CaseBuffers(communicator.rank(), subject, in_place),
      communicator_(communicator),
      in_(source_, subject.input_count(rank_), subject.type),
      out_(result_, subject.output_count(rank_), subject.type) {}

void CaseRunner::run(const Choice& choice) {
  if (subject_.schedules) return run_schedule();
  subject_.run(communicator_, in_, out_, choice);
}

Choice CaseRunner::chosen(const Choice& choice) {
  if (subject_.schedules) return {(*subject_.schedules)[0].header().algorithm, 0};
  Call call = subject_.call(in_, out_);
  call.choice = choice;
  return communicator_.chosen(call);
}

void CaseRunner::run_schedule() {
  const Schedule& schedule = (*subject_.schedules)[static_cast<std::size_t>(rank_)];
  const auto& header = schedule.header();
  if (subject_.collective() == Collective::barrier) {
    return communicator_.run(schedule, ConstData(&token_, header.input, Datatype::u8),
                             Data(nullptr, 0, Datatype::u8));
  }
  void* const whole = output_.data();
  const void* const in = aliased_ ? whole : input_.data();
  communicator_.run(schedule, ConstData(in, header.input, subject_.type),
                    Data(whole, header.output, subject_.type), subject_.op);
}

}  // namespace baton::cli::measure
