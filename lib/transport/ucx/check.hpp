#pragma once
/// UCX's status codes as errors.

#include <ucs/type/status.h>

#include "../../base/raise.hpp"

namespace baton::ucx {

/// Throws Error(transport) with the status, UCX's own text for it, and the call's name.
[[noreturn, gnu::cold]] inline void fail(ucs_status_t status, const char* call, int rank = -1,
                                         int peer = -1) {
  base::raise_failed(call, {.rank = rank,
                            .peer = peer,
                            .backend_code = status,
                            .backend_text = ucs_status_string(status)});
}

/// Consumes the status of a UCX call.
inline void check(ucs_status_t status, const char* call, int rank = -1, int peer = -1) {
  if (status != UCS_OK) [[unlikely]]
    fail(status, call, rank, peer);
}

}  // namespace baton::ucx
