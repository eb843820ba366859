#include "comparison.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "../base/hash.hpp"
#include "../base/raise.hpp"

namespace baton::communicator {
namespace {

constexpr std::size_t record_bytes = 512;
// A record is a hash of everything that must be equal, one byte for its kind, then text, as much as
// there is room for, then a zero byte.
constexpr std::size_t hash_bytes = sizeof(std::uint64_t);
constexpr char call_is_good = 'g', call_is_wrong = 'w', ranks_differ = 'd';

std::string text_of(const std::byte* record) {
  return std::string(reinterpret_cast<const char*>(record) + hash_bytes + 1);
}
char kind_of(const std::byte* record) { return static_cast<char>(record[hash_bytes]); }
std::uint64_t hash_of(const std::byte* record) {
  std::uint64_t hash = 0;
  std::memcpy(&hash, record, hash_bytes);
  return hash;
}

void put(std::byte* record, char kind, const std::string& text, std::uint64_t hash) {
  constexpr std::size_t room = record_bytes - hash_bytes - 2;
  std::memcpy(record, &hash, hash_bytes);
  record[hash_bytes] = static_cast<std::byte>(kind);
  const std::size_t length = std::min(text.size(), room);
  std::memcpy(record + hash_bytes + 1, text.data(), length);
  record[hash_bytes + 1 + length] = std::byte{0};
}
void put(std::byte* record, char kind, const std::string& text) {
  put(record, kind, text, base::hash(text));
}

/// Whether each rank has counts that others do not know.
bool has_own_view(const Arguments& a) {
  return a.counts_at_root || (a.collective == Collective::all_to_all && !a.input_counts.empty());
}

/// Everything that must be equal on all ranks, in words. `label`: of a user's op.
std::string describe(const Arguments& a, const Choice& choice, std::string_view label) {
  std::string text(name(a.collective));
  if (a.collective == Collective::barrier) return text;
  const auto& counts = a.input_counts.empty() ? a.output_counts : a.input_counts;
  if (a.counts_at_root) {
    text += " of counts that the root knows";
  } else if (has_own_view(a)) {
    text += " of uneven counts";
  } else if (!counts.empty()) {
    const std::uint64_t hash = base::hash(
        {reinterpret_cast<const char*>(counts.data()), counts.size() * sizeof counts[0]});
    text += fmt::format(" of counts {}{} (#{:x})",
                        fmt::join(counts.first(std::min<std::size_t>(8, counts.size())), ", "),
                        counts.size() > 8 ? ", …" : "", hash);
  } else {
    text += fmt::format(" of {}", a.count);
  }
  text += fmt::format(" {}", name(a.type));
  if (a.type == Datatype::user) text += fmt::format(" of {} B", a.element_bytes);
  if (a.input_rows > 1 || a.output_rows > 1) {
    text += fmt::format(", blocks of {} and {} rows", a.input_rows, a.output_rows);
  }
  if (reducing(a.collective)) {
    text += fmt::format(", {}", a.op.kind == OpKind::user ? label : name(a.op.kind));
    if (a.op.kind == OpKind::user && !a.op.commutative) text += " (not commutative)";
  }
  if (rooted(a.collective)) text += fmt::format(", root {}", a.root);
  if (!choice.algorithm.empty()) text += fmt::format(", algorithm {}", choice.algorithm);
  if (choice.segment) text += fmt::format(", segment {} B", *choice.segment);
  return text;
}

std::string shortened(std::string_view label) {
  constexpr std::size_t most = 100;
  return std::string(label.substr(0, most)) + (label.size() <= most ? "" : "…");
}

}  // namespace

Comparison::Comparison(const Context& context, Planner& planner, Runs& runs,
                       const Arguments& arguments, const Choice& choice, const Error* wrong)
    : context_(context),
      runs_(runs),
      records_(record_bytes * (context.rank == 0 ? static_cast<std::size_t>(context.size) + 1 : 1)),
      verdict_(record_bytes) {
  if (wrong) {
    put(records_.data(), call_is_wrong, wrong->what());
  } else {
    // A label may be long: what stands behind it must still be read.
    const std::string_view label = arguments.op.label;
    put(records_.data(), call_is_good, describe(arguments, choice, shortened(label)),
        base::hash(describe(arguments, choice, label)));
    if (has_own_view(arguments)) find_pairs(arguments);
  }
  std::byte* const all = context.rank == 0 ? records_.data() + record_bytes : nullptr;
  std::byte* const gathered[] = {records_.data(), all};
  std::byte* const told[] = {nullptr, verdict_.data()};
  gather_ = runs.take(planner.internal(Collective::gather, "binomial", record_bytes), {}, gathered);
  broadcast_ =
      runs.take(planner.internal(Collective::broadcast, "binomial", record_bytes), {}, told);
  if (sends_.empty()) return;
  announced_.resize(sends_.size());
  std::byte* const exchanged[] = {reinterpret_cast<std::byte*>(sends_.data()),
                                  reinterpret_cast<std::byte*>(announced_.data())};
  exchange_ =
      runs.take(planner.internal(Collective::all_to_all, "bruck", sizeof sends_[0]), {}, exchanged);
}

Comparison::~Comparison() {
  for (Execution* const execution : {&gather_, &broadcast_, &exchange_})
    if (execution->run) runs_.give_back(*execution);
}

void Comparison::find_pairs(const Arguments& a) {
  const auto size = static_cast<std::size_t>(context_.size),
             root = static_cast<std::size_t>(a.root);
  sends_.assign(size, 0);
  expects_.assign(size, 0);
  if (!a.input_counts.empty()) sends_.assign(a.input_counts.begin(), a.input_counts.end());
  if (!a.output_counts.empty()) expects_.assign(a.output_counts.begin(), a.output_counts.end());
  if (context_.rank == a.root || !a.counts_at_root) return;
  if (a.collective == Collective::gather) {
    sends_[root] = a.input_sizes[0];
  } else {
    expects_[root] = a.output_sizes[0];
  }
}

void Comparison::start(int tag) {
  tag_ = tag;
  gather_.run->start(*context_.transport, {}, tag);
}

bool Comparison::step() {
  for (;;) {
    if (!part().run->drive()) return false;
    switch (stage_ % 3) {
      case gathering:
        if (context_.rank == 0) judge();
        break;
      case telling:
        conclude();
        if (sends_.empty() || stage_ > telling) return true;
        break;
      default:
        compare_pairs();
    }
    ++stage_;
    part().run->start(*context_.transport, {}, tag_);
  }
}

void Comparison::compare_pairs() {
  put(records_.data(), call_is_good, "");
  for (int peer = 0; peer < context_.size; ++peer) {
    const auto p = static_cast<std::size_t>(peer);
    if (peer == context_.rank || announced_[p] == expects_[p]) continue;
    put(records_.data(), ranks_differ,
        fmt::format(
            "expected equal counts on both sides, found rank {} to send {} elements to rank "
            "{}, which expects {}",
            peer, announced_[p], context_.rank, expects_[p]));
    return;
  }
}

void Comparison::abandon() noexcept {
  for (Execution* const execution : {&gather_, &broadcast_, &exchange_})
    if (execution->run) execution->run->abandon();
}

void Comparison::judge() {
  const auto record = [&](int rank) {
    return records_.data() + (static_cast<std::size_t>(rank) + 1) * record_bytes;
  };
  for (int rank = 0; rank < context_.size; ++rank)
    if (kind_of(record(rank)) == ranks_differ)
      return put(verdict_.data(), ranks_differ, text_of(record(rank)));
  bool all_wrong = true;
  int wrong = -1, other = -1;  // first rank with a wrong call, first that differs from rank 0
  for (int rank = 0; rank < context_.size; ++rank) {
    const bool good = kind_of(record(rank)) != call_is_wrong;
    if (good) all_wrong = false;
    if (!good && wrong < 0) wrong = rank;
    if (hash_of(record(rank)) != hash_of(record(0)) && other < 0) other = rank;
  }
  const bool same = other < 0;
  if (all_wrong && same) {
    put(verdict_.data(), call_is_wrong, text_of(record(0)));
  } else if (wrong >= 0) {
    put(verdict_.data(), ranks_differ,
        fmt::format("on rank {}: {}", wrong, text_of(record(wrong))));
  } else if (!same) {
    put(verdict_.data(), ranks_differ,
        fmt::format("expected the same call on all ranks, found {} on rank 0 and {} on rank {}",
                    text_of(record(0)), text_of(record(other)), other));
  } else {
    put(verdict_.data(), call_is_good, "");
  }
}

void Comparison::conclude() {
  const char kind = kind_of(verdict_.data());
  if (kind == call_is_good) return;
  refused_ = true;
  base::raise(kind == call_is_wrong ? ErrorCode::invalid_argument : ErrorCode::mismatch,
              text_of(verdict_.data()), {.rank = context_.rank});
}

}  // namespace baton::communicator
