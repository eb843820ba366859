#include "beside.hpp"

namespace baton::mpi {

Capabilities BesideMpi::capabilities() const {
  Capabilities can = ForwardingTransport::capabilities();
  --can.tags;
  return can;
}

void BesideMpi::progress() {
  ForwardingTransport::progress();
  if (mpi_->alive()) mpi_->progress();
}

void BesideMpi::idle(std::chrono::microseconds at_most) {
  constexpr std::chrono::microseconds between{20};
  if (const auto now = std::chrono::steady_clock::now(); now >= next_) {
    next_ = now + between;
    if (mpi_->alive()) mpi_->progress();
  }
  ForwardingTransport::idle(at_most);
}

/// Waits for these ranks, who may need MPI's progress to come.
void BesideMpi::meet(const transport::Part& ranks) {
  transport::gathered(ranks, char{}, capabilities().tags);
}

std::unique_ptr<Transport> BesideMpi::split(int color, int key) {
  meet(*this);
  return ForwardingTransport::split(color, key);
}

std::unique_ptr<Transport> BesideMpi::subgroup(const std::vector<int>& ranks, int number) {
  meet({*this, ranks});
  return ForwardingTransport::subgroup(ranks, number);
}

}  // namespace baton::mpi
