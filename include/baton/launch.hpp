#pragma once
/// Ranks of a program, wherever it is started: processes under an MPI launcher, threads otherwise.

#include <functional>
#include <memory>
#include <string>

#include "baton/thread.hpp"
#include "baton/transport.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// A program's needs of its ranks.
struct LaunchOptions {
  /// Several threads of one process may use MPI at once, as a StreamCommunicator needs it: MPI is
  /// initialised with MPI_THREAD_MULTIPLE, which makes each message slower. Processes only.
  bool concurrent = false;
};

/// The ranks of a program: the processes that an MPI launcher (mpirun, srun) has started, or
/// threads of this process.
///
///     int main(int argc, char** argv) {
///       const auto launch = baton::Launch::start(argc, argv);
///       launch->run(4, [](std::unique_ptr<baton::Transport> transport) {
///         baton::Communicator world(std::move(transport));
///         …
///       });
///     }
class Launch {
 public:
  virtual ~Launch() = default;

  /// Finds out who has started this process. Under an MPI launcher it initialises MPI, unless that
  /// is done, and the Launch finalises MPI at its end if it has initialised it. One Launch exists
  /// at a time.
  ///
  /// Throws Error(unsupported) under an MPI launcher if this library has no MPI, has another MPI
  /// than the launcher, or has an MPI that cannot do what `options` ask for.
  static std::unique_ptr<Launch> start(int& argc, char**& argv, const LaunchOptions& options = {});

  /// Rank of this process; 0 where ranks are threads.
  virtual int rank() const = 0;
  /// Number of processes that the launcher has started; 0 where ranks are threads.
  virtual int processes() const = 0;
  /// "threads", or the MPI library: "Open MPI v4.1.4". From run() on "shared memory, Open MPI
  /// v4.1.4" where that carries the messages.
  virtual std::string transport() const = 0;

  /// Calls `body` on every rank with its transport; returns when the ranks of this process have
  /// returned. Threads: run_threads(ranks, body, options). Processes: `ranks` and `options` have no
  /// effect; they are connected as by mpi_process_transport(): by shared memory on one host, by MPI
  /// on several.
  ///
  /// An exception of `body` is thrown on. Among processes only the rank that threw knows of it:
  /// call abort() unless all ranks throw alike, or the others may wait for it for ever.
  virtual void run(int ranks, const std::function<void(std::unique_ptr<Transport>)>& body,
                   const ThreadOptions& options = {}) = 0;

  /// Ends all ranks at once, those too that wait, with this exit code.
  [[noreturn]] virtual void abort(int code) = 0;
};

/// Rank of this process as its launcher has set it in the environment; 0 without a launcher.
int launcher_rank();
/// Number of ranks that the launcher says it has started; 0 without an MPI launcher.
int launcher_ranks();

}  // namespace baton
#pragma GCC visibility pop
