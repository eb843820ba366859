#include "diagnosis.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

namespace baton::status {
namespace {

constexpr std::size_t most_named = 8;  // ranks, one by one
constexpr int more_looks = 3;
constexpr std::chrono::milliseconds between_looks{50};

std::string ago(const Standing& s, std::int64_t ns) {
  return fmt::format("{:.1f} s",
                     static_cast<double>(std::max<std::int64_t>(s.read_ns - ns, 0)) / 1e9);
}

std::string numbered(const Operation& operation) {
  return operation.number == 0 ? name_of(operation.call)
                               : fmt::format("{} #{}", name_of(operation.call), operation.number);
}

const Operation* under_way(const Standing& s) {
  const auto found = std::ranges::find_if(s.operations, &Operation::under_way);
  return found == s.operations.end() ? nullptr : &*found;
}

/// What a rank does instead, and whether it lives.
std::string alibi(const Witness& witness) {
  std::vector<std::string> parts;
  if (const auto& s = witness.standing) {
    const Operation* const last = s->last_complete();
    parts.push_back(
        last ? fmt::format("last: {}, finished {} ago", numbered(*last), ago(*s, last->end_ns))
             : std::string("it has finished nothing before"));
    const Operation* const now = under_way(*s);
    if (now && witness.condition.life != Life::ended)
      parts.push_back(fmt::format("it has been in {} for {}{}", numbered(*now),
                                  ago(*s, now->begin_ns),
                                  s->waits.empty() ? "" : ", where it " + s->waits));
  }
  for (const Standing& other : witness.others)
    if (const Operation* const now = under_way(other))
      parts.push_back(fmt::format("it has been in {} of communicator '{}' for {}{}", numbered(*now),
                                  other.label, ago(other, now->begin_ns),
                                  other.waits.empty() ? "" : ", where it " + other.waits));
  parts.push_back(describe(witness.condition));
  return fmt::format("{}", fmt::join(parts, "; "));
}

/// "ranks 0, 1, 3".
std::string listed(const std::vector<int>& ranks) {
  const std::size_t shown = std::min(ranks.size(), most_named);
  std::string text = fmt::format(
      "{} {}", ranks.size() == 1 ? "rank" : "ranks",
      fmt::join(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < ranks.size()) text += fmt::format(" and {} more", ranks.size() - shown);
  return text;
}

std::string joined(const std::vector<std::string>& all) {
  const std::size_t shown = std::min(all.size(), most_named);
  std::string text = fmt::format(
      "{}", fmt::join(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(shown), "; "));
  if (shown < all.size()) text += fmt::format("; and {} ranks more", all.size() - shown);
  return text;
}

/// Ranks by the call that they made at one number. More than one: they disagree.
std::vector<std::pair<Call, std::vector<int>>> calls_at(std::uint64_t number,
                                                        std::span<const Witness> ranks) {
  std::vector<std::pair<Call, std::vector<int>>> calls;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const Operation* const own =
        ranks[r].standing ? ranks[r].standing->collective(number) : nullptr;
    if (!own) continue;
    auto found = std::ranges::find(calls, own->call, &std::pair<Call, std::vector<int>>::first);
    if (found == calls.end()) found = calls.insert(calls.end(), {own->call, {}});
    found->second.push_back(static_cast<int>(r));
  }
  return calls;
}

/// Ranks that wait for each other in a circle; empty: none.
std::vector<int> circle(std::span<const Witness> ranks) {
  const auto next = [&](int rank) {
    const auto& s = ranks[static_cast<std::size_t>(rank)].standing;
    return s && s->blocker < static_cast<int>(ranks.size()) ? s->blocker : -1;
  };
  for (int from = 0; from < static_cast<int>(ranks.size()); ++from) {
    std::vector<int> path;
    for (int rank = from; rank >= 0 && path.size() <= ranks.size(); rank = next(rank)) {
      if (!path.empty() && rank == from) return path;
      path.push_back(rank);
    }
  }
  return {};
}

/// A rank that had a page and has removed it.
bool has_left(const Witness& witness) {
  const Life life = witness.condition.life;
  return !witness.standing && witness.shown &&
         (life == Life::runs || life == Life::sleeps || life == Life::stopped);
}

/// It could go on, and does not show that it waits in the collective.
bool does_not_wait(const Witness& witness, std::uint64_t number) {
  const Life life = witness.condition.life;
  if (!witness.standing || !witness.standing->failure.empty() || life == Life::ended ||
      life == Life::stopped || witness.condition.thread_ended)
    return false;
  const Operation* const own = witness.standing->collective(number);
  return own && own->under_way() && witness.standing->blocker < 0;
}

/// Why a rank is at fault, if it is.
std::string fault(int rank, const Witness& witness, std::uint64_t number) {
  const std::string who = fmt::format("rank {}", rank);
  const auto& s = witness.standing;
  const Life life = witness.condition.life;
  if (has_left(witness))
    return fmt::format("{} has left the communicator ({})", who, describe(witness.condition));
  if (!s) {
    const char* const remark = witness.shown ? "" : ", it has no status page";
    return fmt::format("{}: {}{}", who, describe(witness.condition), remark);
  }
  if (!s->failure.empty()) return fmt::format("{} has failed: \"{}\"", who, s->failure);
  const Operation* const entered = s->collective(number);
  if (!entered && s->pending() <= number)
    return fmt::format("{} has not entered it ({})", who, alibi(witness));
  if (number == 0) return fmt::format("{}: {}", who, describe(witness.condition));
  if (life == Life::ended || life == Life::stopped || witness.condition.thread_ended)
    return fmt::format("{} {}: {}", who,
                       entered && entered->under_way() ? "is in it" : "has gone on",
                       describe(witness.condition));
  if (does_not_wait(witness, number))
    return fmt::format("{} began it {} ago and does not wait in it ({})", who,
                       ago(*s, entered->begin_ns), describe(witness.condition));
  return {};
}

/// The calls at one number, if they differ.
std::string disagreement(std::uint64_t number, std::span<const Witness> ranks) {
  const auto calls = calls_at(number, ranks);
  if (calls.size() < 2) return {};
  std::vector<std::string> sides;
  for (const auto& [call, callers] : calls)
    sides.push_back(fmt::format("{} on {}", describe(call), listed(callers)));
  return fmt::format("ranks disagree about it: {}", joined(sides));
}

/// A failure that a rank found. Others may come yet, so those that have not are no cause.
std::string failure_of(const Complaint& complaint, std::span<const Witness> ranks) {
  std::vector<std::string> causes;
  if (std::string cause = disagreement(complaint.number, ranks); !cause.empty())
    causes.push_back(std::move(cause));
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const Life life = ranks[r].condition.life;
    if (has_left(ranks[r]) || life == Life::ended || life == Life::refuses)
      causes.push_back(fault(static_cast<int>(r), ranks[r], complaint.number));
  }
  causes.push_back(fmt::format("rank {} found: {}", complaint.rank, complaint.failure));
  const std::string what = complaint.number == 0
                               ? complaint.name
                               : fmt::format("{} #{}", complaint.name, complaint.number);
  return fmt::format("{} of communicator '{}' failed: {}", what, complaint.label, joined(causes));
}

std::string cause_of_message(const Complaint& complaint, std::span<const Witness> ranks) {
  const int peer = complaint.peer;
  if (peer < 0 || static_cast<std::size_t>(peer) >= ranks.size()) return "nobody has answered it";
  const Witness& other = ranks[static_cast<std::size_t>(peer)];
  const auto& s = other.standing;
  if (!s) return fault(peer, other, 0);
  if (const std::string& why = s->failure.empty() && s->failed ? s->verdict : s->failure;
      !why.empty())
    return fmt::format("rank {} has failed: \"{}\"", peer, why);
  return fmt::format("rank {} has not answered it ({})", peer, alibi(other));
}

}  // namespace

