#include "work.hpp"

#include "baton/schedule/algorithm.hpp"

namespace faults {

using namespace baton;

namespace {

constexpr std::int32_t untouched = -1;

std::int32_t value(int rank, int i) { return rank * 1000 + i * 7; }

}  // namespace

Work::Work(Collective collective, int rank, int size, int block)
    : collective_(collective), rank_(rank), size_(size), block_(block), root_(size / 2) {
  const int in = scattering(collective) || collective == Collective::all_to_all ? size : 1;
  const int out = gathering(collective) || collective == Collective::all_to_all ? size : 1;
  for (int i = 0; i < in * block; ++i) input_.push_back(value(rank, i));
  output_.assign(static_cast<std::size_t>(out * block), untouched);
  if (collective == Collective::broadcast && rank == root_) output_ = input_;
  for (int i = 0; i < out * block; ++i) expected_.push_back(expected(i));
}

Call Work::call() {
  switch (collective_) {
    case Collective::broadcast:
      return calls::broadcast(output_, root_);
    case Collective::reduce:
      return calls::reduce(input_, output_, sum, root_);
    case Collective::all_reduce:
      return calls::all_reduce(input_, output_, sum);
    case Collective::gather:
      return calls::gather(input_, output_, root_);
    case Collective::scatter:
      return calls::scatter(input_, output_, root_);
    case Collective::all_gather:
      return calls::all_gather(input_, output_);
    case Collective::reduce_scatter:
      return calls::reduce_scatter(input_, output_, sum);
    case Collective::all_to_all:
      return calls::all_to_all(input_, output_);
    case Collective::scan:
      return calls::scan(input_, output_, sum);
    case Collective::exscan:
      return calls::exscan(input_, output_, sum);
    default:
      return calls::barrier();
  }
}

std::int32_t Work::sum_of(int first, int last, int i) const {
  std::int32_t sum = 0;
  for (int r = first; r < last; ++r) sum += value(r, i);
  return sum;
}

std::int32_t Work::expected(int i) const {
  const int from = i / block_, within = i % block_;
  switch (collective_) {
    case Collective::broadcast:
      return value(root_, i);
    case Collective::reduce:
      return rank_ == root_ ? sum_of(0, size_, i) : untouched;
    case Collective::all_reduce:
      return sum_of(0, size_, i);
    case Collective::gather:
      return rank_ == root_ ? value(from, within) : untouched;
    case Collective::scatter:
      return value(root_, rank_ * block_ + i);
    case Collective::all_gather:
      return value(from, within);
    case Collective::reduce_scatter:
      return sum_of(0, size_, rank_ * block_ + i);
    case Collective::all_to_all:
      return value(from, rank_ * block_ + within);
    case Collective::scan:
      return sum_of(0, rank_ + 1, i);
    case Collective::exscan:
      return rank_ == 0 ? untouched : sum_of(0, rank_, i);
    default:
      return untouched;
  }
}

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  const Registry registry = Registry::builtin();
  for (const Algorithm& algorithm : registry.all())
    for (const std::int64_t segment : {0, 8})
      if (segment == 0 || algorithm.collective != Collective::barrier)
        all.push_back({algorithm.collective, {algorithm.name, segment}, algorithm.hierarchical});
  return all;
}

}  // namespace faults
