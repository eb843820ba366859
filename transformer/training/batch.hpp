#pragma once
/// Samples with their targets, and how ranks share them.

#include <cstdint>
#include <vector>

#include "../data/text.hpp"
#include "../mesh.hpp"
#include "../tensor.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// x [n, ..] and target [n, ..]: n samples.
template <class T>
struct Batch {
  Array<T> x, target;
  /// The number of samples.
  std::int64_t samples() const { return x.extent(0); }
};

/// Indexes [begin, end).
struct Range {
  std::int64_t begin = 0, end = 0;
  /// The number of indexes.
  std::int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

/// Slice number `part` of n samples cut into `parts` slices. Their sizes differ by at most one; the
/// first slices are the larger ones.
Range slice_of(std::int64_t n, int parts, int part);

/// The samples of a range of [n, ..], not copied.
template <class T>
Array<T> samples_of(const Array<T>& all, const Range& range);
/// Slices [n1, ..], [n2, ..] … one after the other. One alone is not copied.
template <class T>
Array<T> joined_samples(const std::vector<Array<T>>& slices);
/// The samples of a range, copied.
template <class T>
Batch<T> samples_of(const Batch<T>& batch, const Range& range);

/// All slices in order. If there are more parts than samples, the last have no samples.
template <class T>
std::vector<Batch<T>> split_batch(const Batch<T>& batch, int parts);

/// One rank's part of a batch.
template <class T>
struct Share {
  Batch<T> batch;
  std::int64_t first_sample = 0;  ///< index in the whole batch
  double elements = 0;            ///< number of elements of the whole batch's target
  Axes others;                    ///< axes whose ranks have other samples or positions
};

/// The whole batch as one share.
template <class T>
Share<T> whole_of(const Batch<T>& batch);

/// This rank's share. Axis dp cuts the samples into near-equal slices. Axis sp cuts the positions,
/// which are the second dimension, into equal ones; with `sequence_parallel`, axis tp cuts those
/// again. Throws Error(invalid_argument) if the positions cannot be cut equally.
template <class T>
Share<T> share_of(const Batch<T>& batch, const Mesh& mesh, bool sequence_parallel = false);

/// This rank's tokens: the samples and positions that share_of() of a Batch [n, s] has. Positions
/// are not cut along axis tp: models that are sequence-parallel cut them themselves.
TokenBatch share_of(const TokenBatch& batch, const Mesh& mesh);
/// The samples of a range.
TokenBatch samples_of(const TokenBatch& batch, const Range& range);
/// This rank's positions of all samples. Throws like share_of().
TokenBatch positions_of(const TokenBatch& batch, const Mesh& mesh);

/// The whole tensor of shape `whole`, of which every rank has its share along `others`. Collective.
template <class T>
Array<T> whole_of_shares(const Array<T>& own, const Shape& whole, Axes others, const Mesh& mesh);

/// Points [n, 2] of two interleaved half circles of radius 1, alternately from one and the other,
/// in the places of scikit-learn's make_moons. target [n, 1] is 0 or 1, the half circle. Noise of
/// this standard deviation is added to each coordinate.
template <class T>
Batch<T> two_moons(std::int64_t n, double noise, std::uint64_t seed);

/// Standard normal x and target of these shapes. The same seed gives the same batch.
template <class T>
Batch<T> create_batch(std::uint64_t seed, const Shape& x, const Shape& target);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
