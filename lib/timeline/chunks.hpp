#pragma once
/// The data that each step of a collective carries or works on, and the division of the whole into
/// chunks.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "places.hpp"
#include "steps.hpp"

namespace baton::timing {

/// The form of a chunk's name.
enum class Naming : std::uint8_t {
  number,  ///< c3
  pair,    ///< 1>4: chunk 1 * ranks + 4
  token,   ///< of a barrier: no data
};

/// Elements whose places are in [place, place + length) belong to chunk `id`.
struct ChunkPart {
  std::int64_t place = 0, length = 0, id = 0;
};

/// The data flow of a collective.
///
/// Every element of an input has a place in the collective's whole vector. If all ranks have the
/// same vector (broadcast, reductions), the place is its index. Otherwise it lies behind the inputs
/// of lower ranks. Copies, receives and folds carry places along.
///
/// | collective                             | chunk                                            |
/// |----------------------------------------|--------------------------------------------------|
/// | gather, all_gather                     | the contribution of one rank                     |
/// | scatter, reduce_scatter                | the output of one rank                           |
/// | all_to_all                             | the data from one rank in the output of another  |
/// | broadcast, reduce, all_reduce, scan, … | the part between two borders of joint sends      |
///
/// A joint send is everything that one rank sends to another in one lane and round. The pieces of a
/// segmented message have the same round.
class Flow {
 public:
  /// None if a step moves too many pieces of data to follow.
  static std::optional<Flow> of(const Steps& steps, std::span<const Schedule> schedules);

  /// The data that a step carries or works on.
  std::span<const Run> runs(std::uint32_t s) const {
    return std::span(runs_).subspan(begin_[s], end_[s] - begin_[s]);
  }
  /// Ascending by place, without overlap.
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
