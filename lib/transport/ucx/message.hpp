#pragma once
/// The content of Message::state, and the tags that UCX matches.

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <new>

#include "../groups.hpp"
#include "baton/transport.hpp"

namespace baton::ucx {

struct Pending {
  void* request;      ///< UCX's; null: the message is complete
  std::size_t bytes;  ///< to send; of a receive, the room
  int peer;           ///< in the group
  bool receive;
};
static_assert(sizeof(Pending) <= sizeof(Message::state) && alignof(Pending) <= 16);

inline Pending& pending_in(Message& message) {
  return *std::launder(reinterpret_cast<Pending*>(message.state));
}

// From the highest bit: the group's context, the sender's rank in it, the tag.
inline constexpr int context_bits = 24, rank_bits = 20, tag_bits = 20;
static_assert(context_bits + rank_bits + tag_bits == 64);
inline constexpr std::uint32_t contexts = 1u << context_bits;
inline constexpr int most_ranks = 1 << rank_bits;
inline constexpr int user_tags = (1 << tag_bits) - transport::group_tags;

constexpr ucp_tag_t tag_of(std::uint32_t context, int source, int tag) {
  return static_cast<ucp_tag_t>(context) << (rank_bits + tag_bits) |
         static_cast<ucp_tag_t>(source) << tag_bits | static_cast<ucp_tag_t>(tag);
}

/// The bits that a message from any rank matches by.
inline constexpr ucp_tag_t any_source =
    ~(static_cast<ucp_tag_t>(most_ranks - 1) << static_cast<unsigned>(tag_bits));

constexpr int source_of(ucp_tag_t tag) {
  return static_cast<int>(tag >> static_cast<unsigned>(tag_bits) &
                          static_cast<ucp_tag_t>(most_ranks - 1));
}

}  // namespace baton::ucx
