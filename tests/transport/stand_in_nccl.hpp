#pragma once
/// Stands in for what lib/transport/nccl calls of NCCL and of CUDA's runtime, among threads: no
/// message arrives, but communicators get ready, or do not, as a script says.

#include <nccl.h>

#include <string>
#include <vector>

namespace support {

/// What communicators do from now on.
struct NcclScript {
  /// How often one that does not block says that it is busy with what it was last asked for; -1:
  /// always.
  int busy = 3;
  ncclResult_t outcome = ncclSuccess;  ///< which it says then
};
void follow(const NcclScript& script);

/// The calls since this was last called, by name, in order: "ncclCommAbort". Polls are left out.
std::vector<std::string> nccl_calls();
/// Communicators that were made and neither destroyed nor aborted; their calls must not block, or
/// must.
int open_communicators(bool blocking);

}  // namespace support
