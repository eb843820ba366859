#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "baton/error.hpp"
#include "baton/mpi.hpp"
#include "mpi_launch.hpp"
#include "transport/mpi/check.hpp"

namespace baton::launching {
namespace {

class MpiLaunch final : public Launch {
 public:
  MpiLaunch(int& argc, char**& argv, const LaunchOptions& options) {
    int initialized = 0, provided = 0;
    mpi::check(MPI_Initialized(&initialized), "MPI_Initialized");
    if (initialized == 0) {
      const int needed = options.concurrent ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED;
      mpi::check(MPI_Init_thread(&argc, &argv, needed, &provided), "MPI_Init_thread");
      owner_ = true;
    } else {
      mpi::check(MPI_Query_thread(&provided), "MPI_Query_thread");
    }
    mpi::check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    mpi::check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
    if (owner_) {
      mpi::check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
                 "MPI_Comm_set_errhandler");
    }
    if (options.concurrent && provided < MPI_THREAD_MULTIPLE) {
      finalize();
      throw Error(ErrorCode::unsupported, "expected MPI with MPI_THREAD_MULTIPLE, found " +
                                              mpi::library_version() + " with less");
    }
  }
  ~MpiLaunch() override { finalize(); }
  MpiLaunch(const MpiLaunch&) = delete;
  MpiLaunch& operator=(const MpiLaunch&) = delete;

  int rank() const override { return rank_; }
  int processes() const override { return size_; }
  std::string transport() const override {
    return (by_memory_ ? "shared memory, " : "") + mpi::library_version();
  }
  void run(int, const std::function<void(std::unique_ptr<Transport>)>& body,
           const ThreadOptions&) override {
    auto transport = mpi_process_transport(MPI_COMM_WORLD);
    by_memory_ = transport->capabilities().name == "shm";
    body(std::move(transport));
  }
  void abort(int code) override {
    std::fflush(nullptr);
    // Open MPI 4.1's mpirun may crash where several ranks abort at once. The first one ends the
    // others.
    std::this_thread::sleep_for(std::min(rank_, 10) * std::chrono::milliseconds(100));
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }

 private:
  void finalize() {
    if (owner_) MPI_Finalize();  // the destructor cannot report a failure
  }

  bool owner_ = false;  // this object initialised MPI
  int rank_ = 0, size_ = 1;
  bool by_memory_ = false;
};

}  // namespace

std::unique_ptr<Launch> mpi_launch(int& argc, char**& argv, const LaunchOptions& options) {
  return std::make_unique<MpiLaunch>(argc, argv, options);
}

}  // namespace baton::launching
