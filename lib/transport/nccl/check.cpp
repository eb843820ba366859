#include "check.hpp"

#include <fmt/core.h>

#include <string>

#include "baton/error.hpp"

namespace baton::nccl {

void check(ncclResult_t code, const char* call, ncclComm_t communicator, int rank, int peer) {
  if (code == ncclSuccess) return;
  std::string text = ncclGetErrorString(code);
  // The text may belong to an earlier call, but it is often the only explanation.
  if (const char* const last = ncclGetLastError(communicator); last && *last)
    text += fmt::format(": {}", last);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  Error error(ErrorCode::transport,
              fmt::format("{}{}: expected success, found NCCL's error {}, {}", call,
                          peer < 0 ? "" : fmt::format(" with rank {}", peer),
                          static_cast<int>(code), text));
  error.rank = rank;
  error.peer = peer;
  error.backend_code = static_cast<int>(code);
  error.backend_text = text;
  throw error;
}

}  // namespace baton::nccl
