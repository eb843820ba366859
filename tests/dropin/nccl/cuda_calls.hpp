#pragma once
/// Calls of NCCL's for some ranks of one thread, with their data checked: plain CUDA and NCCL.

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>
#include <nccl.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cuda_calls {

inline void ok(cudaError_t code) {
  CHECK_MESSAGE(code == cudaSuccess, std::string(cudaGetErrorString(code)));
}
inline void ok(ncclResult_t code) {
  CHECK_MESSAGE(code == ncclSuccess, std::string(ncclGetLastError(nullptr)));
}

inline constexpr std::size_t bytes_each = std::size_t{1} << 16;  ///< of a rank's buffers

/// One rank, and what it has on its device.
struct Rank {
  int rank = 0, size = 0, device = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  char *send = nullptr, *recv = nullptr;
};
using Ranks = std::vector<Rank>;

/// Calls for some ranks of a thread, as one group if there are several.
void together(Ranks& ranks, const std::function<void(Rank&)>& call);

struct Case {
  ncclDataType_t type;
  int op;              ///< an ncclRedOp_t; ncclNumOps: PreMulSum, of a number of each rank's own
  std::int64_t count;  ///< of the smaller side
  bool in_place;
  int shift = 0;  ///< elements by which buffers begin later
};

void all_reduce(Ranks& ranks, const Case& one);
void reduce(Ranks& ranks, const Case& one, int root);
void reduce_scatter(Ranks& ranks, const Case& one);
/// All-gather, gather, broadcast and scatter; all-to-all unless in place.
void movements(Ranks& ranks, const Case& one, int root);
/// Messages: round a ring; from each to each, of different sizes; in halves of a hypercube.
void messages(Ranks& ranks, const Case& one);
/// Several calls in one group, timed by events, in buffers that are registered.
void aggregated(Ranks& ranks);
/// Copies to pageable memory behind collectives: CUDA's other calls wait for such a copy.
void read_behind(Ranks& ranks);
/// A call in the thread's own stream, beside others in a group; several are refused.
void in_the_threads_stream(Ranks& ranks);
/// Calls while another stream is captured, by a program without other threads.
void beside_a_capture(Ranks& ranks);
/// A graph cannot hold a collective: that is refused, and breaks nothing.
void refused_in_captures(Ranks& ranks);

}  // namespace cuda_calls
