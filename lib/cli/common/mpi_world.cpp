#include "baton/mpi.hpp"

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "world.hpp"

namespace baton::cli {
namespace {

/// All calls here are PMPI_…: a drop-in stays out of what measures it.
class MpiMessages final : public PlainMessages {
 public:
  void reserve(std::size_t bytes) override {
    out_.assign(bytes, std::byte{1});
    in_.assign(bytes, std::byte{0});
  }
  void send(int to, std::size_t bytes) override {
    mpi_checked(PMPI_Send(out_.data(), static_cast<int>(bytes), MPI_BYTE, to, tag, MPI_COMM_WORLD),
                "MPI_Send");
  }
  void recv(int from, std::size_t bytes) override {
    mpi_checked(PMPI_Recv(in_.data(), static_cast<int>(bytes), MPI_BYTE, from, tag, MPI_COMM_WORLD,
                          MPI_STATUS_IGNORE),
                "MPI_Recv");
  }
  void exchange(int to, int from, std::size_t bytes, int window) override {
    requests_.resize(2 * static_cast<std::size_t>(window));
    auto* request = requests_.data();
    if (to < 0) to = MPI_PROC_NULL;
    if (from < 0) from = MPI_PROC_NULL;
    const auto count = static_cast<int>(bytes);
    for (std::size_t at = 0; request < requests_.data() + window; at += bytes) {
      mpi_checked(
          PMPI_Irecv(in_.data() + at, count, MPI_BYTE, from, tag, MPI_COMM_WORLD, request++),
          "MPI_Irecv");
    }
    for (std::size_t at = 0; request < requests_.data() + 2 * window; at += bytes) {
      mpi_checked(PMPI_Isend(out_.data() + at, count, MPI_BYTE, to, tag, MPI_COMM_WORLD, request++),
                  "MPI_Isend");
    }
    mpi_checked(PMPI_Waitall(2 * window, requests_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
  }
  double posting(int from, std::size_t bytes, int messages) override {
    requests_.resize(static_cast<std::size_t>(messages));
    const double begin = now();
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      mpi_checked(PMPI_Irecv(in_.data() + i * bytes, static_cast<int>(bytes), MPI_BYTE, from, tag,
                             MPI_COMM_WORLD, &requests_[i]),
                  "MPI_Irecv");
    }
    const double seconds = now() - begin;
    mpi_checked(PMPI_Waitall(messages, requests_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    return seconds;
  }
  void sleepy_barrier() override {
    MPI_Request request = MPI_REQUEST_NULL;
    mpi_checked(PMPI_Ibarrier(MPI_COMM_WORLD, &request), "MPI_Ibarrier");
    for (int done = 0; done == 0;) {
      mpi_checked(PMPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      if (done == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  static constexpr int tag = 0;
  std::vector<std::byte> out_, in_;
  std::vector<MPI_Request> requests_;
};

class MpiWorld final : public World {
 public:
  explicit MpiWorld(std::unique_ptr<Transport> transport)
      : World(transport->rank(), transport->size(), transport->capabilities().hosts),
        transport_(std::move(transport)) {}

  std::unique_ptr<Transport> transport() override {
    return transport_ ? std::move(transport_) : mpi_process_transport(MPI_COMM_WORLD);
  }
  void gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    const auto bytes = static_cast<int>(mine.size());
    mpi_checked(
        PMPI_Allgather(mine.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, MPI_COMM_WORLD),
        "MPI_Allgather");
  }
  std::vector<BuiltIn> built_ins(const Case& subject, const void* input, void* output,
                                 Entry entry) override {
    return mpi_built_ins(subject, rank(), input, output, entry);
  }
  std::unique_ptr<PlainMessages> plain_messages() override {
    return std::make_unique<MpiMessages>();
  }

 private:
  std::unique_ptr<Transport> transport_;
};

}  // namespace

std::unique_ptr<World> mpi_world(std::unique_ptr<Transport> transport) {
  return std::make_unique<MpiWorld>(std::move(transport));
}

std::string mpi_library() {
  std::string version(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
  int length = 0;
  mpi_checked(MPI_Get_library_version(version.data(), &length), "MPI_Get_library_version");
  version.resize(std::strlen(version.c_str()));
  return version;
}

}  // namespace baton::cli
