#pragma once
/// The status page of one rank of one communicator: a file in shared memory that its rank writes at
/// every call, and that other processes read without its help.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#ifdef __x86_64__
#include <x86intrin.h>
#endif

#include "../base/utf8.hpp"
#include "../trace/recorder.hpp"
#include "../transport/process.hpp"

namespace baton::status {

using transport::Condition, transport::Life, transport::ProcessId;
using transport::condition_of, transport::descends, transport::describe;
using transport::own_process, transport::own_thread;

/// An operation, as far as ranks must agree on it. Codes are those of the public enumerations.
struct Call {
  enum class Kind : std::uint8_t { none, collective, send, recv, internal };
  Kind kind = Kind::none;
  std::uint8_t collective = 0, type = 0, op = 0;
  std::int32_t root = -1;   ///< or the peer of a message
  std::int64_t count = -1;  ///< elements; -1: each rank has its own
  /// Algorithm and segment, "ring:65536"; "tag 7" of a message; the name of an internal operation.
  std::array<char, 24> text{};

  void set_text(std::string_view from) {
    const std::string_view kept = base::beginning_of(from, text.size() - 1);
    std::memcpy(text.data(), kept.data(), kept.size());
  }
  std::string_view note() const { return text.data(); }
  bool operator==(const Call&) const = default;
};
static_assert(sizeof(Call) == 40 && std::is_trivially_copyable_v<Call>);

/// "all_reduce of 10 f32, sum (ring)".
std::string describe(const Call& call);
/// The call as another process has written it; none in particular where its codes mean nothing.
Call call_of(const std::array<std::uint64_t, sizeof(Call) / 8>& words);
/// "all_reduce".
std::string name_of(const Call& call);

/// A text that one thread writes and others read. A reader never sees half of two texts.
template <std::size_t bytes>
class SharedText {
 public:
  void write(std::string_view text) {
    const std::size_t length = std::min(text.size(), bytes - 1);
    const std::uint32_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const std::size_t at = i * sizeof(std::uint64_t);
      std::uint64_t word = 0;
      if (at < length) std::memcpy(&word, text.data() + at, std::min(sizeof word, length - at));
      words_[i].store(word, std::memory_order_relaxed);
      if (at >= length) break;  // the end is written
    }
    version_.store(version + 2, std::memory_order_release);
  }
  /// Empty while the writer does not finish.
  std::string read() const {
    for (int attempt = 0; attempt < 1000; ++attempt) {
      const std::uint32_t before = version_.load(std::memory_order_acquire);
      if (before % 2 != 0) continue;
      std::array<std::uint64_t, bytes / sizeof(std::uint64_t)> words;
      for (std::size_t i = 0; i < words.size(); ++i)
        words[i] = words_[i].load(std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (before != version_.load(std::memory_order_relaxed)) continue;
      const char* const begin = reinterpret_cast<const char*>(words.data());
      return {begin, strnlen(begin, bytes)};
    }
    return {};
  }

 private:
  std::atomic<std::uint32_t> version_{0};
  std::array<std::atomic<std::uint64_t>, bytes / sizeof(std::uint64_t)> words_{};
};

/// 36 years: sums of a few times within this fit 64 bits, whatever another process has written.
inline constexpr std::int64_t most_ns = std::int64_t{1} << 60;

/// Operations that a page remembers, the latest.
inline constexpr std::size_t remembered = 64;

/// Bytes of a communicator's name.
inline constexpr std::size_t longest_label = 63;

/// Bytes of a sentence about a failure.
inline constexpr std::size_t longest_verdict = 2047;

/// A step that is a message, as one word.
struct MessageStep {
  std::int32_t peer = -1;  ///< -1: none
  std::uint32_t step = 0;

