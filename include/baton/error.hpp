#pragma once
/// The one exception type.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)
namespace baton {

/// The kind of failure that an Error reports.
enum class ErrorCode : std::uint8_t {
  invalid_argument,  ///< an argument is wrong; nothing was sent
  mismatch,          ///< ranks called different things; nothing of the collective was sent
  truncated,         ///< a message had not the length that its receiver expected
  transport,         ///< the transport failed
  timeout,           ///< no progress for longer than the timeout
  unsupported,       ///< this build or transport cannot do it
  memory,            ///< a device has not enough memory
  device,            ///< a device failed
};
std::string_view name(ErrorCode code);  ///< "invalid_argument" and so on

/// A failure, told in one sentence: the place, the expected value and the value that was found.
/// After invalid_argument, mismatch and unsupported the communicator remains usable; after the
/// others it refuses further calls.
class Error : public std::runtime_error {
 public:
  /// what() returns the sentence.
  Error(ErrorCode code, const std::string& sentence) : std::runtime_error(sentence), code(code) {}

  ErrorCode code;
  int rank = -1;          ///< that raised it, in the communicator
  int peer = -1;          ///< that it waited for or heard from
  std::string operation;  ///< "all_reduce #12"; "recv" of a message
  int step = -1;          ///< of the schedule
  int backend_code = 0;   ///< the transport's own code
  std::string backend_text;
};

}  // namespace baton
#pragma GCC visibility pop
