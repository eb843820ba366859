#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "baton/schedule/step.hpp"
#include "script.hpp"

namespace baton::execute {

/// The start of an operand: an offset in bytes from one of a run's base addresses.
struct Place {
  std::uint32_t base = 0;
  std::int64_t offset = 0;
  bool operator==(const Place&) const = default;
};

/// Base addresses of a run: scratch, slots, then the input tensors, then the output tensors.
enum : std::uint32_t { scratch_base = 0, slot_base = 1, first_tensor_base = 2 };

/// `rows` blocks of `block` elements; operand k's blocks are `stride[k]` bytes apart.
struct Piece {
  Place at[3];
  std::int64_t stride[3] = {0, 0, 0};
  std::int64_t block = 0;
  std::int64_t rows = 1;
};

/// The schedule for tensors of these sizes (elements, laid end to end): messages are contiguous,
/// regions are cut at tensor boundaries.
Schedule bound(const Schedule& schedule, std::span<const std::int64_t> inputs,
               std::span<const std::int64_t> outputs);

/// A schedule bound to an element size and buffer shapes. Addresses are base and offset, dependents
/// replace dependencies, messages are sorted by channel. Immutable.
///
/// A *channel* is the messages of one lane, peer and direction, in program order.
class Plan {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  struct Item {
    StepKind kind;
    std::uint8_t lane;
    std::int32_t peer;
    std::uint32_t channel;  ///< of a message
    std::uint32_t waits;    ///< steps that must be complete first
    std::uint32_t first_dependent;
    std::uint32_t dependent_count;
    std::uint32_t first_piece;  ///< in pieces(); a message has one piece of one row
    std::uint32_t piece_count;
    std::int64_t bytes;  ///< of a message
    /// Of a message in a slot: the fold or copy that empties the slot after the receive, or the
    /// copy that fills it before the send; or none. It may be carried out with its message.
    std::uint32_t partner;

    bool local() const { return kind != StepKind::send && kind != StepKind::recv; }
  };
  struct Channel {
    std::uint32_t first;  ///< in messages()
    std::uint32_t last;
  };

  /// `inputs` and `outputs` are the tensors' sizes in elements, laid end to end. Throws
  /// Error(invalid_argument) if the schedule does not fit them or exceeds its own bounds.
  Plan(const Schedule& schedule, std::size_t element_bytes, std::span<const std::int64_t> inputs,
       std::span<const std::int64_t> outputs);

  const Schedule::Header& header() const { return header_; }
  /// The bound schedule: messages are contiguous, regions are cut at boundaries of tensors and of
  /// operands' pieces.
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
  /// Local steps without dependencies.
  std::span<const std::uint32_t> initial() const { return initial_; }
  /// The script of a small plan; empty for others.
  std::span<const ScriptLine> script() const { return script_; }
  /// The number of messages in the longest channel.
  std::uint32_t longest_channel() const;

 private:
  std::uint32_t partner_of(std::uint32_t step) const;
  Region region(const Piece& piece, int operand) const;
  void append_pieces(const Schedule& schedule, const Step& step,
                     std::span<const std::int64_t> begins);

  Schedule::Header header_;
  std::size_t element_bytes_;
  std::uint32_t bases_ = 0;
  std::uint32_t lanes_ = 1;
  std::uint32_t first_output_ = 0;
  std::vector<std::int64_t> begins_;  // start of each tensor, in elements: inputs, then outputs
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
