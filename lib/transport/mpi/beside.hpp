#pragma once
/// Shared memory between ranks of an MPI program.

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "baton/forwarding.hpp"

namespace baton::mpi {

/// Messages through shared memory; MPI's advance while this rank waits, since the program has
/// messages of its own under way.
class BesideMpi final : public ForwardingTransport {
 public:
  /// `mpi`: a transport over MPI of the same ranks, or of more; `memory`: through shared memory.
  BesideMpi(std::unique_ptr<Transport> memory, std::shared_ptr<Transport> mpi)
      : ForwardingTransport(std::move(memory)), mpi_(std::move(mpi)) {}

  /// The transport over MPI.
  Transport& mpi() const { return *mpi_; }
  /// Some of these ranks, of whom `mpi` is. Collective over them; calls at once have other numbers.
  std::unique_ptr<Transport> part(const std::vector<int>& ranks, int number,
                                  std::shared_ptr<Transport> mpi) const {
    return std::make_unique<BesideMpi>(inner().subgroup(ranks, number), std::move(mpi));
  }

  Capabilities capabilities() const override;
  SingleCopy* single_copy() override { return inner().single_copy(); }
  void progress() override;
  void idle(std::chrono::microseconds at_most) override;

 private:
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override {
    return std::make_unique<BesideMpi>(std::move(part), mpi_);
  }

  const std::shared_ptr<Transport> mpi_;
  std::chrono::steady_clock::time_point next_{};  // progress of MPI, of a rank that waits
};

}  // namespace baton::mpi
