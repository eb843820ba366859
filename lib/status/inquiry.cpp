#include "inquiry.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include "baton/error.hpp"

namespace baton::status {
namespace {

/// 0 if there is no such ErrorCode.
std::uint32_t known_code(std::uint32_t code) {
  return code <= static_cast<std::uint32_t>(ErrorCode::device) ? code : 0;
}

constexpr std::uint32_t no_claimant = ~0u;  // who only tells
constexpr std::size_t most_others = 4;      // pages of one process in a finding

/// Whether `claimant` is the first: it writes the page's sentence.
bool claim(Layout& page, std::uint32_t claimant) {
  std::uint32_t none = 0;
  return page.verdict_claim.compare_exchange_strong(none, claimant);
}

/// From the least of all numbers on, operations are given up.
void give_up(Layout& page, std::uint64_t number) {
  std::uint64_t found = page.given_up.load(std::memory_order_relaxed);
  while ((found == 0 || number < found) &&
         !page.given_up.compare_exchange_weak(found, number, std::memory_order_release,
                                              std::memory_order_relaxed)) {
  }
}

/// True for the first caller with this hash.
bool report(Layout& page, std::uint64_t hash) {
  for (std::atomic<std::uint64_t>& reported : page.reported) {
    std::uint64_t found = 0;
    if (reported.compare_exchange_strong(found, hash)) return true;
    if (found == hash) return false;
  }
  return true;
}

/// Writes the sentence on a page, unless it has one that another rank claimed.
void tell(Layout& page, bool claimed, const Inquiry& inquiry) {
  if (claimed) {
    page.verdict.write(inquiry.sentence);
    page.verdict_code.store(inquiry.code, std::memory_order_relaxed);
    page.verdict_number.store(inquiry.number, std::memory_order_release);
  }
  give_up(page, inquiry.number);
}

/// The pages of other communicators on this machine whose ranks wait.
std::vector<Standing> waiting_elsewhere(std::uint64_t communicator) {
  std::vector<Standing> waiting;
  for (const std::string& file : all_files()) {
    const PeerPage page(file);
    if (page.valid() && page.layout().communicator != communicator && waits(page.layout()))
      waiting.push_back(page.read());
  }
  return waiting;
}

}  // namespace

bool act(const Inquiry& inquiry, Layout& page) {
  switch (inquiry.action) {
    case Action::look:
      break;
    case Action::give_up:
      if (page.verdict_number.load(std::memory_order_relaxed) == 0)
        page.verdict_code.store(inquiry.code, std::memory_order_relaxed);
      give_up(page, inquiry.number);
      break;
    case Action::claim: {
      // Asked again, since the first answer was lost.
      const auto claimant = static_cast<std::uint32_t>(inquiry.number) + 1;
      return claim(page, claimant) || page.verdict_claim.load() == claimant;
    }
    case Action::tell:
      tell(page, claim(page, no_claimant), inquiry);
      break;
    case Action::told:
      tell(page, true, inquiry);
      break;
    case Action::leave_out:
      page.left_out.store(static_cast<std::uint32_t>(inquiry.number), std::memory_order_relaxed);
      break;
    case Action::report:
      return report(page, inquiry.number);
  }
  return true;
}

std::vector<Finding> answers(const Inquiry& inquiry) {
  const bool looks = inquiry.action == Action::look;
  const std::vector<Standing> elsewhere =
      looks ? waiting_elsewhere(inquiry.communicator) : std::vector<Standing>{};
  std::vector<Finding> findings;
  for (const Member& member : inquiry.members) {
    Finding& finding = findings.emplace_back();
    Witness& witness = finding.witness;
    const PeerPage page(file_of(member.process, inquiry.communicator, member.rank));
    if (page.valid()) {
      finding.page = true;
      finding.done = act(inquiry, page.layout());
      if (looks) witness.standing = page.read();
    }
    const std::int32_t thread = witness.standing ? witness.standing->thread : 0;
    witness.condition = condition_of(member.process, thread);
    if (!witness.standing || witness.standing->blocker >= 0) continue;
    // Ranks of one process are told apart by their threads.
    for (const Standing& other : elsewhere)
      if (other.process == member.process && other.thread == thread)
        witness.others.push_back(other);
  }
  return findings;
}

namespace {

class Writer {
 public:
  template <class T>
  void value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>);
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void text(std::string_view text) {
    value(static_cast<std::uint32_t>(text.size()));
    const auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void standing(const Standing& s) {
    value(s.communicator);
    value(s.first);
    value(std::int32_t{s.rank});
    value(std::int32_t{s.size});
    value(s.process);
    value(s.thread);
    value(std::int32_t{s.blocker});
    value(s.verdict_number);
    value(s.verdict_code);
    value(std::uint32_t{s.shrinks ? 1u : 0u});
    value(std::uint32_t{s.failed ? 1u : 0u});
    value(s.unmade);
    value(s.unmade_code);
    for (const std::string* const one :
         {&s.label, &s.program, &s.waits, &s.failure, &s.verdict, &s.unmade_why})
      text(*one);
    value(s.read_ns);
    value(static_cast<std::uint32_t>(s.operations.size()));
    for (const Operation& operation : s.operations) {
      value(operation.number);
      value(operation.begin_ns);
      value(operation.end_ns);
      value(operation.call);
    }
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads values as long as there are bytes; then `good()` is false.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <class T>
  T value() {
    T read{};
    if (bytes_.size() < sizeof read) {
      good_ = false;
      return read;
    }
    std::memcpy(&read, bytes_.data(), sizeof read);
    bytes_ = bytes_.subspan(sizeof read);
    return read;
  }
  std::string text(std::size_t most) {
    const auto length = value<std::uint32_t>();
    if (length > most || length > bytes_.size()) {
      good_ = false;
      return {};
    }
    std::string read(reinterpret_cast<const char*>(bytes_.data()), length);
    bytes_ = bytes_.subspan(length);
    std::ranges::replace(read, '\0', '?');
    return read;
  }
  /// A number of things that have so many bytes each at least.
  std::size_t count(std::size_t most, std::size_t bytes_each) {
    const auto number = value<std::uint32_t>();
    if (number > most || number * bytes_each > bytes_.size()) good_ = false;
    return good_ ? number : 0;
  }
  Standing standing() {
    Standing s;
    s.communicator = value<std::uint64_t>();
    s.first = value<std::uint64_t>();
    s.rank = value<std::int32_t>();
    s.size = value<std::int32_t>();
    s.process = value<ProcessId>();
    s.thread = value<std::int32_t>();
    s.blocker = std::max(value<std::int32_t>(), -1);
    s.verdict_number = value<std::uint64_t>();
    s.verdict_code = known_code(value<std::uint32_t>());
    s.shrinks = value<std::uint32_t>() != 0;
    s.failed = value<std::uint32_t>() != 0;
    s.unmade = value<std::uint64_t>();
    s.unmade_code = known_code(value<std::uint32_t>());
    for (std::string* const one :
         {&s.label, &s.program, &s.waits, &s.failure, &s.verdict, &s.unmade_why})
      *one = text(sizeof(Layout));
    const std::int64_t there = bounded(value<std::int64_t>());
    s.read_ns = tracing::now();
    // Each machine's clock has a beginning of its own.
    const auto here = [&](std::int64_t ns) { return s.read_ns - (there - bounded(ns)); };
    for (std::size_t left = count(remembered, operation_bytes); left > 0; --left) {
      Operation& operation = s.operations.emplace_back();
      operation.number = value<std::uint64_t>();
      operation.begin_ns = here(value<std::int64_t>());
      const auto end = value<std::int64_t>();
      operation.end_ns = end == 0 ? 0 : here(end);
      operation.call = call_of(value<std::array<std::uint64_t, sizeof(Call) / 8>>());
    }
    return s;
  }
  bool good() const { return good_; }
  bool ended() const { return good_ && bytes_.empty(); }

 private:
  static constexpr std::size_t operation_bytes = 3 * sizeof(std::uint64_t) + sizeof(Call);
  static std::int64_t bounded(std::int64_t ns) { return std::clamp(ns, -most_ns, most_ns); }

  std::span<const std::byte> bytes_;
  bool good_ = true;
};

constexpr std::size_t most_members = 1u << 16;

}  // namespace

std::vector<std::byte> packed(const Inquiry& inquiry) {
  Writer to;
  to.value(static_cast<std::uint32_t>(inquiry.action));
  to.value(inquiry.code);
  to.value(inquiry.communicator);
  to.value(inquiry.number);
  to.text(inquiry.sentence);
  to.value(static_cast<std::uint32_t>(inquiry.members.size()));
  for (const Member& member : inquiry.members) {
    to.value(member.rank);
    to.value(member.process);
  }
  return to.take();
}

std::optional<Inquiry> inquiry_of(std::span<const std::byte> bytes) {
  Reader from(bytes);
  Inquiry inquiry;
  const auto action = from.value<std::uint32_t>();
  if (action > static_cast<std::uint32_t>(Action::report)) return std::nullopt;
  inquiry.action = static_cast<Action>(action);
  inquiry.code = known_code(from.value<std::uint32_t>());
  inquiry.communicator = from.value<std::uint64_t>();
  inquiry.number = from.value<std::uint64_t>();
  inquiry.sentence = from.text(sizeof(Layout));
  constexpr std::size_t member_bytes = sizeof(std::int32_t) + sizeof(ProcessId);
  for (std::size_t left = from.count(most_members, member_bytes); left > 0; --left) {
    Member& member = inquiry.members.emplace_back();
    member.rank = from.value<std::int32_t>();
    member.process = from.value<ProcessId>();
  }
  return from.ended() ? std::optional(std::move(inquiry)) : std::nullopt;
}

std::vector<std::byte> packed(const Finding& finding) {
  Writer to;
  const Witness& witness = finding.witness;
  to.value(std::uint32_t{finding.page ? 1u : 0u});
  to.value(std::uint32_t{finding.done ? 1u : 0u});
  to.value(static_cast<std::uint32_t>(witness.condition.life));
  to.value(std::int32_t{witness.condition.signal});
  to.value(std::uint32_t{witness.condition.thread_ended ? 1u : 0u});
  to.value(std::uint32_t{witness.standing ? 1u : 0u});
  if (witness.standing) to.standing(*witness.standing);
  const std::size_t others = std::min(witness.others.size(), most_others);
  to.value(static_cast<std::uint32_t>(others));
  for (const Standing& other : std::span(witness.others).first(others)) to.standing(other);
  return to.take();
}

std::optional<Finding> finding_of(std::span<const std::byte> bytes) {
  Reader from(bytes);
  Finding finding;
  Witness& witness = finding.witness;
  finding.page = from.value<std::uint32_t>() != 0;
  finding.done = from.value<std::uint32_t>() != 0;
  const auto life = from.value<std::uint32_t>();
  if (life > static_cast<std::uint32_t>(Life::ended)) return std::nullopt;
  witness.condition.life = static_cast<Life>(life);
  witness.condition.signal = from.value<std::int32_t>();
  witness.condition.thread_ended = from.value<std::uint32_t>() != 0;
  if (from.value<std::uint32_t>() != 0) witness.standing = from.standing();
  for (std::size_t left = from.count(most_others, 1); left > 0 && from.good(); --left)
    witness.others.push_back(from.standing());
  return from.ended() ? std::optional(std::move(finding)) : std::nullopt;
}

}  // namespace baton::status
