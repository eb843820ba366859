#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstring>

#include "baton/cuda.hpp"
#include "baton/error.hpp"
#include "baton/nccl.hpp"
#include "bootstrap.hpp"
#include "check.hpp"
#include "connect.hpp"

namespace baton {
namespace {

cudaStream_t native(Stream stream) { return static_cast<cudaStream_t>(stream); }

void check_cuda(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  Error error(ErrorCode::device,
              fmt::format("{}: expected success, found CUDA's error {}, {}", call,
                          static_cast<int>(code), cudaGetErrorString(code)));
  error.backend_code = static_cast<int>(code);
  error.backend_text = cudaGetErrorString(code);
  throw error;
}

/// Makes a device the thread's current one, which NCCL's communicators are made for.
class Current {
 public:
  explicit Current(int device) {
    check_cuda(cudaGetDevice(&before_), "cudaGetDevice");
    check_cuda(cudaSetDevice(device), "cudaSetDevice");
  }
  ~Current() { cudaSetDevice(before_); }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  int before_ = 0;
};

class NcclTransport final : public GroupTransport {
 public:
  /// Owns `communicator`.
  NcclTransport(ncclComm_t communicator, int ordinal)
      : communicator_(communicator), ordinal_(ordinal) {
    nccl::check(ncclCommUserRank(communicator_, &rank_), "ncclCommUserRank", communicator_, -1);
    nccl::check(ncclCommCount(communicator_, &size_), "ncclCommCount", communicator_, rank_);
  }
  ~NcclTransport() override {
    if (!aborted_) ncclCommDestroy(communicator_);  // nobody is left to be told
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void begin() override { nccl::check(ncclGroupStart(), "ncclGroupStart", communicator_, rank_); }
  void send(int peer, const void* data, std::size_t bytes, Stream stream) override {
    check_in_group(ncclSend(data, bytes, ncclInt8, peer, communicator_, native(stream)), "ncclSend",
                   peer);
  }
  void recv(int peer, void* data, std::size_t bytes, Stream stream) override {
    check_in_group(ncclRecv(data, bytes, ncclInt8, peer, communicator_, native(stream)), "ncclRecv",
                   peer);
  }
  void end() override { nccl::check(ncclGroupEnd(), "ncclGroupEnd", communicator_, rank_); }

  void check() override {
    ncclResult_t found = ncclSuccess;
    nccl::check(ncclCommGetAsyncError(communicator_, &found), "ncclCommGetAsyncError",
                communicator_, rank_);
    if (found != ncclInProgress) nccl::check(found, "messages in groups", communicator_, rank_);
  }
  void abort() noexcept override {
    if (!aborted_) ncclCommAbort(communicator_);  // it is of no use any more, whatever this says
    aborted_ = true;
  }

  std::unique_ptr<GroupTransport> split(int color, int key) override {
    const Current current(ordinal_);
    ncclComm_t part = nullptr;
    nccl::check(
        ncclCommSplit(communicator_, color < 0 ? NCCL_SPLIT_NOCOLOR : color, key, &part, nullptr),
        "ncclCommSplit", communicator_, rank_);
    if (!part) return nullptr;
    return std::make_unique<NcclTransport>(part, ordinal_);
  }

 private:
  /// The thread's group is left first, or its later groups would be part of it.
  void check_in_group(ncclResult_t code, const char* call, int peer) {
    if (code != ncclSuccess) ncclGroupEnd();  // fails for the same reason
    nccl::check(code, call, communicator_, rank_, peer);
  }

  ncclComm_t communicator_;
  const int ordinal_;
  int rank_ = -1, size_ = 0;
  bool aborted_ = false;
};

nccl::Seat seat_of(const Device& device) {
  nccl::Seat seat;
  seat.host = nccl::own_host();
  try {
    char bus[32] = {};
    check_cuda(cudaDeviceGetPCIBusId(bus, sizeof bus, cuda_ordinal(device)),
               "cudaDeviceGetPCIBusId");
    seat.gpu = bus;
  } catch (const Error& error) {
    seat.wrong = error.what();
  }
  return seat;
}

}  // namespace

ncclComm_t nccl::connect(Transport& host, Device& device) {
  static_assert(sizeof(ncclUniqueId) == sizeof(Identifier));
  const Identifier identifier = agree(host, seat_of(device), [] {
    ncclUniqueId id{};
    check(ncclGetUniqueId(&id), "ncclGetUniqueId", nullptr, 0);
    Identifier bytes;
    std::memcpy(bytes.data(), &id, sizeof id);
    return bytes;
  });
  ncclUniqueId id{};
  std::memcpy(&id, identifier.data(), sizeof id);
  const Current current(cuda_ordinal(device));
  ncclComm_t communicator = nullptr;
  check(ncclCommInitRank(&communicator, host.size(), id, host.rank()), "ncclCommInitRank", nullptr,
        host.rank());
  return communicator;
}

std::unique_ptr<GroupTransport> nccl_transport(Transport& host, Device& device) {
  return std::make_unique<NcclTransport>(nccl::connect(host, device), cuda_ordinal(device));
}

}  // namespace baton
