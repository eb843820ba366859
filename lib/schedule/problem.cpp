#include "baton/schedule/problem.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "baton/error.hpp"

namespace baton {
namespace {

constexpr std::array<std::string_view, collective_count + 1> names{
    "broadcast",      "reduce",     "all_reduce", "gather", "scatter", "all_gather",
    "reduce_scatter", "all_to_all", "scan",       "exscan", "barrier", "program"};

}  // namespace

std::string_view name(Collective collective) { return names[static_cast<std::size_t>(collective)]; }

Collective collective_named(std::string_view name) {
  const auto end = names.begin() + collective_count;
  const auto found = std::find(names.begin(), end, name);
  if (found == end) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("expected a collective ({}), found \"{}\"",
                            fmt::join(names.begin(), end, ", "), name));
  }
  return static_cast<Collective>(found - names.begin());
}

bool rooted(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce ||
         collective == Collective::gather || collective == Collective::scatter;
}

bool reducing(Collective collective) {
  return collective == Collective::reduce || collective == Collective::all_reduce ||
         collective == Collective::reduce_scatter || collective == Collective::scan ||
         collective == Collective::exscan;
}

bool gathering(Collective collective) {
  return collective == Collective::gather || collective == Collective::all_gather;
}

bool scattering(Collective collective) {
  return collective == Collective::scatter || collective == Collective::reduce_scatter;
}

std::shared_ptr<const Blocks> Blocks::packed(std::span<const std::int64_t> counts) {
  auto blocks = std::make_shared<Blocks>();
  blocks->counts.assign(counts.begin(), counts.end());
  blocks->offsets.resize(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), blocks->offsets.begin(), std::int64_t{0});
  return blocks;
}

std::shared_ptr<const Blocks> Blocks::placed(std::span<const std::int64_t> counts,
                                             std::span<const std::int64_t> offsets) {
  auto blocks = std::make_shared<Blocks>();
  blocks->counts.assign(counts.begin(), counts.end());
  blocks->offsets.assign(offsets.begin(), offsets.end());
  return blocks;
}

std::int64_t Blocks::total() const {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

std::int64_t Blocks::extent() const {
  std::int64_t extent = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) extent = std::max(extent, offsets[i] + counts[i]);
  }
  return extent;
}

bool Problem::aliased() const {
  if (collective == Collective::broadcast) return true;
  if (!in_place || collective == Collective::barrier || collective == Collective::program)
    return false;
  return !rooted(collective) || rank == root;
}

std::int64_t Problem::input_extent() const {
  switch (collective) {
    case Collective::broadcast:
    case Collective::program:
      return 0;
    case Collective::barrier:
      return 1;
    case Collective::scatter:
      if (rank != root) return 0;
      [[fallthrough]];
    case Collective::reduce_scatter:
      return input_blocks ? input_blocks->extent() : size * count;
    case Collective::all_to_all:
      if (aliased()) return 0;
      return input_blocks ? input_blocks->extent() : size * count;
    default:
      return aliased() ? 0 : count;
  }
}

std::int64_t Problem::output_extent() const {
  switch (collective) {
    case Collective::barrier:
    case Collective::program:
      return 0;
    case Collective::reduce:
      return rank == root ? count : 0;
    case Collective::gather:
      if (rank != root) return 0;
      [[fallthrough]];
    case Collective::all_gather:
    case Collective::all_to_all:
      return output_blocks ? output_blocks->extent() : size * count;
    case Collective::scatter:
    case Collective::reduce_scatter:
      return aliased() ? 0 : count;
    default:
      return count;
  }
}

std::int64_t Problem::block_count(int i) const {
  const auto& blocks = input_blocks ? input_blocks : output_blocks;
  return blocks ? blocks->counts[static_cast<std::size_t>(i)] : count;
}

std::int64_t Problem::total_count() const {
  const auto& blocks = input_blocks ? input_blocks : output_blocks;
  return blocks ? blocks->total() : size * count;
}

Problem Problem::at(int other_rank) const {
  Problem other = *this;
  other.rank = other_rank;
  if (uneven() && collective != Collective::all_to_all) other.count = block_count(other_rank);
  return other;
}

std::int64_t chunk_count(std::int64_t count, int chunks, int i) {
  return count / chunks + (i < count % chunks ? 1 : 0);
}

std::int64_t chunk_offset(std::int64_t count, int chunks, int i) {
  return count / chunks * i + std::min<std::int64_t>(i, count % chunks);
}

int ceil_log2(std::int64_t n) {
  return n <= 1 ? 0 : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n - 1)));
}

}  // namespace baton
