#pragma once
/// Groups within a world of processes, for transports that tell groups apart by numbers, contexts.

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "baton/exchange.hpp"
#include "gathered.hpp"

namespace baton::transport {

/// Contexts of which this process has used none from `next` on.
struct Contexts {
  std::uint32_t next;
  std::uint32_t end;  ///< one past the last
};

/// Tags of split() and subgroup().
inline constexpr int group_tags = (1 << 15) + 1;

/// A group within a world: each rank has a number in the group and one, its member, in the world.
/// Groups of one split share no rank, so they may share a context.
class WorldGroup : public Transport {
 public:
  int rank() const final { return rank_; }
  int size() const final { return static_cast<int>(members_.size()); }
  std::unique_ptr<Transport> split(int color, int key) final;
  std::unique_ptr<Transport> subgroup(const std::vector<int>& ranks, int number) final;

 protected:
  /// The group itself uses `group_tags` tags from `own_tags` on.
  WorldGroup(std::uint32_t context, int rank, std::vector<int> members, int own_tags)
      : context_(context), rank_(rank), members_(std::move(members)), own_tags_(own_tags) {}

  int member(int rank) const { return members_[static_cast<std::size_t>(rank)]; }
  /// The hosts of the group's ranks, where these are those of the world's.
  std::vector<int> hosts_among(std::span<const int> hosts) const;

  virtual std::unique_ptr<Transport> group(std::uint32_t context, int rank,
                                           std::vector<int> members) = 0;
  /// Calls `use` while no other thread uses the contexts.
  virtual void with_contexts(const std::function<void(Contexts&)>& use) = 0;
  /// Whether other threads may take contexts meanwhile.
  virtual bool concurrent() const = 0;

  const std::uint32_t context_;
  const int rank_;
  const std::vector<int> members_;

 private:
  std::unique_ptr<Transport> group_of(std::vector<int> ranks, std::uint32_t context);
  std::uint32_t new_context(const Part& ranks, int tag);

  const int own_tags_;
};

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

/// The beginning of BATON_TRANSPORT, as ranks tell it each other; empty where it is not set.
using Choice = std::array<char, 16>;
Choice chosen_transport();
/// The choice of all ranks, empty or one of `names`; `choices` are theirs. Throws
/// Error(invalid_argument), and Error(mismatch) where they differ: the same sentence on all ranks.
std::string agreed_transport(std::span<const Choice> choices,
                             std::initializer_list<std::string_view> names, int rank);

}  // namespace baton::transport
