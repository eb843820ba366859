#pragma once
/// The computations of a micro-batch on one rank, with the exchanges between them.

#include <cstdint>
#include <string_view>
#include <vector>

#include "collectives.hpp"
#include "layout.hpp"
#include "times.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// A piece of computation. Exchanges are numbered within a unit's forward or backward, in the order
/// in which they start.
struct StepPiece {
  std::int64_t ns = 0;
  bool advances = false;               ///< whether messages advance meanwhile (Context::meanwhile)
  std::vector<int> waits;              ///< for the results of these exchanges, before it begins
  std::vector<StepCollective> starts;  ///< behind it; the rank goes on at once
  std::vector<int> completes;          ///< gradients, by their places in StepUnit::params
};

/// Which part of a backward: all, or without the gradients by weights, or these alone.
enum class BackwardPart : std::uint8_t { all, input, weights };

/// Forward of a unit on every rank of the layout, for a micro-batch; pieces take `times` together.
/// Of the head, from its norm to the loss. The layout can train the model (refusal()).
std::vector<StepPiece> forward_pieces(const StepModel& model, const StepLayout& layout,
                                      StepUnit::Kind kind, const PartTimes& times);
/// Backward of a unit, likewise. `has_embeddings`: the stage of the head has them, too, so its
/// table is complete behind theirs.
std::vector<StepPiece> backward_pieces(const StepModel& model, const StepLayout& layout,
                                       StepUnit::Kind kind, const PartTimes& times,
                                       BackwardPart part = BackwardPart::all,
                                       bool has_embeddings = true);

/// Joins pieces where nothing happens between them.
std::vector<StepPiece> joined(std::vector<StepPiece> pieces);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
