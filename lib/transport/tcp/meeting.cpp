#include "meeting.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <thread>

#include "../../base/raise.hpp"

namespace baton::tcp {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using base::raise;

/// Reads so many bytes; memory grows as they arrive, whatever number the other side has claimed.
bool read_all(const Socket& from, std::uint64_t bytes, Bytes& text, Time until) {
  constexpr std::uint64_t piece = 1u << 16;
  while (text.size() < bytes) {
    const std::size_t before = text.size();
    text.resize(before + std::min(piece, bytes - before));
    if (!from.read(std::span(text).subspan(before), until)) return false;
  }
  return true;
}

}  // namespace

void Meeting::greet(Guest guest) {
  const Hello hello = guest.hello;
  Bytes block = std::move(guest.block);
  guests_.push_back(std::move(guest));
  const int size = static_cast<int>(blocks_.size());
  std::string found;
  if (hello.size != size)
    found = fmt::format("rank {} says that there are {}", hello.rank, hello.size);
  else if (hello.rank < 0 || hello.rank >= size)
    found = fmt::format("one says that it is rank {}", hello.rank);
  else if (blocks_[static_cast<std::size_t>(hello.rank)])
    found = fmt::format("rank {} came twice", hello.rank);
  else
    blocks_[static_cast<std::size_t>(hello.rank)] = std::move(block);
  if (found.empty() || !complaint_.empty()) return;
  code_ = ErrorCode::mismatch;
  complaint_ = fmt::format("{} ranks were expected at {}, each once, but {}", size, place_, found);
  // A short wait for ranks about to come, so that they hear of the error, too.
  until_ = std::min(until_, Clock::now() + 1s);
}

std::vector<Bytes> Meeting::end(const Bytes& key, int refused) {
  if (complaint_.empty() && !complete()) {
    code_ = ErrorCode::timeout;
    complaint_ = fmt::format("{} ranks were expected at {} within {} ms, but these did not come:",
                             blocks_.size(), place_, limit_.count());
    for (std::size_t r = 0; r < blocks_.size(); ++r)
      if (!blocks_[r]) complaint_ += fmt::format(" {}", r);
    if (refused > 0)
      complaint_ +=
          fmt::format("; {} came with another secret (BATON_SECRET) and were refused", refused);
  }
  std::vector<Bytes> blocks;
  Bytes text;
  if (complaint_.empty()) {
    for (auto& block : blocks_) blocks.push_back(std::move(*block));
    text = text_of(blocks);
  } else {
    const auto bytes = std::as_bytes(std::span(complaint_));
    text.assign(bytes.begin(), bytes.end());
  }
  const std::uint64_t error = complaint_.empty() ? 0 : static_cast<std::uint64_t>(code_) + 1;
  bool all_told = true;
  auto patience = std::chrono::nanoseconds(5s);  // with all guests that do not read, together
  for (const Guest& guest : guests_) {
    const Time begin = Clock::now();
    if (answer(guest, key, error, text, begin + patience)) continue;
    all_told = false;
    patience = std::max<std::chrono::nanoseconds>(patience - (Clock::now() - begin), 50ms);
  }
  if (!complaint_.empty()) raise(code_, complaint_, {.rank = 0});
  if (!all_told)
    raise(ErrorCode::transport,
          fmt::format("{} ranks were expected to stay at {} until all have come, but one left",
                      blocks_.size(), place_),
          {.rank = 0});
  return blocks;
}

Bytes text_of(std::span<const Bytes> blocks) {
  Bytes text;
  for (const Bytes& block : blocks) {
    const std::uint64_t length = block.size();
    std::ranges::copy(bytes_of(length), std::back_inserter(text));
    std::ranges::copy(block, std::back_inserter(text));
  }
  return text;
}

bool answer(const Guest& guest, const Bytes& key, std::uint64_t error,
            std::span<const std::byte> text, Time until) {
  Answer head{error, text.size()};
  head.proof = proof_of_place(key, guest.hello, guest.challenge, head, sha256({text}));
  return guest.socket.write(bytes_of(head), until) && guest.socket.write(text, until);
}

std::optional<std::vector<Bytes>> blocks_of(std::span<const std::byte> text, int size) {
  std::vector<Bytes> blocks;
  for (int r = 0; r < size; ++r) {
    std::uint64_t length = 0;
    if (text.size() < sizeof length) return std::nullopt;
    std::ranges::copy(text.first(sizeof length), room_of(length).begin());
    text = text.subspan(sizeof length);
    if (length > text.size()) return std::nullopt;
    blocks.emplace_back(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length));
    text = text.subspan(length);
  }
  return text.empty() ? std::optional(std::move(blocks)) : std::nullopt;
}

