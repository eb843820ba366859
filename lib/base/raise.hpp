#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>

#include "baton/error.hpp"

namespace baton::base {

/// Members of an Error beside its code and sentence.
struct Origin {
  int rank = -1, peer = -1, step = -1, backend_code = 0;
  std::string backend_text = {};
};

[[noreturn]] inline void raise(ErrorCode code, const std::string& sentence, Origin origin) {
  Error error(code, sentence);
  error.rank = origin.rank;
  error.peer = origin.peer;
  error.step = origin.step;
  error.backend_code = origin.backend_code;
  error.backend_text = std::move(origin.backend_text);
  throw error;
}

/// Throws Error(transport): a call of another library failed, for the reason `origin.backend_text`.
[[noreturn]] inline void raise_failed(const char* call, const Origin& origin) {
  const std::string with = origin.peer < 0 ? "" : fmt::format(" with rank {}", origin.peer);
  raise(ErrorCode::transport,
        fmt::format("{}{} was expected to succeed, but found: {}", call, with, origin.backend_text),
        origin);
}

/// Throws Error(invalid_argument). The sentence is formatted as by fmt::format().
template <class... Parts>
[[noreturn]] void refuse(fmt::format_string<Parts...> sentence, Parts&&... parts) {
  throw Error(ErrorCode::invalid_argument, fmt::format(sentence, std::forward<Parts>(parts)...));
}

}  // namespace baton::base
