#include "check.hpp"

#include <fmt/core.h>

#include <string>

#include "baton/error.hpp"

namespace baton::mpi {

void fail(int code, const char* call, int rank, int peer) {
  char text[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0;
  std::string reason = MPI_Error_string(code, text, &length) == MPI_SUCCESS
                           ? std::string(text, static_cast<std::size_t>(length))
                           : fmt::format("code {}", code);
  Error error(ErrorCode::transport,
              peer < 0 ? fmt::format("{} was expected to succeed, but found: {}", call, reason)
                       : fmt::format("{} with rank {} was expected to succeed, but found: {}", call,
                                     peer, reason));
  error.rank = rank;
  error.peer = peer;
  error.backend_code = code;
  error.backend_text = std::move(reason);
  throw error;
}

}  // namespace baton::mpi
