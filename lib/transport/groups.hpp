#pragma once
/// Groups within a world of processes, for transports that tell groups apart by numbers, contexts.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "baton/exchange.hpp"
#include "gathered.hpp"

namespace baton::transport {

/// The ranks of `group` that gave this rank's color, ordered by key, then by rank; empty if it is
/// negative. Collective.
std::vector<int> members_of_split(Transport& group, int color, int key, int tag);

/// Contexts of which this process has used none from `next` on.
struct Contexts {
  std::uint32_t next;
  std::uint32_t end;  ///< the first that there is not
};
/// A context that none of these ranks has used. Groups of one split share no rank, so they may
/// share it. `locked` calls a function while it holds the world's lock. `concurrent`: other threads
/// may take contexts meanwhile. Collective over `ranks`. Throws Error(transport) if there is none
/// left.
std::uint32_t new_context(const Part& ranks, int tag, Contexts& contexts, bool concurrent,
                          const std::function<void(const std::function<void()>&)>& locked);

/// All ranks' blocks in rank order, through `group`, by tag 0. Collective.
std::vector<std::vector<std::byte>> exchange_through(Transport& group,
                                                     const std::vector<std::byte>& own);

/// Calls `exchange`, and returns its blocks. Throws Error(transport) if it brings another number of
/// them than `size`, or one of fewer than `least` bytes.
std::vector<std::vector<std::byte>> exchanged(const Exchange& exchange,
                                              const std::vector<std::byte>& own, int rank, int size,
                                              std::size_t least);

/// Throws Error(invalid_argument) if the arguments of a meeting make no sense; `name` is the
/// transport's.
void check_meeting(const char* name, int rank, int size, int most_ranks, const Exchange& exchange);

/// The value of BATON_TRANSPORT, one of `names`, or empty where it is not set. Throws
/// Error(invalid_argument).
std::string chosen_transport(std::initializer_list<std::string_view> names);
/// Throws Error(mismatch) if ranks chose different ones; `choices` are theirs, by rank.
void check_same_choice(const std::vector<std::string>& choices, int rank);

}  // namespace baton::transport
