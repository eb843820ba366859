#include "groups.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "../base/raise.hpp"
#include "baton/error.hpp"
#include "baton/schedule/hosts.hpp"

namespace baton::transport {

std::vector<int> WorldGroup::hosts_among(std::span<const int> hosts) const {
  std::vector<int> from;
  for (const int member : members_) from.push_back(hosts[static_cast<std::size_t>(member)]);
  const Hosts numbered(from);
  return {numbered.of().begin(), numbered.of().end()};
}

std::unique_ptr<Transport> WorldGroup::split(int color, int key) {
  struct Wish {
    int color, key;
  };
  const int tag = own_tags_ + group_tags - 1;
  const std::vector<Wish> wishes = gathered(*this, Wish{color, key}, tag);
  const std::uint32_t context = new_context(Part{*this}, tag);
  if (color < 0) return nullptr;
  std::vector<int> ranks;
  for (int r = 0; r < size(); ++r)
    if (wishes[static_cast<std::size_t>(r)].color == color) ranks.push_back(r);
  std::ranges::stable_sort(ranks, {},
                           [&](int r) { return wishes[static_cast<std::size_t>(r)].key; });
  return group_of(std::move(ranks), context);
}

std::unique_ptr<Transport> WorldGroup::subgroup(const std::vector<int>& ranks, int number) {
  return group_of(ranks, new_context(Part{*this, ranks}, own_tags_ + number));
}

/// The group of these ranks of this one.
std::unique_ptr<Transport> WorldGroup::group_of(std::vector<int> ranks, std::uint32_t context) {
  const auto own = std::ranges::find(ranks, rank_) - ranks.begin();
  for (int& r : ranks) r = member(r);
  return group(context, static_cast<int>(own), std::move(ranks));
}

/// A context that none of these ranks has used. Collective over them.
std::uint32_t WorldGroup::new_context(const Part& ranks, int tag) {
  const auto agree = [&](std::uint32_t own) { return std::ranges::max(gathered(ranks, own, tag)); };
  for (;;) {
    Contexts own{};
    with_contexts([&](const Contexts& contexts) { own = contexts; });
    const std::uint32_t context = agree(own.next);
    if (context >= own.end)
      throw Error(ErrorCode::transport,
                  fmt::format("at most {} splits were expected, but found one more", own.end - 2));
    bool taken = false;  // by another thread meanwhile
    with_contexts([&](Contexts& contexts) {
      taken = context < contexts.next;
      if (!taken) contexts.next = context + 1;
    });
    if (!concurrent() || agree(taken) == 0) return context;
  }
}

std::vector<std::vector<std::byte>> exchange_through(Transport& group,
                                                     const std::vector<std::byte>& own) {
  const auto lengths = gathered(group, std::uint64_t{own.size()});
  const std::size_t room = std::ranges::max(lengths);
  std::vector<std::byte> all(room * lengths.size());
  std::ranges::copy(own, all.data() + room * static_cast<std::size_t>(group.rank()));
  all_gather(group, all);
  std::vector<std::vector<std::byte>> blocks;
  for (const std::byte* begin = all.data(); const std::uint64_t length : lengths) {
    blocks.emplace_back(begin, begin + length);
    begin += room;
  }
  return blocks;
}

std::vector<std::vector<std::byte>> exchanged(const Exchange& exchange,
                                              const std::vector<std::byte>& own, int rank, int size,
                                              std::size_t least) {
  std::vector<std::vector<std::byte>> blocks = exchange(own);
  if (blocks.size() != static_cast<std::size_t>(size))
    base::raise(
        ErrorCode::transport,
        fmt::format("the exchange of addresses was expected to bring {} blocks, but brought {}",
                    size, blocks.size()),
        {.rank = rank});
  for (std::size_t r = 0; r < blocks.size(); ++r)
    if (blocks[r].size() < least)
      base::raise(ErrorCode::transport,
                  fmt::format("the exchange of addresses was expected to bring the address of rank "
                              "{}, but brought {} bytes",
                              r, blocks[r].size()),
                  {.rank = rank});
  return blocks;
}

void check_meeting(const char* name, int rank, int size, int most_ranks, const Exchange& exchange) {
  if (size < 1 || rank < 0 || rank >= size)
    base::refuse("{} needs a rank from 0 to size - 1, but found rank {} of size {}", name, rank,
                 size);
  if (size > most_ranks)
    base::refuse("{} has at most {} ranks, but found {}", name, most_ranks, size);
  if (!exchange) base::refuse("a function that exchanges addresses was expected, but found none");
}

Choice chosen_transport() {
  Choice choice{};
  if (const char* const text = std::getenv("BATON_TRANSPORT"))
    std::string_view(text).copy(choice.data(), choice.size() - 1);
  return choice;
}

std::string agreed_transport(std::span<const Choice> choices,
                             std::initializer_list<std::string_view> names, int rank) {
  const std::string first = choices[0].data();
  for (std::size_t r = 0; r < choices.size(); ++r) {
    const std::string one = choices[r].data();
    if (!one.empty() && std::ranges::find(names, one) == names.end())
      base::raise(ErrorCode::invalid_argument,
                  fmt::format("BATON_TRANSPORT: expected {}, found '{}' on rank {}",
                              fmt::join(names, " or "), one, r),
                  {.rank = rank});
    if (one != first)
      base::raise(ErrorCode::mismatch,
                  fmt::format("BATON_TRANSPORT: expected the same on all ranks, found {} on rank 0 "
                              "and {} on rank {}",
                              first.empty() ? "none" : first, one.empty() ? "none" : one, r),
                  {.rank = rank});
  }
  return first;
}

}  // namespace baton::transport
