#include "comparison.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "../base/raise.hpp"

namespace baton::communicator {
namespace {

constexpr std::size_t record_bytes = 512;
// A record is one byte for its kind, then text, then a zero byte.
constexpr char call_is_good = 'g', call_is_wrong = 'w', ranks_differ = 'd';

std::string text_of(const std::byte* record) {
  return std::string(reinterpret_cast<const char*>(record) + 1);
}
char kind_of(const std::byte* record) { return static_cast<char>(record[0]); }

void put(std::byte* record, char kind, const std::string& text) {
  constexpr std::size_t room = record_bytes - 2;
  record[0] = static_cast<std::byte>(kind);
  const std::size_t length = std::min(text.size(), room);
  std::memcpy(record + 1, text.data(), length);
  record[1 + length] = std::byte{0};
}

/// Everything that must be equal on all ranks, in words.
std::string describe(const Arguments& a, const Choice& choice) {
  std::string text(name(a.collective));
  if (a.collective == Collective::barrier) return text;
  const bool own_view = a.collective == Collective::all_to_all && !a.input_counts.empty();
  const auto& counts = a.input_counts.empty() ? a.output_counts : a.input_counts;
  if (a.counts_at_root) {
    text += " of counts that the root knows";
  } else if (own_view) {
    text += " of uneven counts";
  } else if (!counts.empty()) {
    std::uint64_t hash = 0;
    for (const std::int64_t count : counts)
      hash = hash * 0x9e3779b97f4a7c15ull + static_cast<std::uint64_t>(count);
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
    text += fmt::format(", {}", a.op.kind == OpKind::user ? a.op.label : name(a.op.kind));
    if (a.op.kind == OpKind::user && !a.op.commutative) text += " (not commutative)";
  }
  if (rooted(a.collective)) text += fmt::format(", root {}", a.root);
  if (!choice.algorithm.empty()) text += fmt::format(", algorithm {}", choice.algorithm);
  if (choice.segment) text += fmt::format(", segment {} B", *choice.segment);
  return text;
}

}  // namespace

Comparison::Comparison(const Context& context, Planner& planner, Runs& runs,
                       const Arguments& arguments, const Choice& choice, const Error* wrong)
    : context_(context),
      runs_(runs),
      records_(record_bytes * (context.rank == 0 ? static_cast<std::size_t>(context.size) + 1 : 1)),
      verdict_(record_bytes) {
  put(records_.data(), wrong ? call_is_wrong : call_is_good,
      wrong ? wrong->what() : describe(arguments, choice));
  std::byte* const all = context.rank == 0 ? records_.data() + record_bytes : nullptr;
  std::byte* const gathered[] = {records_.data(), all};
  std::byte* const told[] = {nullptr, verdict_.data()};
  gather_ = runs.take(planner.internal(Collective::gather, "binomial", record_bytes), {}, gathered);
  broadcast_ =
      runs.take(planner.internal(Collective::broadcast, "binomial", record_bytes), {}, told);
}

Comparison::~Comparison() {
  runs_.give_back(gather_);
  runs_.give_back(broadcast_);
}

void Comparison::start(int tag) {
  tag_ = tag;
  gather_.run->start(*context_.transport, {}, tag);
}

bool Comparison::step() {
  if (!telling_) {
    if (!gather_.run->drive()) return false;
    if (context_.rank == 0) judge();
    telling_ = true;
    broadcast_.run->start(*context_.transport, {}, tag_);
  }
  if (!broadcast_.run->drive()) return false;
  conclude();
  return true;
}

void Comparison::abandon() noexcept {
  for (Execution* const execution : {&gather_, &broadcast_}) {
    if (!execution->run) continue;
    execution->run->abandon();
    runs_.give_up(*execution);
  }
}

void Comparison::judge() {
  const auto record = [&](int rank) {
    return records_.data() + (static_cast<std::size_t>(rank) + 1) * record_bytes;
  };
  bool all_wrong = true;
  int wrong = -1, other = -1;  // first rank with a wrong call, first that differs from rank 0
  for (int rank = 0; rank < context_.size; ++rank) {
    const bool good = kind_of(record(rank)) != call_is_wrong;
    if (good) all_wrong = false;
    if (!good && wrong < 0) wrong = rank;
    if (text_of(record(rank)) != text_of(record(0)) && other < 0) other = rank;
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

void Comparison::conclude() const {
  const char kind = kind_of(verdict_.data());
  if (kind == call_is_good) return;
  base::raise(kind == call_is_wrong ? ErrorCode::invalid_argument : ErrorCode::mismatch,
              text_of(verdict_.data()), {.rank = context_.rank});
}

}  // namespace baton::communicator
