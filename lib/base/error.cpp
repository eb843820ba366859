#include "baton/error.hpp"

namespace baton {

std::string_view name(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::mismatch:
      return "mismatch";
    case ErrorCode::truncated:
      return "truncated";
    case ErrorCode::transport:
      return "transport";
    case ErrorCode::timeout:
      return "timeout";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::memory:
      return "memory";
    case ErrorCode::device:
      return "device";
  }
  return "?";
}

}  // namespace baton
