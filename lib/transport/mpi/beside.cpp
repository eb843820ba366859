#include "beside.hpp"

namespace baton::mpi {

Capabilities BesideMpi::capabilities() const {
  Capabilities can = ForwardingTransport::capabilities();
  can.library = mpi_->capabilities().library;
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

}  // namespace baton::mpi
