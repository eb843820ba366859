#pragma once
/// Strangers at the door of a meeting, until they have proved to be ranks.
///
/// A guest sends Hello, gets a Challenge, and sends a proof that it knows the key, and its block:
/// all in clear but the key. The answer of the place has such a proof, too (meeting.hpp).

#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "secret.hpp"
#include "socket.hpp"

namespace baton::tcp {

/// Most ranks that may meet.
inline constexpr int most_ranks = 1 << 20;
/// Most bytes of a block; a worker's address has a few hundred.
inline constexpr std::uint64_t most_block_bytes = 1u << 16;

/// A rank's first message.
struct Hello {
  std::uint64_t magic = 0x326e6f7461627875;  // "uxbaton2"
  std::uint64_t meeting = 0;                 ///< of a place with several
  std::int32_t rank, size;
  std::uint64_t milliseconds = 0;  ///< for which it waits, of such a place
  std::uint64_t bytes = 0;         ///< of its block
  Digest nonce{};                  ///< random
};

/// The answer to it.
struct Challenge {
  std::uint64_t magic = 0x3f6e6f7461627875;  // "uxbaton?"
  Digest nonce{};                            ///< random
};

/// A rank that has proved to be one.
struct Guest {
  Socket socket;
  Hello hello;
  Challenge challenge;
  Bytes block;
};

/// What a guest sends with its block.
Digest proof_of_guest(const Bytes& key, const Hello& hello, const Challenge& challenge,
                      const Bytes& block);

/// A connection of which nothing is known yet.
class Stranger {
 public:
  explicit Stranger(Socket socket) : socket_(std::move(socket)) {}

  enum class State : std::uint8_t { waiting, proved, refused, gone };
  /// Reads what has arrived. Memory grows only with what arrives, up to `most_block_bytes`.
  State advance(const Bytes& key);
  /// After State::proved, once.
  Guest guest() { return {std::move(socket_), hello_, challenge_, std::move(block_)}; }
  const Socket& socket() const { return socket_; }
  Time since() const { return since_; }

 private:
  bool take_hello();

  Socket socket_;
  Time since_ = std::chrono::steady_clock::now();
  Bytes got_;  // of the message under way
  bool greeted_ = false;
  Hello hello_{};
  Challenge challenge_;
  Bytes block_;
};

/// Lets ranks in. Strangers do not hold up one another; there is room for 256, and where it is used
/// up, those go that have been there for longest.
class Reception {
 public:
  explicit Reception(Bytes key) : key_(std::move(key)) {}

  /// The next guest that has proved to be a rank; none: time is up, or `wake` can be read.
  std::optional<Guest> next(std::span<const Socket> doors, Time until, int wake = -1);
  /// How many could not prove that they know the key.
  int refused() const { return refused_; }

 private:
  Bytes key_;
  std::deque<Stranger> strangers_;  // by arrival
  int refused_ = 0;
};

/// Sent in place of an answer to who cannot prove to know the key.
inline constexpr std::uint64_t refusal = ~std::uint64_t{0};

/// The answer to a rank. A sentence follows, or all blocks, each after its length.
struct Answer {
  std::uint64_t error = 0;  ///< ErrorCode + 1; 0: no error; `refusal`
  std::uint64_t bytes = 0;  ///< of the text or blocks that follow
  Digest proof{};           ///< that the place knows the key
};

/// Of the answer's other members and of the text, of which `text` is the SHA-256.
Digest proof_of_place(const Bytes& key, const Hello& hello, const Challenge& challenge,
                      const Answer& answer, const Digest& text);

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
std::span<std::byte> room_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace baton::tcp
