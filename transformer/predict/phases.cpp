#include <algorithm>
#include <cmath>

#include "program.hpp"

namespace baton::transformer {
namespace {

/// A part of a block, with the exchanges before and after it.
struct BlockPiece {
  double operations = 0;
  std::vector<StepExchange> before, after;
};

/// Splits `ns` by operations, so that the parts add up.
std::vector<StepPhase> timed(const std::vector<BlockPiece>& pieces, std::int64_t ns) {
  double whole = 0, done = 0;
  for (const BlockPiece& piece : pieces) whole += piece.operations;
  std::vector<StepPhase> phases(1);
  std::int64_t spent = 0;
  const auto add = [&](const std::vector<StepExchange>& exchanges) {
    if (exchanges.empty()) return;
    auto& after = phases.back().after;
    after.insert(after.end(), exchanges.begin(), exchanges.end());
  };
  for (const BlockPiece& piece : pieces) {
    add(piece.before);
    if (!phases.back().after.empty()) phases.emplace_back();
    done += piece.operations;
    const std::int64_t until = std::llround(static_cast<double>(ns) * done / whole);
    phases.back().ns += until - spent;
    spent = until;
    add(piece.after);
  }
  return phases;
}

}  // namespace

std::vector<StepPhase> block_phases(const StepModel& model, const StepLayout& layout, bool backward,
                                    std::int64_t ns) {
  const StepShare share = share_of(model, layout);
  const BlockOperations operations = block_operations(model, layout);
  using Exchanges = std::vector<StepExchange>;
  Exchanges enter, leave, to_heads, to_positions;
  const bool tp = layout.tp > 1, cut = layout.sequence_parallel && tp;
  const StepExchange all_reduce{Collective::all_reduce, Along::tp, share.activations};
  const StepExchange gather{Collective::all_gather, Along::tp, share.boundary};
  const StepExchange scatter{Collective::reduce_scatter, Along::tp, share.boundary};
  if (cut) {
    enter = {backward ? scatter : gather};
    leave = {backward ? gather : scatter};
  } else if (tp) {
    (backward ? enter : leave) = {all_reduce};
  }
  if (layout.sp > 1) {
    // Elements for each rank of axis sp, of q, k, v or the result of a rank's heads.
    const std::int64_t count = share.activations / layout.tp / layout.sp;
    to_heads = {{Collective::all_to_all, Along::sp, count, 3}};
    to_positions = {{Collective::all_to_all, Along::sp, count, 1}};
  }
  std::vector<BlockPiece> pieces;
  if (backward) {
    pieces = {{operations.feed_forward, leave, enter},
              {operations.projection, leave, to_positions},
              {operations.attention, {}, to_heads},
              {operations.qkv, {}, enter}};
  } else {
    pieces = {{operations.qkv, enter, to_heads},
              {operations.attention, {}, to_positions},
              {operations.projection, {}, leave},
              {operations.feed_forward, enter, leave}};
  }
  return timed(pieces, ns);
}

}  // namespace baton::transformer
