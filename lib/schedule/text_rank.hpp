#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "baton/schedule/step.hpp"
#include "text_line.hpp"

namespace baton::scheduling {

/// The contents of the lines before a rank's first step.
struct HeaderLines {
  static constexpr std::int64_t most_int = std::numeric_limits<std::int32_t>::max() - 1;

  std::optional<Collective> collective;
  std::string algorithm;
  std::optional<int> size;
  int root = 0;
  std::optional<std::int64_t> input, output, scratch, slots;
  bool in_place = false;
  bool listed = false;  ///< dependencies are exactly those given

  /// Reads the line if it is one of a header.
  bool read(TextLine& line);
  /// Fails unless the lines suffice for this rank.
  void require_complete(const TextLine& line, int rank) const;
};

/// One rank's schedule while it is read.
class RankText {
 public:
  RankText(HeaderLines common, int rank) : header_(std::move(common)), rank_(rank) {}

  int rank() const { return rank_; }

  /// Reads a line that stands below "rank".
  void read(TextLine& line);
  /// The schedule, once all its lines are read. `line` is where an incomplete header is reported,
  /// and a schedule that cannot be.
  Schedule finish(const TextLine& line);

 private:
  using Operands = std::array<Regions, 3>;

  /// A message in a slot, from the recv of a shorthand to the step after it.
  struct SlotUse {
    std::size_t recv_region, use_region;
    std::size_t lane;
    std::int64_t length;
  };

  void read_step(TextLine& line);
  void read_kind(TextLine& line);
  int read_peer(TextLine& line) const;
  void read_recv_reduce(TextLine& line);
  void read_compute(TextLine& line);
  void read_after(TextLine& line);
  void append(const TextLine& line, StepKind kind, int peer, const Operands& lists);
  void append_through_slot(const TextLine& line, StepKind kind, int peer, const Operands& lists,
                           std::size_t k);
  std::int64_t end_of(Buffer buffer) const;
  void place_slots();

  HeaderLines header_;
  int rank_;
  std::int32_t round_ = 0;
  std::vector<Step> steps_;
  std::vector<Region> regions_;
  std::vector<Computation> computations_;
  Dependencies after_;
  std::vector<std::int64_t> numbers_;     // of the steps as written
  std::vector<std::uint32_t> last_step_;  // that each of them became
  std::vector<SlotUse> slots_;
  std::int64_t total_ = 0;
};

}  // namespace baton::scheduling
