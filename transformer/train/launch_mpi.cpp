#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "baton/error.hpp"
#include "baton/mpi.hpp"
#include "launch.hpp"

namespace baton::transformer {
namespace {

void checked(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  throw Error(ErrorCode::transport, fmt::format("{}: expected success, found code {}", call, code));
}

class MpiLaunch final : public Launch {
 public:
  MpiLaunch(int& argc, char**& argv) {
    checked(MPI_Init(&argc, &argv), "MPI_Init");
    checked(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    checked(MPI_Comm_size(MPI_COMM_WORLD, &ranks_), "MPI_Comm_size");
    checked(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }
  ~MpiLaunch() override { MPI_Finalize(); }  // nothing is left to be told of a failure
  MpiLaunch(const MpiLaunch&) = delete;
  MpiLaunch& operator=(const MpiLaunch&) = delete;

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::string transport() const override {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    checked(MPI_Get_library_version(version, &length), "MPI_Get_library_version");
    std::string first = version;
    first.resize(std::min(first.find_first_of(",\n"), first.size()));
    std::replace(first.begin(), first.end(), '\t', ' ');
    return first;
  }
  /// What a rank throws ends them all: the others may wait for it.
  void run(int, const std::function<void(Communicator&)>& body) override {
    try {
      Communicator world(mpi_transport(MPI_COMM_WORLD));
      body(world);
    } catch (const std::exception& error) {
      fmt::print(stderr, "baton-train: rank {}: {}\n", rank_, error.what());
      std::fflush(stderr);
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
  }

 private:
  int rank_ = 0, ranks_ = 1;
};

}  // namespace

std::unique_ptr<Launch> mpi_launch(int& argc, char**& argv) {
  return std::make_unique<MpiLaunch>(argc, argv);
}

}  // namespace baton::transformer