namespace {

[[noreturn]] void raise_ended(int rank, const std::string& place) {
  raise(ErrorCode::transport,
        fmt::format("rank {} was expected to get all ranks' addresses from {}, but the connection "
                    "ended",
                    rank, place),
        {.rank = rank});
}

/// As attend(); none: the connection ended before it said anything.
std::optional<std::vector<Bytes>> attend_if_open(const Socket& host, const std::string& place,
                                                 const Bytes& key, Hello hello, const Bytes& own,
                                                 Time latest) {
  const int rank = hello.rank, size = hello.size;
  const auto fail = [&](const std::string& expected, std::string_view found) {
    raise(ErrorCode::transport,
          fmt::format("rank {} was expected to {}, but {}", rank, expected, found), {.rank = rank});
  };
  const auto ended = [&] { raise_ended(rank, place); };
  const auto another = [&] { fail(fmt::format("find {}", place), "found another program"); };
  if (own.size() > most_block_bytes)
    fail(fmt::format("bring at most {} bytes to {}", most_block_bytes, place),
         fmt::format("brought {}", own.size()));
  hello.bytes = own.size();
  hello.nonce = random_bytes();
  Challenge challenge{};
  if (!host.write(bytes_of(hello), latest) || !host.read(room_of(challenge), latest))
    return std::nullopt;
  if (challenge.magic != Challenge{}.magic) another();
  Answer head;
  if (!host.write(proof_of_guest(key, hello, challenge, own), latest) || !host.write(own, latest) ||
      !host.read(room_of(head), latest))
    ended();
  const std::string same = fmt::format("have the secret (BATON_SECRET) of {}", place);
  if (head.error == refusal) fail(same, has_secret() ? "has another one" : "has none");
  if (head.error > static_cast<std::uint64_t>(ErrorCode::device) + 1 ||
      head.bytes > (most_block_bytes + sizeof(std::uint64_t)) * static_cast<std::uint64_t>(size))
    another();
  Bytes text;
  if (!read_all(host, head.bytes, text, latest)) ended();
  if (!equal(head.proof, proof_of_place(key, hello, challenge, head, sha256({text}))))
    fail(same, "found that the other side does not know it");
  if (head.error != 0)
    raise(static_cast<ErrorCode>(head.error - 1),
          std::string(reinterpret_cast<const char*>(text.data()), text.size()), {.rank = rank});
  auto blocks = blocks_of(text, size);
  if (!blocks) another();
  return blocks;
}

}  // namespace

std::vector<Bytes> attend(const Socket& host, const std::string& place, const Bytes& key,
                          Hello hello, const Bytes& own, Time latest) {
  auto blocks = attend_if_open(host, place, key, hello, own, latest);
  if (!blocks) raise_ended(hello.rank, place);
  return std::move(*blocks);
}

std::vector<Bytes> exchange_at(const std::string& address, int rank, int size, const Bytes& own,
                               std::chrono::milliseconds limit) {
  if (size == 1) return {own};
  const Bytes key = proof_key(0);
  if (rank != 0) {
    // Rank 0 waits this long after its own arrival, and then answers.
    std::string reason;
    const Time until = Clock::now() + limit;
    const std::string place = "rank 0 at " + address;
    for (;;) {
      const std::optional<Socket> host = connected(address, until, reason);
      if (!host)
        raise(ErrorCode::timeout,
              fmt::format("rank {} was expected to reach rank 0 at {} within {} ms, but found: {}",
                          rank, address, limit.count(), reason),
              {.rank = rank});
      if (auto blocks = attend_if_open(*host, place, key, {.rank = rank, .size = size}, own,
                                       Clock::now() + limit + slack))
        return std::move(*blocks);
      // An earlier meeting at this address was about to close, or it is another program.
      if (Clock::now() >= until) raise_ended(rank, place);
      reason = "the connection ended";
      std::this_thread::sleep_for(10ms);
    }
  }
  const Socket door = listening(address);
  Reception reception(key);
  Meeting meeting(address, size, limit);
  meeting.bring(own);
  while (!meeting.over()) {
    std::optional<Guest> guest = reception.next({&door, 1}, meeting.until());
    if (!guest) break;
    meeting.greet(std::move(*guest));
  }
  return meeting.end(key, reception.refused());
}

}  // namespace baton::tcp