  std::uint64_t word() const {
    return std::uint64_t{step} << 32 | static_cast<std::uint32_t>(peer + 1);
  }
  /// Of any word: another process has written it.
  static MessageStep of(std::uint64_t word) {
    const auto place = static_cast<std::int32_t>(word & 0x7fffffff);
    return {place - 1, static_cast<std::uint32_t>(word >> 32)};
  }
};

/// The file's content. All-zero bytes are a valid empty page.
struct Layout {
  static constexpr char expected[8] = {'b', 'a', 't', 'o', 'n', 's', 't', '3'};
  char magic[8];
  std::uint64_t communicator;  ///< equal on all ranks
  std::int32_t rank, size;
  ProcessId process;
  std::uint64_t first;         ///< the number before its first operation
  std::uint64_t tsc;           ///< 1: ticks are the processor's, 0: ns
  std::int64_t anchor_ns;      ///< the machine's monotonic clock …
  std::uint64_t anchor_ticks;  ///< … at these ticks
  char program[64];
  std::atomic<std::int32_t> thread;          ///< that uses the communicator
  std::atomic<std::int32_t> blocker;         ///< rank that it waits for, + 1; 0: it does not wait
  std::atomic<std::uint64_t> given_up;       ///< by a peer: the operation with this number; 0: none
  std::atomic<std::uint32_t> verdict_claim;  ///< by the first that writes the verdict: its rank + 1
  std::atomic<std::uint32_t> verdict_code;   ///< the ErrorCode that goes with it, or will
  std::atomic<std::uint64_t> verdict_number;  ///< of its operation; stored when it is written
  std::atomic<std::uint32_t> shrinks;         ///< 1: it is in shrink(), or has failed and was there
  std::atomic<std::uint32_t> failed;    ///< 1: this rank makes no further call of the communicator
  std::atomic<std::uint32_t> left_out;  ///< by others: the last shrink() that went on without it
  /// Hashes of the sentences that this rank's communicator has reported; on rank 0's page.
  std::array<std::atomic<std::uint64_t>, 8> reported;
  SharedText<longest_label + 1> label;  ///< the communicator's name
  SharedText<256> waits;                ///< "waits for rank 3 (step 4 …)"
  SharedText<1024> failure;             ///< why the communicator is of no use any more
  SharedText<longest_verdict + 1>
      verdict;  ///< why an operation cannot complete, as all ranks say it

  /// An operation: number (0: a message), ticks of begin and end (0: under way), call.
  struct Entry {
    std::atomic<std::uint64_t> number, begin, end;
    std::array<std::atomic<std::uint64_t>, sizeof(Call) / 8> call;
  };
  std::atomic<std::uint64_t> begun;  ///< operations so far
  /// The messages for which the rank is inside a blocking call: step * 2^32 + peer + 1; 0: none.
  std::atomic<std::uint64_t> receiving, sending;
  alignas(64) std::array<Entry, remembered> entries;
  /// The last communicator that this rank could not make from this one, and why.
  std::atomic<std::uint64_t> unmade;  ///< stored when the rest is written; 0: none
  std::atomic<std::uint32_t> unmade_code;
  SharedText<2048> unmade_why;
};
static_assert(sizeof(Layout::Entry) == 64 && std::atomic<std::uint64_t>::is_always_lock_free);

/// An operation as read from a page.
struct Operation {
  std::uint64_t number;
  std::int64_t begin_ns, end_ns;  ///< the machine's monotonic clock; end 0: under way
  Call call;

  bool under_way() const { return end_ns == 0; }
};

/// A page as read.
struct Standing {
  std::uint64_t communicator = 0, first = 0;
  int rank = 0, size = 0;
  std::string label, program;
  ProcessId process;
  std::int32_t thread = 0;
  int blocker = -1;
  std::string waits, failure, verdict;
  std::uint64_t verdict_number = 0;
  std::uint32_t verdict_code = 0;  ///< an ErrorCode
  bool shrinks = false, failed = false;
  std::uint64_t unmade = 0;
  std::uint32_t unmade_code = 0;
  std::string unmade_why;
  std::int64_t read_ns = 0;           ///< when it was read
  std::vector<Operation> operations;  ///< oldest first

