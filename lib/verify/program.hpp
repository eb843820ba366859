#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "baton/schedule/problem.hpp"
#include "baton/schedule/step.hpp"

namespace baton::proving {

class Findings;

inline constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

/// A region with its elements numbered through all buffers of all ranks.
struct Run {
  std::uint32_t first, block, count, stride;
  bool operator==(const Run&) const = default;
};

/// A step with its rank; steps are numbered through all ranks.
struct FlatStep {
  std::uint32_t run = 0;  ///< the first operand's; the others follow
  std::uint32_t parts[3] = {0, 0, 0};
  std::uint32_t length = 0;      ///< elements of each operand
  std::uint32_t partner = none;  ///< the other side of a message
  std::uint32_t rank = 0;
  StepKind kind = StepKind::copy;
  std::uint8_t lane = 0;

  bool message() const { return kind == StepKind::send || kind == StepKind::recv; }
};

/// Walks the contiguous pieces of an operand, in packed order.
class Cursor {
 public:
  explicit Cursor(const Run* run) : at(run->first), left(run->block), run_(run) {}
  void advance(std::uint32_t n) {
    at += n;
    left -= n;
    if (left > 0) return;
    if (++row_ == run_->count) {
      ++run_;
      row_ = 0;
    }
    at = run_->first + row_ * run_->stride;
    left = run_->block;
  }

  std::uint32_t at;    ///< the next element
  std::uint32_t left;  ///< elements up to the end of this piece

 private:
  const Run* run_;
  std::uint32_t row_ = 0;
};

/// Calls visit(first, length) for the contiguous pieces of a list of runs, in packed order.
template <class Visit>
void for_pieces(std::span<const Run> runs, const Visit& visit) {
  for (const Run& run : runs) {
    for (std::uint32_t i = 0; i < run.count; ++i) visit(run.first + i * run.stride, run.block);
  }
}

/// All ranks' schedules in flat arrays, with all numbers divided by their greatest common divisor.
class Program {
 public:
  /// Reads the schedules. Finds regions outside their buffers and steps that write an input. Throws
  /// Error(invalid_argument) if schedules and problems do not belong together, or are too large for
  /// a check of each element.
  void load(std::span<const Schedule> schedules, std::span<const Problem> problems,
            Findings& findings);
  /// How messages between two ranks match.
  enum class By : std::uint8_t { lane, order };
  /// Finds the partner of each send and recv: the one with the same position in its lane or, by
  /// order, among all messages. In the second case the lanes must be equal. Reports messages
  /// without a partner; true if there are none.
  bool match(By by, Findings& findings);

  int size() const { return static_cast<int>(schedules_.size()); }
  std::int64_t unit() const { return unit_; }  ///< elements checked as one
  std::uint32_t step_count() const { return static_cast<std::uint32_t>(steps_.size()); }
  std::uint32_t element_count() const { return place_.back(); }
  std::uint32_t folded_elements() const { return folded_; }  ///< in all fold and divide steps
  std::int64_t messages() const { return messages_; }        ///< sends

  const std::vector<FlatStep>& steps() const { return steps_; }
  const FlatStep& step(std::uint32_t s) const { return steps_[s]; }
  std::uint32_t first_step(int rank) const { return base_[static_cast<std::size_t>(rank)]; }
  const Run* runs(const FlatStep& step, int operand) const {
    const Run* run = runs_.data() + step.run;
    for (int k = 0; k < operand; ++k) run += step.parts[k];
    return run;
  }
  std::span<const Run> operand(const FlatStep& step, int k) const {
    return {runs(step, k), step.parts[k]};
  }
  /// The steps that a step waits for, numbered within their rank.
  std::span<const std::uint32_t> dependencies(std::uint32_t s) const {
    const std::uint32_t rank = steps_[s].rank;
    return schedules_[rank].dependencies(s - base_[rank]);
  }
  std::int32_t round(std::uint32_t s) const {
    return schedules_[steps_[s].rank].steps()[s - base_[steps_[s].rank]].round;
  }
  /// First element of a rank's buffer.
  std::uint32_t place(int rank, Buffer buffer) const { return place_[slot_of(rank, buffer)]; }
  /// One past the last element of a rank's buffer.
  std::uint32_t place_end(int rank, Buffer buffer) const {
    return place_[slot_of(rank, buffer) + 1];
  }

  int step_in_rank(std::uint32_t s) const { return static_cast<int>(s - base_[steps_[s].rank]); }
  std::string phrase(std::uint32_t s) const;  ///< for example "step 3 of rank 1 (recv output[0:4]
                                              ///< from 0)"
  std::string phrase_element(std::uint32_t e) const;  ///< for example "output[12]"

 private:
  static std::size_t slot_of(int rank, Buffer buffer);
  void find_unit(std::span<const Problem> problems);
  void place_buffers();
  void check_bounds(std::span<const Problem> problems, Findings& findings) const;
  void flatten();

  std::span<const Schedule> schedules_;
  std::int64_t unit_ = 1;
  std::vector<std::uint32_t> base_, place_;
  std::vector<FlatStep> steps_;
  std::vector<Run> runs_;
  std::uint32_t folded_ = 0;
  std::int64_t messages_ = 0;

  // for match()
  std::vector<std::uint32_t> bucket_, sends_, next_, head_, tail_;
};

}  // namespace baton::proving
