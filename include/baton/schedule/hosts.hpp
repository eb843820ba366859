#pragma once
/// Which ranks share a host.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace baton {

/// Ranks grouped by host. Hosts are numbered in the order of their lowest ranks.
class Hosts {
 public:
  /// Ranks with equal numbers share a host; which numbers these are does not matter.
  explicit Hosts(std::span<const int> host_of);

  int size() const { return static_cast<int>(of_.size()); }          ///< ranks
  int count() const { return static_cast<int>(begin_.size()) - 1; }  ///< hosts
  /// The host of a rank.
  int of(int rank) const { return of_[static_cast<std::size_t>(rank)]; }
  std::span<const int> of() const { return of_; }  ///< the host of each rank
  std::span<const int> ranks(int host) const;      ///< ascending
  /// How many of its host's ranks are lower.
  int local(int rank) const { return local_[static_cast<std::size_t>(rank)]; }
  int largest() const;  ///< ranks of the host that has the most
  /// Whether every host has as many ranks as the others.
  bool even() const { return count() * largest() == size(); }

  bool operator==(const Hosts& other) const { return of_ == other.of_; }

 private:
  std::vector<int> of_, local_;
  std::vector<int> ranks_;  // host after host
  std::vector<int> begin_;  // of each host in ranks_, and the end
};

/// The host grouping as problems carry it: null where all ranks share one host.
std::shared_ptr<const Hosts> host_grouping(std::span<const int> host_of);

/// "2x4": two hosts of four ranks each, one after the other; "0,1,0,1": the host of each rank.
std::string print(const Hosts& hosts);
/// parse_hosts(print(hosts)) is equal to `hosts`. Throws Error(invalid_argument).
Hosts parse_hosts(std::string_view text);

}  // namespace baton
#pragma GCC visibility pop
