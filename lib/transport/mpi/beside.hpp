#pragma once
/// Shared memory between ranks of an MPI program.

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "../gathered.hpp"
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
  /// The transport of these ranks; `mpi` is their MPI transport. They are here already. Concurrent
  /// calls need different numbers.
  std::unique_ptr<Transport> part(const std::vector<int>& ranks, int number,
                                  std::shared_ptr<Transport> mpi) const {
    return std::make_unique<BesideMpi>(inner().subgroup(ranks, number), std::move(mpi));
  }

  /// One tag less than the shared memory's: split() and subgroup() meet by it.
  Capabilities capabilities() const override;
  SingleCopy* single_copy() override { return inner().single_copy(); }
  Giving* giving() override { return inner().giving(); }
  void progress() override;
  void idle(std::chrono::microseconds at_most) override;
  std::unique_ptr<Transport> split(int color, int key) override;
  std::unique_ptr<Transport> subgroup(const std::vector<int>& ranks, int number) override;
  bool alive() const override { return mpi_->alive(); }

 private:
  void meet(const transport::Part& ranks);
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override {
    return std::make_unique<BesideMpi>(std::move(part), mpi_);
  }

  const std::shared_ptr<Transport> mpi_;
  std::chrono::steady_clock::time_point next_{};  // progress of MPI, of a rank that waits
};

}  // namespace baton::mpi
