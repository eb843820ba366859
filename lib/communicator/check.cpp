#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "state.hpp"

namespace baton {
namespace {

// A record is one byte for what it is, and text, ended by a zero byte.
constexpr char call_is_good = 'g', call_is_wrong = 'w', ranks_differ = 'd';

std::string text_of(const std::byte* record) {
  return std::string(reinterpret_cast<const char*>(record) + 1);
}
char kind_of(const std::byte* record) { return static_cast<char>(record[0]); }

void put(std::byte* record, char kind, const std::string& text) {
  constexpr std::size_t room = CheckExchange::record_bytes - 2;
  record[0] = static_cast<std::byte>(kind);
  const std::size_t length = std::min(text.size(), room);
  std::memcpy(record + 1, text.data(), length);
  record[1 + length] = std::byte{0};
}

/// All that must be equal on all ranks, in words.
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
  if (choice.segment >= 0) text += fmt::format(", segment {} B", choice.segment);
  return text;
}

}  // namespace

void CheckExchange::write(const std::string& text) {
  put(records.data(), failed ? call_is_wrong : call_is_good, text);
}

void CheckExchange::judge(int size) {
  const auto record = [&](int rank) {
    return records.data() + (static_cast<std::size_t>(rank) + 1) * record_bytes;
  };
  bool all_wrong = true, same = true;
  int wrong = -1, other = -1;
  for (int rank = 0; rank < size; ++rank) {
    if (kind_of(record(rank)) == call_is_wrong) {
      if (wrong < 0) wrong = rank;
    } else {
      all_wrong = false;
    }
    if (text_of(record(rank)) != text_of(record(0)) && other < 0) other = rank;
  }
  same = other < 0;
  if (all_wrong && same) {
    put(verdict.data(), call_is_wrong, text_of(record(0)));
  } else if (wrong >= 0) {
    put(verdict.data(), ranks_differ, fmt::format("on rank {}: {}", wrong, text_of(record(wrong))));
  } else if (!same) {
    put(verdict.data(), ranks_differ,
        fmt::format("expected the same call on all ranks, found {} on rank 0 and {} on rank {}",
                    text_of(record(0)), text_of(record(other)), other));
  } else {
    put(verdict.data(), call_is_good, "");
  }
}

void CheckExchange::conclude(int rank) const {
  const char kind = kind_of(verdict.data());
  if (kind == call_is_good) return;
  Error error(kind == call_is_wrong ? ErrorCode::invalid_argument : ErrorCode::mismatch,
              text_of(verdict.data()));
  error.rank = rank;
  throw error;
}

void Communicator::State::prepare_check(Operation& operation, const Choice& choice,
                                        const Error* local) {
  auto check = std::make_unique<CheckExchange>();
  const std::size_t bytes = CheckExchange::record_bytes;
  check->failed = local != nullptr;
  check->records.resize(bytes * (rank == 0 ? static_cast<std::size_t>(size) + 1 : 1));
  check->verdict.resize(bytes);
  check->write(local ? local->what() : describe(arguments, choice));
  std::byte* gathered = rank == 0 ? check->records.data() + bytes : nullptr;
  std::byte* const gather_bases[] = {check->records.data(), gathered};
  std::byte* const broadcast_bases[] = {nullptr, check->verdict.data()};
  check->gather =
      internal(Collective::gather, "binomial", static_cast<std::int64_t>(bytes), gather_bases);
  check->broadcast = internal(Collective::broadcast, "binomial", static_cast<std::int64_t>(bytes),
                              broadcast_bases);
  operation.check() = std::move(check);
}

}  // namespace baton
