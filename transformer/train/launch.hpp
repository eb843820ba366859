#pragma once

#include <functional>
#include <memory>
#include <string>

#include "baton/communicator.hpp"

namespace baton::transformer {

/// Where the ranks of a run come from.
class Launch {
 public:
  virtual ~Launch() = default;
  /// Of this process among those of the launcher; 0 speaks.
  virtual int rank() const = 0;
  /// That the launcher has started; 0: there is none, and ranks are threads.
  virtual int ranks() const = 0;
  virtual std::string transport() const = 0;
  /// Calls body(communicator of all ranks) on every rank; `ranks` is the number of threads.
  virtual void run(int ranks, const std::function<void(Communicator&)>& body) = 0;

  /// Of MPI if a launcher of MPI has started this process. Throws Error(unsupported) where that is
  /// so and this program has no MPI, or another one than the launcher.
  static std::unique_ptr<Launch> start(int& argc, char**& argv);
};

/// Null in a build without MPI.
std::unique_ptr<Launch> mpi_launch(int& argc, char**& argv);

/// This process's rank as its launcher has set it in the environment; 0 without a launcher.
int launcher_rank();

}  // namespace baton::transformer
