#include "pieces.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace baton::transformer {
namespace {

/// Appends pieces, and numbers exchanges.
class PieceWriter {
 public:
  /// A computation that waits for these exchanges, by their numbers; an exchange that there is not
  /// has a number below 0.
  void compute(std::int64_t ns, bool advances = false, const std::vector<int>& waits = {},
               std::vector<int> completes = {}) {
    StepPiece& piece = pieces_.emplace_back();
    piece.ns = ns;
    piece.advances = advances;
    std::ranges::copy_if(waits, std::back_inserter(piece.waits), [](int e) { return e >= 0; });
    piece.completes = std::move(completes);
  }
  /// An exchange behind the last piece; none if there is one rank.
  int start(const StepCollective& call, const StepLayout& layout) {
    if (size_of(layout, call.along) == 1) return -1;
    pieces_.back().starts.push_back(call);
    return exchanges_++;
  }
  std::vector<StepPiece> take() { return std::move(pieces_); }

 private:
  std::vector<StepPiece> pieces_;
  int exchanges_ = 0;
};

/// The exchanges of a model's forward and backward.
struct Exchanges {
  Exchanges(const StepModel& model, const StepLayout& its)
      : layout(its), share(share_of(model, its)), cut(its.sequence_parallel && its.tp > 1) {
    all_reduce = {Collective::all_reduce, Axis::tp, share.activations};
    gather = {Collective::all_gather, Axis::tp, share.boundary};
    scatter = {Collective::reduce_scatter, Axis::tp, share.boundary};
    // Elements for each rank of axis sp, of q, k, v or the result of a rank's heads.
    heads = {Collective::all_to_all, Axis::sp, share.activations / its.tp / its.sp};
  }

  const StepLayout& layout;
  StepShare share;
  bool cut;  ///< along the sequence between regions of axis tp
  StepCollective all_reduce, gather, scatter, heads;

  /// Into a region of axis tp, and out of it; both in either direction.
  int enter(PieceWriter& to, bool backward) const {
    if (cut) return to.start(backward ? scatter : gather, layout);
    return backward ? to.start(all_reduce, layout) : -1;
  }
  int leave(PieceWriter& to, bool backward) const {
    if (cut) return to.start(backward ? gather : scatter, layout);
    return backward ? -1 : to.start(all_reduce, layout);
  }
};

void block_forward(const Exchanges& exchange, const PartTimes& times, PieceWriter& to) {
  using enum BlockForward;
  to.compute(times.at(norm1));
  const int entered = exchange.enter(to, false);
  std::vector<int> exchanged;
  to.compute(times.at(q), false, {entered});
  exchanged.push_back(to.start(exchange.heads, exchange.layout));
  for (const BlockForward work : {k, v}) {
    to.compute(times.at(work));
    exchanged.push_back(to.start(exchange.heads, exchange.layout));
  }
  to.compute(times.at(attention), true, exchanged);
  const int positions = to.start(exchange.heads, exchange.layout);
  to.compute(times.at(o), false, {positions});
  const int left = exchange.leave(to, false);
  to.compute(times.at(norm2), false, {left});
  const int entered_again = exchange.enter(to, false);
  to.compute(times.at(fc1), false, {entered_again});
  to.compute(times.at(fc2));
  const int left_again = exchange.leave(to, false);
  to.compute(times.at(sum), false, {left_again});
}

void block_backward(const Exchanges& exchange, const PartTimes& times, PieceWriter& to) {
  using enum BlockBackward;
  using P = BlockParam;
  to.compute(times.at(fc2_bias), false, {}, {P::fc2_bias});
  const int left = exchange.leave(to, true);
  to.compute(times.at(fc2_input), false, {left});
  to.compute(times.at(fc1_input));
  const int entered = exchange.enter(to, true);
  to.compute(times.at(fc2_weight), true, {}, {P::fc2});
  to.compute(times.at(fc1_weight), true, {}, {P::fc1, P::fc1_bias});
  to.compute(times.at(norm2), false, {entered}, {P::norm2_weight, P::norm2_bias, P::o_bias});
  const int left_again = exchange.leave(to, true);
  to.compute(times.at(o_input), false, {left_again});
  const int heads = to.start(exchange.heads, exchange.layout);
  to.compute(times.at(o_weight), true, {}, {P::o});
  to.compute(times.at(attention), true, {heads});
  int exchanged[3];
  for (int& e : exchanged) e = to.start(exchange.heads, exchange.layout);
  to.compute(times.at(q_input), false, {exchanged[0]});
  to.compute(times.at(k_input), false, {exchanged[1]});
  to.compute(times.at(v_input), false, {exchanged[2]});
  const int entered_again = exchange.enter(to, true);
  to.compute(times.at(q_weight), true, {}, {P::q, P::q_bias});
  to.compute(times.at(k_weight), true, {}, {P::k, P::k_bias});
  to.compute(times.at(v_weight), true, {}, {P::v, P::v_bias});
  to.compute(times.at(norm1), false, {entered_again}, {P::norm1_weight, P::norm1_bias});
}

void block_backward_input(const Exchanges& exchange, const PartTimes& times, PieceWriter& to) {
  PartTimes input = times;
  for (std::size_t i = 0; i < block_backward_count; ++i)
    if (by_weights(static_cast<BlockBackward>(i))) input.block_backward[i] = 0;
  block_backward(exchange, input, to);
}

void block_backward_weights(const PartTimes& times, PieceWriter& to) {
  for (std::size_t i = 0; i < block_backward_count; ++i)
    if (by_weights(static_cast<BlockBackward>(i))) to.compute(times.block_backward[i], true);
  std::vector<int> all(block_param_count);
  for (int p = 0; p < block_param_count; ++p) all[static_cast<std::size_t>(p)] = p;
  to.compute(0, true, {}, std::move(all));
}

void head_forward(const Exchanges& exchange, const PartTimes& times, PieceWriter& to) {
  to.compute(times.head_norm);
  const int entered = exchange.enter(to, false);
  to.compute(times.head_forward, false, {entered});
  // The largest logit of each position; the sum of exponentials, and the target's logit.
  const std::int64_t positions = exchange.share.samples * exchange.share.positions;
  const int most = to.start({Collective::all_reduce, Axis::tp, positions}, exchange.layout);
  to.compute(0, false, {most});
  const int sums = to.start({Collective::all_reduce, Axis::tp, 2 * positions}, exchange.layout);
  to.compute(0, false, {sums});
}

}  // namespace