  /// The least number of a collective that is not complete here, begun or not.
  std::uint64_t pending() const;
  /// The collective of that number; null: not begun, or forgotten.
  const Operation* collective(std::uint64_t number) const;
  const Operation* last_complete() const;
  const Operation* message_under_way() const;
};

/// Of all pages on this machine.
std::string folder();
std::string file_of(const ProcessId& process, std::uint64_t communicator, int rank);
/// The file beside a page that says how to reach ranks of other machines; empty: there is none.
std::vector<std::byte> doors_beside(const std::string& page);

/// Ticks of a page: the processor's if `tsc`, otherwise the machine's monotonic clock in ns.
inline std::uint64_t ticks_now(bool tsc) noexcept {
#ifdef __x86_64__
  if (tsc) return __rdtsc();
#endif
  static_cast<void>(tsc);
  return static_cast<std::uint64_t>(tracing::now());
}

/// A rank's own page. Where no file can be made (no room, no rights), others see nothing of it.
class Page {
 public:
  /// Throws std::bad_alloc.
  Page(std::uint64_t communicator, int rank, int size, std::uint64_t first, std::string_view label);
  /// Removes the file.
  ~Page();
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  /// Whether others can see it.
  bool shared() const { return !file_.empty(); }
  /// Puts a file beside it: Elsewhere::written(). It goes with the last page of the communicator on
  /// this machine. Without room there is none.
  void put_doors(std::span<const std::byte> doors) noexcept;

  /// Notes that an operation begins; returns its place. Costs two stores of a line and a clock.
  std::uint64_t begin(std::uint64_t number, const Call& call) noexcept {
    const std::uint64_t place = layout_->begun.load(std::memory_order_relaxed);
    Layout::Entry& entry = layout_->entries[place % remembered];
    entry.number.store(number, std::memory_order_relaxed);
    entry.end.store(0, std::memory_order_relaxed);
    entry.begin.store(ticks_now(tsc_), std::memory_order_relaxed);
    const auto words = std::bit_cast<std::array<std::uint64_t, sizeof(Call) / 8>>(call);
    for (std::size_t i = 0; i < words.size(); ++i)
      entry.call[i].store(words[i], std::memory_order_relaxed);
    layout_->begun.store(place + 1, std::memory_order_release);
    return place;
  }
  void end(std::uint64_t place) noexcept {
    if (layout_->begun.load(std::memory_order_relaxed) - place > remembered) return;  // forgotten
    layout_->entries[place % remembered].end.store(ticks_now(tsc_), std::memory_order_release);
  }
  /// Notes that the rank enters a call that returns when these messages have ended.
  void enters(MessageStep receive, MessageStep send) noexcept {
    layout_->receiving.store(receive.word(), std::memory_order_relaxed);
    layout_->sending.store(send.word(), std::memory_order_relaxed);
  }
  void leaves() noexcept { enters({}, {}); }
  Layout& layout() { return *layout_; }
  const Layout& layout() const { return *layout_; }

 private:
  /// Gives the doors to another page of the communicator, or removes them.
  void hand_doors_on() noexcept;

  Layout* layout_;
  bool tsc_;
  std::string file_;  // empty: none
};

Standing read(const Layout& page);
/// Whether its rank waits for messages.
bool waits(const Layout& page);

/// Another rank's page.
class PeerPage {
 public:
  /// Not valid() where there is no such file, or it is no page of this user's.
  explicit PeerPage(const std::string& file);
  ~PeerPage();
  PeerPage(PeerPage&& other) noexcept;
  PeerPage& operator=(PeerPage&&) = delete;

  bool valid() const { return layout_ != nullptr; }
  Layout& layout() const { return *layout_; }
  Standing read() const { return status::read(*layout_); }

 private:
  Layout* layout_ = nullptr;
};

/// Whether there is such a file. Needs no descriptor.
bool exists(const std::string& file);
/// The files of all pages on this machine that this user may read.
std::vector<std::string> all_files();
/// Removes those of these files whose processes have ended, where no process of the same
/// communicator lives.
void remove_abandoned(const std::vector<std::string>& files = all_files());

}  // namespace baton::status
