#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "baton/cuda.hpp"
#include "baton/cuda_runtime.hpp"
#include "baton/error.hpp"
#include "baton/nccl.hpp"
#include "connect.hpp"

namespace baton {
namespace {

cudaStream_t native(Stream stream) { return static_cast<cudaStream_t>(stream); }

class NcclTransport final : public FusedTransport {
 public:
  /// Owns `communicator`. `limit`: the time that its calls may take; 0: any time.
  NcclTransport(ncclComm_t communicator, int ordinal, std::chrono::milliseconds limit)
      : communicator_(communicator), ordinal_(ordinal), limit_(limit) {
    nccl::check(ncclCommUserRank(communicator_, &rank_), "ncclCommUserRank", communicator_, -1);
    nccl::check(ncclCommCount(communicator_, &size_), "ncclCommCount", communicator_, rank_);
  }
  ~NcclTransport() override {
    if (!aborted_) ncclCommDestroy(communicator_);  // a destructor cannot report a failure
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void begin() override {
    peers_.clear();
    nccl::check(ncclGroupStart(), "ncclGroupStart", communicator_, rank_);
  }
  void send(int peer, const void* data, std::size_t bytes, Stream stream) override {
    check_in_group(ncclSend(data, bytes, ncclInt8, peer, communicator_, native(stream)), "ncclSend",
                   peer);
  }
  void recv(int peer, void* data, std::size_t bytes, Stream stream) override {
    check_in_group(ncclRecv(data, bytes, ncclInt8, peer, communicator_, native(stream)), "ncclRecv",
                   peer);
  }
  void end() override {
    nccl::settle(
        ncclGroupEnd(), "ncclGroupEnd", communicator_, rank_, limit_, [this] { return waiting(); },
        &interrupted_);
  }

  void check() override {
    ncclResult_t found = ncclSuccess;
    nccl::check(ncclCommGetAsyncError(communicator_, &found), "ncclCommGetAsyncError",
                communicator_, rank_);
    if (found != ncclInProgress) nccl::check(found, "messages in groups", communicator_, rank_);
  }
  void interrupt() noexcept override { interrupted_ = true; }
  void abort() noexcept override {
    // The result does not matter: the communicator is lost.
    if (!aborted_) ncclCommAbort(communicator_);
    aborted_ = true;
  }

  std::unique_ptr<FusedTransport> split(int color, int key) override {
    const cuda::CurrentDevice current(ordinal_);
    ncclComm_t part = nullptr;  // a thread of NCCL's may set it, at the end of the split
    const auto all = [this] {
      return fmt::format("expected all {} ranks to split a communicator of NCCL's", size_);
    };
    ncclResult_t code =
        ncclCommSplit(communicator_, color < 0 ? NCCL_SPLIT_NOCOLOR : color, key, &part, nullptr);
    // NCCL 2.28 returns success while a split that does not block is still in progress.
    if (code == ncclSuccess) code = ncclInProgress;
    try {
      nccl::settle(code, "ncclCommSplit", communicator_, rank_, limit_, all);
      const ncclComm_t made = std::exchange(part, nullptr);
      if (!made) return nullptr;
      nccl::finish(made, "ncclCommSplit", rank_, limit_, all);
      return std::make_unique<NcclTransport>(made, ordinal_, limit_);
    } catch (const Error&) {
      abort();  // ends NCCL's thread, which writes to `part`
      if (part) ncclCommAbort(part);
      throw;
    }
  }

 private:
  /// Leaves the thread's fused group before it throws: later groups would become part of it.
  void check_in_group(ncclResult_t code, const char* call, int peer) {
    if (std::ranges::find(peers_, peer) == peers_.end()) peers_.push_back(peer);
    if (code == ncclSuccess || code == ncclInProgress) return;
    ncclGroupEnd();  // fails for the same reason
    nccl::check(code, call, communicator_, rank_, peer);
  }
  std::string waiting() const {
    constexpr std::size_t most = 8;
    std::string named;
    for (std::size_t i = 0; i < std::min(peers_.size(), most); ++i)
      named += fmt::format(" {}", peers_[i]);
    return fmt::format("expected the peers of a fused group,{}{}, to enqueue theirs", named,
                       peers_.size() > most ? " …" : "");
  }

  ncclComm_t communicator_;
  const int ordinal_;
  const std::chrono::milliseconds limit_;
  std::vector<int> peers_;  // of the current fused group
  int rank_ = -1, size_ = 0;
  std::atomic<bool> interrupted_ = false;
  bool aborted_ = false;
};

}  // namespace

std::unique_ptr<FusedTransport> nccl_transport(Transport& host, Device& device,
                                               std::chrono::milliseconds timeout) {
  return std::make_unique<NcclTransport>(nccl::connect(host, device, timeout), cuda_ordinal(device),
                                         timeout);
}

}  // namespace baton
