#include "baton/schedule/hosts.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "baton/error.hpp"

namespace baton {
namespace {

constexpr int most_ranks = 1 << 20;  // that a text may name

/// Consumes a number from the front of `text`; -1 if there is none.
int take_number(std::string_view& text) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return -1;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// The host of each rank, as the text says; empty if it says nothing.
std::vector<int> host_of(std::string_view text) {
  std::vector<int> hosts;
  const int first = take_number(text);
  if (first < 0) return {};
  if (text.starts_with('x')) {
    text.remove_prefix(1);
    const int each = take_number(text);
    if (first == 0 || each < 1 || each > most_ranks / first || !text.empty()) return {};
    hosts.resize(static_cast<std::size_t>(first) * static_cast<std::size_t>(each));
    for (auto host = hosts.begin(); host != hosts.end(); host += each)
      std::fill_n(host, each, static_cast<int>((host - hosts.begin()) / each));
    return hosts;
  }
  hosts.push_back(first);
  while (text.starts_with(',')) {
    text.remove_prefix(1);
    hosts.push_back(take_number(text));
    if (hosts.back() < 0) return {};
  }
  return text.empty() ? hosts : std::vector<int>();
}

}  // namespace

Hosts::Hosts(std::span<const int> host_of) {
  std::unordered_map<int, int> numbers;
  std::vector<int> members;
  of_.reserve(host_of.size());
  local_.reserve(host_of.size());
  int last = -1, number = -1;  // of the rank before
  for (const int host : host_of) {
    if (number < 0 || host != last)
      number = numbers.emplace(host, static_cast<int>(members.size())).first->second;
    last = host;
    if (number == static_cast<int>(members.size())) members.push_back(0);
    of_.push_back(number);
    local_.push_back(members[static_cast<std::size_t>(number)]++);
  }
  begin_.push_back(0);
  for (const int n : members) begin_.push_back(begin_.back() + n);
  ranks_.resize(of_.size());
  for (int r = 0; r < size(); ++r) {
    ranks_[static_cast<std::size_t>(begin_[static_cast<std::size_t>(of(r))] + local(r))] = r;
  }
}

std::span<const int> Hosts::ranks(int host) const {
  const auto h = static_cast<std::size_t>(host);
  return std::span(ranks_).subspan(static_cast<std::size_t>(begin_[h]),
                                   static_cast<std::size_t>(begin_[h + 1] - begin_[h]));
}

int Hosts::largest() const {
  int most = 0;
  for (std::size_t h = 1; h < begin_.size(); ++h) most = std::max(most, begin_[h] - begin_[h - 1]);
  return most;
}

std::shared_ptr<const Hosts> host_grouping(std::span<const int> host_of) {
  auto hosts = std::make_shared<const Hosts>(host_of);
  return hosts->count() > 1 ? hosts : nullptr;
}

std::string print(const Hosts& hosts) {
  const bool in_turn = std::is_sorted(hosts.of().begin(), hosts.of().end());
  if (hosts.even() && in_turn) return fmt::format("{}x{}", hosts.count(), hosts.largest());
  return fmt::format("{}", fmt::join(hosts.of(), ","));
}

Hosts parse_hosts(std::string_view text) {
  const std::vector<int> hosts = host_of(text);
  if (hosts.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("expected hosts like 2x4, or the host of each rank like 0,0,1,1, found "
                            "\"{}\"",
                            text));
  }
  return Hosts(hosts);
}

}  // namespace baton
