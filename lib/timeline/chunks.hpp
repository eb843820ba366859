#pragma once
/// What data each step of a collective carries or works on, and how the whole is cut into chunks.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "places.hpp"
#include "steps.hpp"

namespace baton::timing {

/// How a chunk is called.
enum class Naming : std::uint8_t {
  number,  ///< c3
  pair,    ///< 1>4: chunk 1 * ranks + 4
  token,   ///< of a barrier, which carries no data
};

/// Elements whose places are in [place, place + length) belong to chunk `id`.
struct ChunkPart {
  std::int64_t place = 0, length = 0, id = 0;
};

/// The data flow of a collective.
///
/// Every element of an input has a place in the collective's whole vector: where all ranks have the
/// same vector (broadcast, reductions), its index; elsewhere, behind those of lower ranks' inputs.
/// A copy, a receive and a fold carry places along.
///
/// | collective                             | chunk                                              |
/// |----------------------------------------|----------------------------------------------------|
/// | gather, all_gather                     | what one rank contributes                          |
/// | scatter, reduce_scatter                | what ends in the output of one rank                |
/// | all_to_all                             | what ends in the output of one rank from one other |
/// | broadcast, reduce, all_reduce, scan, … | between two borders of what is sent at once        |
///
/// What is sent at once is all that one rank sends to another in one lane and round: the pieces of
/// a segmented message are labelled with the same round.
class Flow {
 public:
  /// Nothing where a step moves too many pieces of data to follow them.
  static std::optional<Flow> of(const Steps& steps, std::span<const Schedule> schedules);

  /// What a step carries, or works on.
  std::span<const Run> runs(std::uint32_t s) const {
    return std::span(runs_).subspan(begin_[s], end_[s] - begin_[s]);
  }
  /// Ascending by place, apart.
  const std::vector<ChunkPart>& parts() const { return parts_; }
  Naming naming() const { return naming_; }

 private:
  friend class Tracer;
  std::vector<Run> runs_;
  std::vector<std::size_t> begin_, end_;  // of each step, in runs_
  std::vector<ChunkPart> parts_;
  Naming naming_ = Naming::number;
};

}  // namespace baton::timing
