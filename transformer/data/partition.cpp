#include "partition.hpp"

#include <fmt/core.h>

#include <cmath>
#include <numeric>
#include <utility>

#include "../random.hpp"
#include "../shape_guard.hpp"
#include "../training/batch.hpp"
#include "baton/error.hpp"

namespace baton::transformer {
namespace {

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

/// Fisher, Yates: Statistical tables for biological, agricultural and medical research (1938), in
/// the form of Durstenfeld, Algorithm 235: Random permutation, CACM 7(7), 1964.
void shuffle(std::vector<std::int64_t>& samples, const Random& random) {
  for (std::uint64_t left = samples.size(); left > 1; --left) {
    // 64 bits modulo at most 2^40 samples: no order is more likely than another by 2^-24.
    const std::uint64_t word = static_cast<std::uint64_t>(random.word(2 * left)) << 32;
    std::swap(samples[left - 1], samples[(word | random.word(2 * left + 1)) % left]);
  }
}

std::vector<std::int64_t> shuffled_indexes(std::int64_t size, const Random& random) {
  if (size < 0) refuse(fmt::format("data: expected a number of samples, found {}", size));
  std::vector<std::int64_t> samples(static_cast<std::size_t>(size));
  std::iota(samples.begin(), samples.end(), 0);
  shuffle(samples, random);
  return samples;
}

}  // namespace

std::int64_t Partition::operator[](std::int64_t index) const { return samples(index, 1)[0]; }

std::span<const std::int64_t> Partition::samples(std::int64_t first, std::int64_t count) const {
  if (first < 0 || count < 0 || first > size() - count) {
    refuse(fmt::format("partition: expected samples within [0, {}), found [{}, {})", size(), first,
                       first + count));
  }
  return std::span(samples_).subspan(static_cast<std::size_t>(first),
                                     static_cast<std::size_t>(count));
}

DataPartitioner::DataPartitioner(std::int64_t size, const std::vector<double>& fractions,
                                 std::uint64_t seed)
    : samples_(shuffled_indexes(size, Random{seed}.of("samples"))), bounds_{0} {
  double sum = 0;
  for (const double fraction : fractions) {
    if (!(fraction >= 0)) {
      refuse(fmt::format("fractions: expected numbers of at least 0, found {}", fraction));
    }
    sum += fraction;
    bounds_.push_back(std::min<std::int64_t>(size, std::llround(static_cast<double>(size) * sum)));
  }
  if (!(std::abs(sum - 1) <= 1e-9)) {
    refuse(fmt::format("fractions: expected numbers that add up to 1, found {}", sum));
  }
  bounds_.back() = size;
}

Partition DataPartitioner::use(int rank) const {
  const int ranks = static_cast<int>(bounds_.size()) - 1;
  if (rank < 0 || rank >= ranks) {
    refuse(fmt::format("partition: expected a rank from 0 to {}, found {}", ranks - 1, rank));
  }
  const auto at = bounds_.begin() + rank;
  return Partition({samples_.begin() + at[0], samples_.begin() + at[1]});
}

RankData partition_dataset(std::int64_t size, std::int64_t batch, const Mesh& mesh,
                           std::uint64_t seed, std::int64_t epoch) {
  const int ranks = mesh.size(Axis::dp), rank = mesh.rank(Axis::dp);
  if (batch < 1) refuse(fmt::format("batch: expected at least 1 sample, found {}", batch));
  expect_multiple("batch", batch, ranks, "ranks of dp");
  if (size < batch) {
    refuse(fmt::format("data: expected at least {} samples, a batch, found {}", batch, size));
  }
  const auto order =
      shuffled_indexes(size, Random{seed}.of("samples").of(static_cast<std::uint64_t>(epoch)));
  std::vector<std::int64_t> samples;
  for (std::int64_t begin = 0; begin < size; begin += batch) {
    const Range own = slice_of(std::min(batch, size - begin), ranks, rank);
    const auto first = order.begin() + begin;
    samples.insert(samples.end(), first + own.begin, first + own.end);
  }
  return {Partition(std::move(samples)), batch / ranks, size / batch};
}

void on_all_ranks(Communicator& world, const std::function<void()>& read) {
  std::string sentence;
  const auto attempt = [&] {
    try {
      read();
    } catch (const std::exception& error) {
      sentence = error.what();
    }
  };
  if (world.rank() == 0) attempt();
  world.barrier();
  if (world.rank() != 0) attempt();
  std::int32_t failed = sentence.empty() ? world.size() : world.rank();
  world.all_reduce(std::span(&failed, 1), min);
  if (failed == world.size()) return;
  auto length = static_cast<std::int64_t>(sentence.size());
  world.broadcast(std::span(&length, 1), failed);
  std::vector<std::uint8_t> text(sentence.begin(), sentence.end());
  text.resize(static_cast<std::size_t>(length));
  world.broadcast(std::span(text), failed);
  throw Error(ErrorCode::invalid_argument, std::string(text.begin(), text.end()));
}

}  // namespace baton::transformer
