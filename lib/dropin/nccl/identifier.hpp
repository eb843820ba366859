#pragma once
/// The text within NCCL's unique identifier, which may come from anywhere. Knows nothing of NCCL.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace baton::nccl_abi {

/// The content of an identifier: the place where ranks meet, and for which meeting.
struct Origin {
  std::vector<std::string> addresses;  ///< each with its port
  std::uint64_t key = 0, meeting = 0;

  /// The same place for another meeting, which all that know `what` agree on.
  Origin with(std::uint64_t what) const;
};

/// An identifier's text, shorter than `room` bytes; addresses, which have no port here, are left
/// out where they find no room.
std::string identifier_text(std::uint64_t key, std::uint64_t meeting, int port,
                            const std::vector<std::string>& addresses, std::size_t room);
/// Throws Error(invalid_argument) unless it has the form of identifier_text().
Origin parse_identifier(std::string_view text);

}  // namespace baton::nccl_abi
