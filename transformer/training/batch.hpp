#pragma once
/// Samples with their targets, and how ranks share them.

#include <cstdint>
#include <vector>

#include "../mesh.hpp"
#include "../tensor.hpp"
#include "baton/export.hpp"

namespace BATON_API baton {
namespace transformer {

/// x [n, ..] and target [n, ..]: n samples.
template <class T>
struct Batch {
  Array<T> x, target;
  std::int64_t samples() const { return x.extent(0); }
};

/// Indexes [begin, end).
struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

/// Slice `part` of n things cut into `parts` slices in turn, whose sizes differ by at most one; the
/// first are the larger ones.
Range slice_of(std::int64_t n, int parts, int part);

/// Samples [begin, end), copied.
template <class T>
Batch<T> samples_of(const Batch<T>& batch, const Range& range);

/// All slices in turn, some without samples where there are more parts than samples.
template <class T>
std::vector<Batch<T>> split_batch(const Batch<T>& batch, int parts);

/// What one rank computes on of a batch.
template <class T>
struct Share {
  Batch<T> batch;
  std::int64_t first_sample = 0;  ///< in the whole batch
  double elements = 0;            ///< of the whole batch's target
  Axes others;                    ///< along which other ranks have other samples or positions
};

/// The whole batch.
template <class T>
Share<T> whole_of(const Batch<T>& batch);

/// This rank's: of the samples, a near-equal slice along axis dp; of the positions, which are the
/// second dimension, an equal one along sp, and of that with `sequence_parallel` one along tp.
/// Throws Error(invalid_argument) where positions do not divide.
template <class T>
Share<T> share_of(const Batch<T>& batch, const Mesh& mesh, bool sequence_parallel = false);

/// The whole, of this shape, of which every rank has its share along `others`. Collective.
template <class T>
Array<T> whole_of_shares(const Array<T>& own, const Shape& whole, Axes others, const Mesh& mesh);

/// Points [n, 2] of two interleaved half circles of radius 1, in turn from either; target [n, 1] is
/// 0 or 1, the half circle. `noise` is the standard deviation of what is added to each coordinate.
/// Points lie as those of scikit-learn's make_moons.
template <class T>
Batch<T> two_moons(std::int64_t n, double noise, std::uint64_t seed);

/// Standard normal x and target of this shapes, the same for the same seed in every layout.
template <class T>
Batch<T> create_batch(std::uint64_t seed, const Shape& x, const Shape& target);

}  // namespace transformer
}  // namespace baton
