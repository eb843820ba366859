#include "stand_in_nccl.hpp"

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <set>
#include <utility>

#include "baton/cuda.hpp"

struct ncclComm {
  int rank, size;
  bool blocking;
  int busy = 0;
  ncclResult_t outcome = ncclSuccess;
  // Of a split under way: the part, and where it goes when the split ends.
  ncclComm* part = nullptr;
  ncclComm** part_at = nullptr;
};

namespace support {
namespace {

std::mutex mutex;
NcclScript script;
std::vector<std::string> calls;
std::set<ncclComm*> open;
thread_local ncclComm* of_group = nullptr;

/// With the mutex held.
ncclResult_t start(ncclComm& communicator) {
  if (communicator.blocking) return script.outcome;
  communicator.busy = script.busy;
  communicator.outcome = script.outcome;
  return ncclInProgress;
}

ncclComm* make(int rank, int size, bool blocking) {
  return *open.insert(new ncclComm{rank, size, blocking}).first;
}

/// With the mutex held.
void end_split(ncclComm& communicator) {
  if (communicator.part_at) *std::exchange(communicator.part_at, nullptr) = communicator.part;
}

/// What a communicator answers that is asked for something else while it is busy.
ncclResult_t ready(const ncclComm* communicator) {
  return communicator->busy == 0 ? communicator->outcome : ncclInvalidUsage;
}

ncclResult_t close(ncclComm* communicator, const char* call) {
  const std::lock_guard lock(mutex);
  calls.emplace_back(call);
  if (open.erase(communicator) == 0) return ncclInvalidArgument;
  delete communicator;
  return ncclSuccess;
}

}  // namespace

void follow(const NcclScript& what) {
  const std::lock_guard lock(mutex);
  script = what;
}
std::vector<std::string> nccl_calls() {
  const std::lock_guard lock(mutex);
  return std::exchange(calls, {});
}
int open_communicators(bool blocking) {
  const std::lock_guard lock(mutex);
  int count = 0;
  for (const ncclComm* communicator : open) count += communicator->blocking == blocking;
  return count;
}

}  // namespace support

using namespace support;

// --- NCCL ----------------------------------------------------------------------------------------

const char* ncclGetErrorString(ncclResult_t code) {
  return code == ncclInvalidUsage ? "invalid usage" : "something";
}
const char* ncclGetLastError(ncclComm_t) { return ""; }
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = {};
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int size, ncclUniqueId, int rank,
                                    ncclConfig_t* config) {
  const std::lock_guard lock(mutex);
  calls.emplace_back("ncclCommInitRankConfig");
  *made = make(rank, size, config->blocking != 0);
  return start(**made);
}
// As NCCL 2.28: without blocking, it says success at once; the part comes when `whole` is no longer
// busy, also when that is aborted.
ncclResult_t ncclCommSplit(ncclComm_t whole, int color, int key, ncclComm_t* part, ncclConfig_t*) {
  const std::lock_guard lock(mutex);
  calls.emplace_back("ncclCommSplit");
  if (ready(whole) != ncclSuccess) return ncclInvalidUsage;
  *part = nullptr;
  whole->part = color == NCCL_SPLIT_NOCOLOR ? nullptr : make(key, whole->size, whole->blocking);
  whole->part_at = part;
  if (whole->part) start(*whole->part);
  const ncclResult_t code = start(*whole);
  if (code == ncclInProgress) return ncclSuccess;
  end_split(*whole);
  return code;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* found) {
  const std::lock_guard lock(mutex);
  *found = communicator->busy == 0 ? communicator->outcome : ncclInProgress;
  if (communicator->busy == 0) end_split(*communicator);
  if (communicator->busy > 0) --communicator->busy;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t communicator, int* rank) {
  *rank = communicator->rank;
  return ready(communicator);
}
ncclResult_t ncclCommCount(const ncclComm_t communicator, int* size) {
  *size = communicator->size;
  return ready(communicator);
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  return close(communicator, "ncclCommDestroy");
}
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  {
    const std::lock_guard lock(mutex);
    end_split(*communicator);
  }
  return close(communicator, "ncclCommAbort");
}
ncclResult_t ncclGroupStart() {
  of_group = nullptr;
  return ncclSuccess;
}
ncclResult_t ncclSend(const void*, std::size_t, ncclDataType_t, int, ncclComm_t communicator,
                      cudaStream_t) {
  const std::lock_guard lock(mutex);
  of_group = communicator;
  return ready(communicator);
}
ncclResult_t ncclRecv(void*, std::size_t, ncclDataType_t, int, ncclComm_t communicator,
                      cudaStream_t) {
  return ncclSend(nullptr, 0, ncclInt8, 0, communicator, nullptr);
}
ncclResult_t ncclGroupEnd() {
  const std::lock_guard lock(mutex);
  return of_group ? start(*std::exchange(of_group, nullptr)) : ncclSuccess;
}

// --- CUDA's runtime ------------------------------------------------------------------------------

namespace baton {
int cuda_ordinal(const Device&) { return 0; }
}  // namespace baton

const char* cudaGetErrorName(cudaError_t) { return "cudaErrorUnknown"; }
const char* cudaGetErrorString(cudaError_t) { return "an error"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaDeviceGetPCIBusId(char* text, int room, int) {
  static std::atomic<int> devices;  // each that asks has one of its own
  std::snprintf(text, static_cast<std::size_t>(room), "%d", devices++);
  return cudaSuccess;
}
