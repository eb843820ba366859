#include "reception.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace baton::tcp {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t room = 256;
constexpr auto patience = 5s;       // with a stranger
constexpr auto impatience = 250ms;  // where the room is used up
constexpr std::size_t piece = 4096;

std::span<const std::byte> label(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace

Digest proof_of_guest(const Bytes& key, const Hello& hello, const Challenge& challenge,
                      const Bytes& block) {
  return hmac(key, {label("rank"), bytes_of(hello), bytes_of(challenge), block});
}

Digest proof_of_place(const Bytes& key, const Hello& hello, const Challenge& challenge,
                      const Answer& answer, const Digest& text) {
  return hmac(key, {label("place"), bytes_of(hello), bytes_of(challenge), bytes_of(answer.error),
                    bytes_of(answer.bytes), text});
}

bool Stranger::take_hello() {
  std::ranges::copy(got_, room_of(hello_).begin());
  got_.clear();
  greeted_ = true;
  if (hello_.magic != Hello{}.magic || hello_.bytes > most_block_bytes || hello_.size < 1 ||
      hello_.size > most_ranks)
    return false;
  challenge_.nonce = random_bytes();
  return socket_.write(bytes_of(challenge_), Clock::now());  // fits what the system keeps
}

Stranger::State Stranger::advance(const Bytes& key) {
  for (;;) {
    const std::size_t whole = greeted_ ? sizeof(Digest) + hello_.bytes : sizeof(Hello);
    if (got_.size() < whole) {
      const std::size_t before = got_.size();
      got_.resize(std::min(whole, before + piece));
      const auto more = socket_.read_some(std::span(got_).subspan(before));
      got_.resize(before + more.value_or(0));
      if (!more) return State::gone;
      if (*more == 0) return State::waiting;
    } else if (!greeted_) {
      if (!take_hello()) return State::gone;
    } else {
      Digest proof;
      std::copy_n(got_.begin(), proof.size(), proof.begin());
      block_.assign(got_.begin() + sizeof proof, got_.end());
      if (equal(proof, proof_of_guest(key, hello_, challenge_, block_))) return State::proved;
      socket_.write(bytes_of(Answer{.error = refusal}), Clock::now());
      return State::refused;
    }
  }
}

std::optional<Guest> Reception::next(std::span<const Socket> doors, Time until, int wake) {
  for (;;) {
    // Those who are here, in turn; each may have sent its last byte meanwhile.
    for (auto one = strangers_.begin(); one != strangers_.end();) {
      const Stranger::State state = one->advance(key_);
      if (state == Stranger::State::waiting && Clock::now() - one->since() < patience) {
        ++one;
        continue;
      }
      std::optional<Guest> guest;
      if (state == Stranger::State::proved) guest = one->guest();
      refused_ += state == Stranger::State::refused;
      one = strangers_.erase(one);
      if (guest) return guest;
    }
    const bool full = strangers_.size() >= room;
    if (full && Clock::now() - strangers_.front().since() > impatience) {
      strangers_.pop_front();
      continue;
    }
    std::vector<int> watched;
    for (const Stranger& stranger : strangers_) watched.push_back(stranger.socket().descriptor());
    if (!full)
      for (const Socket& door : doors) watched.push_back(door.descriptor());
    watched.push_back(wake);
    Time latest = until;
    if (!strangers_.empty())
      latest = std::min<Time>(latest, strangers_.front().since() + (full ? impatience : patience));
    const bool any = readable(watched, latest);
    if (!any && Clock::now() >= until) return std::nullopt;
    if (wake >= 0 && readable(std::span(&wake, 1), Clock::now())) return std::nullopt;
    if (full) continue;
    for (const Socket& door : doors)
      if (auto socket = door.accept()) strangers_.emplace_back(std::move(*socket));
  }
}

}  // namespace baton::tcp
