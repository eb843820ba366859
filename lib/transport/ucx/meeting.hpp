#pragma once
/// Ranks that meet at a TCP address exchange a block of bytes each.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "baton/error.hpp"
#include "socket.hpp"

namespace baton::ucx {

using Bytes = std::vector<std::byte>;

/// All ranks' blocks in rank order, through rank 0, which listens at "host:port". Collective.
/// Throws as ucx_transport() does.
std::vector<Bytes> exchange_at(const std::string& address, int rank, int size, const Bytes& own,
                               std::chrono::milliseconds limit);

/// A rank's first message; its block follows.
struct Hello {
  std::uint64_t magic = 0x6e6f746162'786375;  // "ucxbaton"
  std::uint64_t key = 0;                      ///< of the place; guests with another one are ignored
  std::uint64_t meeting = 0;                  ///< of a place with several
  std::int32_t rank, size;
  std::uint64_t milliseconds = 0;  ///< for which it waits, of such a place
  std::uint64_t bytes = 0;
};

/// The first message of a guest and its block; none if it is not a rank.
std::optional<Hello> hello_of(const Socket& guest, std::uint64_t key, Bytes& block, Time until);

/// The ranks that have come to one place so far.
class Meeting {
 public:
  /// `place` is for sentences. The meeting ends `limit` from now at the latest.
  Meeting(std::string place, int size, std::chrono::milliseconds limit)
      : place_(std::move(place)),
        limit_(limit),
        until_(std::chrono::steady_clock::now() + limit),
        blocks_(static_cast<std::size_t>(size)) {}

  /// The block of rank 0, which holds the place.
  void bring(const Bytes& own) { blocks_[0] = own, hosts_ = 1; }
  void greet(const Hello& hello, Bytes block, Socket guest);
  /// Whether as many ranks came as there are, or time is up.
  bool over() const { return complete() || std::chrono::steady_clock::now() > until_; }
  Time until() const { return until_; }
  /// Sends all blocks, or a complaint, to the guests. Returns the blocks; throws the complaint.
  std::vector<Bytes> end();

 private:
  bool complete() const { return guests_.size() + hosts_ >= blocks_.size(); }

  std::string place_;
  std::chrono::milliseconds limit_;
  Time until_;
  std::vector<Socket> guests_;
  std::size_t hosts_ = 0;
  std::vector<Bytes> blocks_;  // by rank; empty: not here yet
  ErrorCode code_ = ErrorCode::mismatch;
  std::string complaint_;
};

/// All ranks' blocks, by way of the process that `host` leads to, which `place` describes. It
/// answers within `limit`. Throws Error(transport) and the meeting's complaint.
std::vector<Bytes> attend(const Socket& host, const std::string& place, const Hello& hello,
                          const Bytes& own, std::chrono::milliseconds limit);

}  // namespace baton::ucx
