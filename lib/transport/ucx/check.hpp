#pragma once
/// UCX's status codes as errors.

#include <ucs/type/status.h>

namespace baton::ucx {

/// Throws Error(transport) with the status, UCX's own text for it, and the call's name.
[[noreturn]] void fail(ucs_status_t status, const char* call, int rank = -1, int peer = -1);

/// Consumes the status of a UCX call.
inline void check(ucs_status_t status, const char* call, int rank = -1, int peer = -1) {
  if (status != UCS_OK) [[unlikely]]
    fail(status, call, rank, peer);
}

}  // namespace baton::ucx
