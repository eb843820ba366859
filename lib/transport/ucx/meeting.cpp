#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "../../base/raise.hpp"
#include "meeting.hpp"
#include "message.hpp"

namespace baton::ucx {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// The answer to a rank. A sentence follows, or all blocks, each after its length.
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

}  // namespace

std::optional<Hello> hello_of(const Socket& guest, std::uint64_t key, Bytes& block, Time until) {
  Hello hello{};
  if (!guest.read(room_of(hello), std::min(until, Clock::now() + 2s)) ||
      hello.magic != Hello{}.magic || hello.key != key || hello.bytes > most_bytes ||
      hello.size < 1 || hello.size > most_ranks)
    return std::nullopt;  // not a rank
  block.resize(hello.bytes);
  if (!guest.read(block, until)) return std::nullopt;
  return hello;
}

void Meeting::greet(const Hello& hello, Bytes block, Socket guest) {
  guests_.push_back(std::move(guest));
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
  complaint_ = fmt::format("{} ranks were expected at {}, each once, but {}", size, place_, found);
  // A short wait for ranks about to come, so that they hear of the error, too.
  until_ = std::min(until_, Clock::now() + 1s);
}

std::vector<Bytes> Meeting::end() {
  if (complaint_.empty() && !complete()) {
    code_ = ErrorCode::timeout;
    complaint_ = fmt::format("{} ranks were expected at {} within {} ms, but these did not come:",
                             blocks_.size(), place_, limit_.count());
    for (std::size_t r = 0; r < blocks_.size(); ++r)
      if (blocks_[r].empty()) complaint_ += fmt::format(" {}", r);
  }
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
  bool all_told = true;
  for (const Socket& guest : guests_) {
    const Time until = Clock::now() + 5s;
    all_told &= guest.write(bytes_of(head), until) && guest.write(text, until);
  }
  if (!complaint_.empty()) raise(code_, complaint_, {.rank = 0});
  if (!all_told)
    raise(ErrorCode::transport,
          fmt::format("{} ranks were expected to stay at {} until all have come, but one left",
                      blocks_.size(), place_),
          {.rank = 0});
  return std::move(blocks_);
}

std::vector<Bytes> attend(const Socket& host, const std::string& place, const Hello& hello,
                          const Bytes& own, std::chrono::milliseconds limit) {
  const int rank = hello.rank, size = hello.size;
  const Time latest = Clock::now() + limit + 10s;
  Answer head{};
  const auto ended = [&] {
    raise(ErrorCode::transport,
          fmt::format("rank {} was expected to get all ranks' addresses from {}, but the "
                      "connection ended",
                      rank, place),
          {.rank = rank});
  };
  if (!host.write(bytes_of(hello), latest) || !host.write(own, latest) ||
      !host.read(room_of(head), latest))
    ended();
  if (head.error > static_cast<std::uint64_t>(ErrorCode::unsupported) + 1 ||
      head.bytes > most_bytes * static_cast<std::uint64_t>(size))
    raise(ErrorCode::transport,
          fmt::format("rank {} was expected to find {}, but found another program", rank, place),
          {.rank = rank});
  Bytes text(head.bytes);
  if (!host.read(text, latest)) ended();
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

std::vector<Bytes> exchange_at(const std::string& address, int rank, int size, const Bytes& own,
                               std::chrono::milliseconds limit) {
  if (size == 1) return {own};
  if (rank != 0) {
    // Rank 0 waits this long after its own arrival, and then answers.
    std::string reason;
    const std::optional<Socket> host = connected(address, Clock::now() + limit, reason);
    if (!host)
      raise(ErrorCode::timeout,
            fmt::format("rank {} was expected to reach rank 0 at {} within {} ms, but found: {}",
                        rank, address, limit.count(), reason),
            {.rank = rank});
    const Hello hello{.rank = rank, .size = size, .bytes = own.size()};
    return attend(*host, "rank 0 at " + address, hello, own, limit);
  }
  const Socket socket = listening(address);
  Meeting meeting(address, size, limit);
  meeting.bring(own);
  while (!meeting.over()) {
    std::optional<Socket> guest = socket.accept(meeting.until());
    if (!guest) break;
    Bytes block;
    if (const auto hello = hello_of(*guest, 0, block, meeting.until()))
      meeting.greet(*hello, std::move(block), std::move(*guest));
  }
  return meeting.end();
}

}  // namespace baton::ucx