std::vector<StepPiece> forward_pieces(const StepModel& model, const StepLayout& layout,
                                      StepUnit::Kind kind, const PartTimes& times) {
  const Exchanges exchange(model, layout);
  PieceWriter pieces;
  switch (kind) {
    case StepUnit::Kind::embeddings: {
      pieces.compute(times.embedding_forward);
      const int left = exchange.leave(pieces, false);
      pieces.compute(0, false, {left});
      break;
    }
    case StepUnit::Kind::block:
      block_forward(exchange, times, pieces);
      break;
    case StepUnit::Kind::head:
      head_forward(exchange, times, pieces);
      break;
  }
  return pieces.take();
}

std::vector<StepPiece> backward_pieces(const StepModel& model, const StepLayout& layout,
                                       StepUnit::Kind kind, const PartTimes& times,
                                       BackwardPart part, bool has_embeddings) {
  const Exchanges exchange(model, layout);
  const bool input = part != BackwardPart::weights, weights = part != BackwardPart::input;
  PieceWriter pieces;
  switch (kind) {
    case StepUnit::Kind::embeddings: {
      // In one stage, the final norm's are before these.
      const int positions = has_embeddings && layout.stages() == 1 ? 2 : 0;
      if (!input) {
        pieces.compute(0, false, {}, {positions, positions + 1});
        break;
      }
      pieces.compute(times.embedding_backward / 2, false, {},
                     weights ? std::vector<int>{positions} : std::vector<int>{});
      const int left = exchange.leave(pieces, true);
      pieces.compute(times.embedding_backward - times.embedding_backward / 2, false, {left},
                     weights ? std::vector<int>{positions + 1} : std::vector<int>{});
      break;
    }
    case StepUnit::Kind::block:
      if (part == BackwardPart::all) block_backward(exchange, times, pieces);
      if (part == BackwardPart::input) block_backward_input(exchange, times, pieces);
      if (part == BackwardPart::weights) block_backward_weights(times, pieces);
      break;
    case StepUnit::Kind::head: {
      // The table of one stage is complete behind the embeddings.
      const std::vector<int> table = has_embeddings ? std::vector<int>{} : std::vector<int>{2};
      if (!input) {
        pieces.compute(times.head_weight, true, {}, {0, 1});
        if (!table.empty()) pieces.compute(0, true, {}, table);
        break;
      }
      pieces.compute(times.head_input);
      const int entered = exchange.enter(pieces, true);
      if (weights) pieces.compute(times.head_weight, true, {}, table);
      pieces.compute(times.head_norm_backward, false, {entered},
                     weights ? std::vector<int>{0, 1} : std::vector<int>{});
      break;
    }
  }
  return pieces.take();
}

std::vector<StepPiece> joined(std::vector<StepPiece> pieces) {
  std::vector<StepPiece> all;
  for (StepPiece& piece : pieces) {
    const bool joins =
        !all.empty() && all.back().starts.empty() && all.back().completes.empty() &&
        piece.waits.empty() &&
        (all.back().advances == piece.advances || all.back().ns == 0 || piece.ns == 0);
    if (!joins) {
      all.push_back(std::move(piece));
      continue;
    }
    StepPiece& last = all.back();
    if (last.ns == 0) last.advances = piece.advances;
    last.ns += piece.ns;
    last.starts = std::move(piece.starts);
    last.completes = std::move(piece.completes);
  }
  return all;
}

}  // namespace baton::transformer
