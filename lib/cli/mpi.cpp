#include "baton/mpi.hpp"

#include <fmt/format.h>

#include <string>

#include "built_in.hpp"
#include "world.hpp"

namespace baton::cli {
namespace {

class MpiWorld final : public World {
 public:
  MpiWorld() {
    mpi_checked(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    mpi_checked(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
    MPI_Comm host = MPI_COMM_NULL;
    int near = 0;
    mpi_checked(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host),
                "MPI_Comm_split_type");
    mpi_checked(MPI_Comm_size(host, &near), "MPI_Comm_size");
    mpi_checked(MPI_Comm_free(&host), "MPI_Comm_free");
    one_clock_ = min(near) == size_;
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool one_clock() const override { return one_clock_; }
  std::unique_ptr<Transport> transport() override { return mpi_transport(MPI_COMM_WORLD); }
  void gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    const auto bytes = static_cast<int>(mine.size());
    mpi_checked(
        MPI_Allgather(mine.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, MPI_COMM_WORLD),
        "MPI_Allgather");
  }
  std::function<void()> built_in(const Exercise& exercise, const void* input,
                                 void* output) override {
    return mpi_built_in(exercise, rank_, input, output);
  }

 private:
  int rank_ = 0, size_ = 1;
  bool one_clock_ = true;
};

class MpiSession final : public Session {
 public:
  MpiSession(int& argc, char**& argv) {
    mpi_checked(MPI_Init(&argc, &argv), "MPI_Init");
    mpi_checked(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    mpi_checked(MPI_Comm_size(MPI_COMM_WORLD, &ranks_), "MPI_Comm_size");
    mpi_checked(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
                "MPI_Comm_set_errhandler");
  }
  ~MpiSession() override { MPI_Finalize(); }  // nothing is left to be told of a failure
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::string transport() const override {
    std::string version(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
    int length = 0;
    mpi_checked(MPI_Get_library_version(version.data(), &length), "MPI_Get_library_version");
    version.resize(version.find_first_of(",\n"));
    if (const auto tab = version.find('\t'); tab != std::string::npos) version[tab] = ' ';
    return version;
  }
  void run(int, const ThreadOptions&, const std::function<void(World&)>& body) override {
    MpiWorld world;
    body(world);
  }

 private:
  int rank_ = 0, ranks_ = 1;
};

}  // namespace

std::unique_ptr<Session> mpi_session(int& argc, char**& argv) {
  return std::make_unique<MpiSession>(argc, argv);
}

}  // namespace baton::cli
