#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "baton/schedule/step.hpp"
#include "script.hpp"

namespace baton::execute {

/// Where an operand begins: bytes from one of a run's base addresses.
struct Place {
  std::uint32_t base = 0;
  std::int64_t offset = 0;
  bool operator==(const Place&) const = default;
};

/// Base addresses of a run: scratch, slots, then the tensors of the input, then those of the
/// output.
enum : std::uint32_t { scratch_base = 0, slot_base = 1, first_tensor_base = 2 };

/// `rows` blocks of `block` elements; operand k's blocks are `stride[k]` bytes apart.
struct Piece {
  Place at[3];
  std::int64_t stride[3] = {0, 0, 0};
  std::int64_t block = 0;
  std::int64_t rows = 1;
};

/// The schedule as it is run on tensors of these sizes (elements, laid end to end): messages
/// contiguous, regions cut where tensors begin.
Schedule bound(const Schedule& schedule, std::span<const std::int64_t> inputs,
               std::span<const std::int64_t> outputs);

/// A schedule bound to element size and buffers' shapes, in the form that a run needs: addresses as
/// base and offset, dependents instead of dependencies, messages by channel. Immutable.
///
/// A *channel* is the messages of one lane, peer and direction, in program order.
class Plan {
 public:
  static constexpr std::uint32_t no_fold = ~std::uint32_t{0};
  struct Item {
    StepKind kind;
    std::uint8_t lane;
    std::int32_t peer;
    std::uint32_t channel;  ///< of a message
    std::uint32_t waits;    ///< steps that must be complete first
    std::uint32_t first_dependent;
    std::uint32_t dependent_count;
    std::uint32_t first_piece;  ///< in pieces(); a message has one, of one row
    std::uint32_t piece_count;
    std::int64_t bytes;  ///< of a message
    std::uint32_t fold;  ///< of a receive: the step that folds it whole, or no_fold

    bool folds() const { return fold != no_fold; }
    bool local() const { return kind != StepKind::send && kind != StepKind::recv; }
  };
  struct Channel {
    std::uint32_t first;  ///< in messages()
    std::uint32_t last;
  };

  /// `inputs` and `outputs` are the tensors' sizes in elements, laid end to end. Throws
  /// Error(invalid_argument) where the schedule does not fit them or leaves its own bounds.
  Plan(const Schedule& schedule, std::size_t element_bytes, std::span<const std::int64_t> inputs,
       std::span<const std::int64_t> outputs);

  const Schedule::Header& header() const { return header_; }
  /// The schedule as it is run: messages contiguous, regions cut where tensors begin and operands'
  /// pieces end.
  Schedule schedule() const;
  std::size_t element_bytes() const { return element_bytes_; }
  std::size_t scratch_bytes() const {
    return static_cast<std::size_t>(header_.scratch) * element_bytes_;
  }
  std::size_t slot_bytes() const {
    return static_cast<std::size_t>(header_.slots) * element_bytes_;
  }
  std::uint32_t bases() const { return bases_; }
  std::uint32_t lanes() const { return lanes_; }

  std::span<const Item> items() const { return items_; }
  /// The step's label.
  std::int32_t round(std::uint32_t step) const { return rounds_[step]; }
  std::span<const Piece> pieces() const { return pieces_; }
  std::span<const Piece> pieces_of(const Item& item) const {
    return pieces().subspan(item.first_piece, item.piece_count);
  }
  std::span<const std::uint32_t> dependents_of(std::uint32_t step) const {
    return std::span(dependents_)
        .subspan(items_[step].first_dependent, items_[step].dependent_count);
  }
  std::span<const Channel> channels() const { return channels_; }
  std::span<const std::uint32_t> messages() const { return messages_; }
  /// Steps that are not messages and wait for nothing.
  std::span<const std::uint32_t> initial() const { return initial_; }
  /// The way through a small plan; empty for others.
  std::span<const ScriptLine> script() const { return script_; }
  /// Messages of the channel that has most.
  std::uint32_t longest_channel() const;

 private:
  std::uint32_t fold_of(std::uint32_t step) const;
  Region region(const Piece& piece, int operand) const;
  void append_pieces(const Schedule& schedule, const Step& step,
                     std::span<const std::int64_t> ends);

  Schedule::Header header_;
  std::size_t element_bytes_;
  std::uint32_t bases_ = 0;
  std::uint32_t lanes_ = 1;
  std::uint32_t first_output_ = 0;
  std::vector<std::int64_t> begins_;  // of the tensors, in elements: inputs, then outputs
  std::vector<Item> items_;
  std::vector<Piece> pieces_;
  std::vector<std::uint32_t> dependents_;
  std::vector<Channel> channels_;
  std::vector<std::uint32_t> messages_;
  std::vector<std::uint32_t> initial_;
  std::vector<ScriptLine> script_;
  std::vector<std::int32_t> rounds_;  // of each step
};

}  // namespace baton::execute