std::uint64_t first_pending(std::span<const Witness> ranks) {
  std::uint64_t least = 0;
  for (const Witness& witness : ranks)
    if (witness.standing && (least == 0 || witness.standing->pending() < least))
      least = witness.standing->pending();
  return least;
}

std::vector<Witness> look_closely(const std::function<std::vector<Witness>()>& look) {
  for (int left = more_looks;; --left) {
    std::vector<Witness> ranks = look();
    const std::uint64_t number = first_pending(ranks);
    if (left == 0 || std::ranges::none_of(ranks, [&](const Witness& witness) {
          return does_not_wait(witness, number);
        }))
      return ranks;
    std::this_thread::sleep_for(between_looks);
  }
}

std::string diagnosis(const Complaint& complaint, std::span<const Witness> ranks) {
  if (!complaint.failure.empty()) return failure_of(complaint, ranks);
  const bool message = complaint.number == 0;
  const std::uint64_t first = first_pending(ranks);
  const std::uint64_t number = message      ? 0
                               : first == 0 ? complaint.number
                                            : std::min(complaint.number, first);
  const auto calls =
      message ? std::vector<std::pair<Call, std::vector<int>>>{} : calls_at(number, ranks);
  const auto usual =
      std::ranges::max_element(calls, {}, [](const auto& one) { return one.second.size(); });
  const std::string what = calls.empty() ? complaint.name : name_of(usual->first);

  std::vector<std::string> causes;
  if (message) {
    causes.push_back(cause_of_message(complaint, ranks));
  } else {
    for (std::size_t r = 0; r < ranks.size(); ++r)
      if (std::string cause = fault(static_cast<int>(r), ranks[r], number); !cause.empty())
        causes.push_back(std::move(cause));
    if (std::string cause = disagreement(number, ranks); !cause.empty())
      causes.insert(causes.begin(), std::move(cause));
  }
  std::vector<std::string> waiting;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const auto& s = ranks[r].standing;
    const bool asks = message && static_cast<int>(r) == complaint.rank;
    const Operation* const own = s ? s->collective(number) : nullptr;
    if (s && s->blocker >= 0 && (asks || (own && own->under_way())))
      waiting.push_back(fmt::format("rank {} {}", r, s->waits));
  }
  if (causes.empty()) {
    const std::vector<int> in_turn = circle(ranks);
    causes.push_back(in_turn.empty()
                         ? std::string("all ranks have entered it")
                         : fmt::format("{} wait for each other in a circle", listed(in_turn)));
  }
  return fmt::format("{} of communicator '{}' cannot complete (no progress for {:.3g} s): {}{}{}",
                     message ? what : fmt::format("{} #{}", what, number), complaint.label,
                     complaint.seconds, joined(causes), waiting.empty() ? "" : "; ",
                     joined(waiting));
}

}  // namespace baton::status
