#pragma once
/// Ranks that meet at a TCP address exchange a block of bytes each.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "baton/error.hpp"
#include "reception.hpp"

namespace baton::tcp {

/// All ranks' blocks in rank order, through rank 0, which listens at "host:port". Collective.
/// Throws Error(invalid_argument, transport, timeout, mismatch).
std::vector<Bytes> exchange_at(const std::string& address, int rank, int size, const Bytes& own,
                               std::chrono::milliseconds limit);

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
  void greet(Guest guest);
  /// Whether as many ranks came as there are, or time is up.
  bool over() const { return complete() || std::chrono::steady_clock::now() > until_; }
  Time until() const { return until_; }
  /// Sends all blocks, or a complaint, to the guests, with a proof by `key`. Returns the blocks;
  /// throws the complaint. `refused`: guests that could not prove to know the key.
  std::vector<Bytes> end(const Bytes& key, int refused);

 private:
  bool complete() const { return guests_.size() + hosts_ >= blocks_.size(); }

  std::string place_;
  std::chrono::milliseconds limit_;
  Time until_;
  std::vector<Guest> guests_;
  std::size_t hosts_ = 0;
  std::vector<std::optional<Bytes>> blocks_;  // by rank; none: not here yet
  ErrorCode code_ = ErrorCode::mismatch;
  std::string complaint_;
};

/// A place waits for ranks until a limit, and then needs this long at most to answer them.
inline constexpr std::chrono::seconds slack{10};

/// All ranks' blocks, by way of the process that `host` leads to, which `place` describes. It
/// answers before `latest`. Throws Error(transport) and the meeting's complaint.
std::vector<Bytes> attend(const Socket& host, const std::string& place, const Bytes& key,
                          Hello hello, const Bytes& own, Time latest);

/// Blocks as an answer's text: each behind its length.
Bytes text_of(std::span<const Bytes> blocks);
/// Answers a guest, with a proof by `key`; false: it does not read. `error`: of Answer.
bool answer(const Guest& guest, const Bytes& key, std::uint64_t error,
            std::span<const std::byte> text, Time until);

/// The blocks of an answer's text, each behind its length; none: they are not `size`.
std::optional<std::vector<Bytes>> blocks_of(std::span<const std::byte> text, int size);

}  // namespace baton::tcp
