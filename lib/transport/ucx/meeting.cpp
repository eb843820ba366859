#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "../../base/raise.hpp"
#include "meeting.hpp"
#include "socket.hpp"

namespace baton::ucx {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// A rank's first message; its block follows.
struct Hello {
  std::uint64_t magic = 0x6e6f746162'786375;  // "ucxbaton"
  std::int32_t rank, size;
  std::uint64_t bytes;
};
/// Rank 0's answer. A sentence follows, or all blocks, each after its length.
struct Answer {
  std::uint64_t error;  // ErrorCode + 1; 0: no error
  std::uint64_t bytes;  // of the text or blocks that follow
};

// The limit of a block; a worker's address has a few hundred bytes.
constexpr std::uint64_t most_bytes = 1u << 20;

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
std::span<std::byte> room_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

using base::raise;

/// The ranks that connected to rank 0.
class Meeting {
 public:
  Meeting(const std::string& address, int size, const Bytes& own)
      : address_(address), socket_(listening(address)), blocks_(static_cast<std::size_t>(size)) {
    blocks_[0] = own;
  }

  void gather(std::chrono::milliseconds limit) {
    Time until = Clock::now() + limit;
    while (guests_.size() + 1 < blocks_.size()) {
      std::optional<Socket> guest = socket_.accept(until);
      if (!guest) break;
      Hello hello{};
      if (!guest->read(room_of(hello), std::min(until, Clock::now() + 2s)) ||
          hello.magic != Hello{}.magic || hello.bytes > most_bytes)
        continue;  // not a rank
      Bytes block(hello.bytes);
      if (!guest->read(block, until)) continue;
      guests_.push_back(std::move(*guest));
      greet(hello, std::move(block));
      // A short wait for ranks about to come, so that they hear of the error, too.
      if (!complaint_.empty()) until = std::min(until, Clock::now() + 1s);
    }
    if (complaint_.empty() && guests_.size() + 1 < blocks_.size()) {
      code_ = ErrorCode::timeout;
      complaint_ = fmt::format("{} ranks were expected at {} within {} ms, but these did not come:",
                               blocks_.size(), address_, limit.count());
      for (std::size_t r = 1; r < blocks_.size(); ++r)
        if (blocks_[r].empty()) complaint_ += fmt::format(" {}", r);
    }
  }

  /// Sends all blocks, or the complaint, to the guests. Returns the blocks.
  std::vector<Bytes> answer() {
    Bytes text;
    const auto append = [&](std::span<const std::byte> bytes) {
      text.insert(text.end(), bytes.begin(), bytes.end());
    };
    if (complaint_.empty()) {
      for (const Bytes& block : blocks_) {
        append(bytes_of(std::uint64_t{block.size()}));
        append(block);
      }
    } else {
      append(std::as_bytes(std::span(complaint_)));
    }
    const Answer head{complaint_.empty() ? 0 : static_cast<std::uint64_t>(code_) + 1, text.size()};
    for (std::size_t g = 0; g < guests_.size(); ++g) {
      const Time until = Clock::now() + 5s;
      const bool told = guests_[g].write(bytes_of(head), until) && guests_[g].write(text, until);
      if (!told && complaint_.empty())
        raise(ErrorCode::transport,
              fmt::format("{} ranks were expected to stay at {} until all have come, but one left",
                          blocks_.size(), address_),
              {.rank = 0});
    }
    if (!complaint_.empty()) raise(code_, complaint_, {.rank = 0});
    return std::move(blocks_);
  }

 private:
  void greet(const Hello& hello, Bytes block) {
    const int size = static_cast<int>(blocks_.size());
    std::string found;
    if (hello.size != size)
      found = fmt::format("rank {} says that there are {}", hello.rank, hello.size);
    else if (hello.rank < 0 || hello.rank >= size)
      found = fmt::format("one says that it is rank {}", hello.rank);
    else if (!blocks_[static_cast<std::size_t>(hello.rank)].empty())
      found = fmt::format("rank {} came twice", hello.rank);
    else
      blocks_[static_cast<std::size_t>(hello.rank)] = std::move(block);
    if (found.empty() || !complaint_.empty()) return;
    code_ = ErrorCode::mismatch;
    complaint_ =
        fmt::format("{} ranks were expected at {}, each once, but {}", size, address_, found);
  }

  const std::string& address_;
  Socket socket_;
  std::vector<Socket> guests_;
  std::vector<Bytes> blocks_;  // by rank; empty: not here yet
  ErrorCode code_ = ErrorCode::mismatch;
  std::string complaint_;
};

std::vector<Bytes> attend(const std::string& address, int rank, int size, const Bytes& own,
                          std::chrono::milliseconds limit) {
  // Rank 0 waits this long after its own arrival, and then answers.
  const Time until = Clock::now() + limit;
  std::string reason;
  const std::optional<Socket> host = connected(address, until, reason);
  if (!host)
    raise(ErrorCode::timeout,
          fmt::format("rank {} was expected to reach rank 0 at {} within {} ms, but found: {}",
                      rank, address, limit.count(), reason),
          {.rank = rank});
  const Hello hello{.rank = rank, .size = size, .bytes = own.size()};
  const Time latest = Clock::now() + limit + 10s;
  Answer head{};
  const auto ended = [&] {
    raise(ErrorCode::transport,
          fmt::format("rank {} was expected to get all ranks' addresses from rank 0 at {}, but the "
                      "connection ended",
                      rank, address),
          {.rank = rank});
  };
  if (!host->write(bytes_of(hello), latest) || !host->write(own, latest) ||
      !host->read(room_of(head), latest))
    ended();
  if (head.error > static_cast<std::uint64_t>(ErrorCode::unsupported) + 1 ||
      head.bytes > most_bytes * static_cast<std::uint64_t>(size))
    raise(ErrorCode::transport,
          fmt::format("rank {} was expected to find rank 0 at {}, but found another program", rank,
                      address),
          {.rank = rank});
  Bytes text(head.bytes);
  if (!host->read(text, latest)) ended();
  if (head.error != 0)
    raise(static_cast<ErrorCode>(head.error - 1),
          std::string(reinterpret_cast<const char*>(text.data()), text.size()), {.rank = rank});
  std::vector<Bytes> blocks;
  std::span<const std::byte> rest = text;
  for (int r = 0; r < size; ++r) {
    std::uint64_t length = 0;
    std::ranges::copy(rest.first(sizeof length), room_of(length).begin());
    rest = rest.subspan(sizeof length);
    length = std::min<std::uint64_t>(length, rest.size());
    blocks.emplace_back(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(length));
    rest = rest.subspan(length);
  }
  return blocks;
}

}  // namespace

std::vector<Bytes> exchange_at(const std::string& address, int rank, int size, const Bytes& own,
                               std::chrono::milliseconds limit) {
  if (size == 1) return {own};
  if (rank != 0) return attend(address, rank, size, own, limit);
  Meeting meeting(address, size, own);
  meeting.gather(limit);
  return meeting.answer();
}

}  // namespace baton::ucx
