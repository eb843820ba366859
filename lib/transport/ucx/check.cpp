#include "check.hpp"

#include <fmt/core.h>

#include <string>

#include "baton/error.hpp"

namespace baton::ucx {

void fail(ucs_status_t status, const char* call, int rank, int peer) {
  const std::string reason = ucs_status_string(status);
  Error error(ErrorCode::transport,
              peer < 0 ? fmt::format("{} was expected to succeed, but found: {}", call, reason)
                       : fmt::format("{} with rank {} was expected to succeed, but found: {}", call,
                                     peer, reason));
  error.rank = rank;
  error.peer = peer;
  error.backend_code = status;
  error.backend_text = reason;
  throw error;
}

}  // namespace baton::ucx
