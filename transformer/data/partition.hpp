#pragma once
/// The samples of a data set, shuffled and divided among ranks.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "../mesh.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// Some samples of a data set, in an order.
class Partition {
 public:
  /// None.
  Partition() = default;
  /// Those with these indexes in the data set.
  explicit Partition(std::vector<std::int64_t> samples) : samples_(std::move(samples)) {}

  /// The number of samples.
  std::int64_t size() const { return static_cast<std::int64_t>(samples_.size()); }
  /// The index in the data set of a sample of this partition. Throws Error(invalid_argument) unless
  /// 0 <= `index` < size().
  std::int64_t operator[](std::int64_t index) const;
  /// The indexes in the data set of `count` samples from `first` on. Throws
  /// Error(invalid_argument) unless the partition has them.
  std::span<const std::int64_t> samples(std::int64_t first, std::int64_t count) const;

 private:
  std::vector<std::int64_t> samples_;
};

/// Divides the samples of a data set, shuffled by a seed, into partitions that have no sample in
/// common and together have all. The same arguments give the same partitions on every rank and
/// machine.
class DataPartitioner {
 public:
  /// `size` samples. Partition r has about fractions[r] · size of them: of the shuffled samples
  /// those from round(size · (fractions[0] + … + fractions[r - 1])) on, up to the next partition's
  /// first. Throws Error(invalid_argument) unless no fraction is negative and all add up to 1,
  /// within 1e-9.
  DataPartitioner(std::int64_t size, const std::vector<double>& fractions, std::uint64_t seed);

  /// The partition of a rank. Throws Error(invalid_argument) unless there is a fraction for it.
  Partition use(int rank) const;

 private:
  std::vector<std::int64_t> samples_, bounds_;
};

/// A rank's part of a data set in an epoch, and of each batch.
struct RankData {
  /// Of step k, the rank has samples [k · batch, (k + 1) · batch) of this partition.
  Partition partition;
  std::int64_t batch = 0;  ///< samples of this rank in each step
  std::int64_t steps = 0;  ///< batches that the samples fill; the same on all ranks
};

/// Shuffles `size` samples by the seed and the epoch, cuts them into batches of `batch` samples,
/// and divides each equally among the ranks along axis dp. So the batch of a step, which is that of
/// all ranks one after the other, does not depend on the number of ranks. Samples that fill no
/// batch follow in the ranks' partitions. Ranks that differ along other axes only have the same
/// samples. Nothing is sent. Throws Error(invalid_argument), on all ranks, unless `batch` is a
/// positive multiple of the ranks of dp and the samples fill at least one batch.
RankData partition_dataset(std::int64_t size, std::int64_t batch, const Mesh& mesh,
                           std::uint64_t seed, std::int64_t epoch = 0);

/// Calls `read` on every rank, on the first before all others, which then find the files that it
/// writes. If it throws on any rank, all ranks throw Error(invalid_argument) with the sentence of
/// the first of these. Collective.
void on_all_ranks(Communicator& world, const std::function<void()>& read);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
