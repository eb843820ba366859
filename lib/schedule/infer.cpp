#include "infer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <vector>

#include "baton/error.hpp"

// A buffer is seen as rows of `width` elements, where width is the stride that most of its regions
// have (without any, one endless row). A region is then one to three rectangles, columns × rows.
// The columns are cut at all rectangles' edges into cells; each cell remembers the accesses that
// later steps may have to wait for. So the cost is about linear in the number of steps, and overlap
// of equally strided regions is decided exactly.

namespace baton::scheduling {
namespace {

/// Regions of another stride than the buffer's are taken apart up to this many blocks.
constexpr std::int64_t most_blocks = 4096;
// Places where steps meet, 8 GB, and dependencies, 4 GB: both are counted by 32 bits.
constexpr std::size_t most_places = std::size_t{1} << 28, most_dependencies = std::size_t{1} << 30;
constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

struct Rectangle {
  std::int64_t column, column_end, row, row_end;
  bool assumed;
};

/// Sorted distinct column edges, and the position of each. At most half of its places are taken.
class Edges {
 public:
  explicit Edges(std::size_t expected) {
    std::size_t capacity = 16;
    while (capacity < 2 * expected) capacity *= 2;
    keys_.assign(capacity, -1);
  }
  void add(std::int64_t edge) {
    const std::size_t place = find(edge);
    if (keys_[place] == edge) return;
    keys_[place] = edge;
    sorted_.push_back(edge);
    if (2 * sorted_.size() > keys_.size()) grow();
  }
  void sort() {
    std::sort(sorted_.begin(), sorted_.end());
    ranks_.resize(keys_.size());
    for (std::size_t i = 0; i < sorted_.size(); ++i) {
      ranks_[find(sorted_[i])] = static_cast<std::uint32_t>(i);
    }
  }
  std::uint32_t rank(std::int64_t edge) const { return ranks_[find(edge)]; }
  std::size_t size() const { return sorted_.size(); }

 private:
  void grow() {
    if (sorted_.size() > most_places)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("expected a schedule whose regions begin and end in few columns of a "
                              "buffer, found more than {}",
                              most_places));
    keys_.assign(2 * keys_.size(), -1);
    for (const std::int64_t edge : sorted_) keys_[find(edge)] = edge;
  }
  std::size_t find(std::int64_t edge) const {
    const std::size_t mask = keys_.size() - 1;
    std::size_t place = (static_cast<std::uint64_t>(edge) * 0x9e3779b97f4a7c15ull >> 20) & mask;
    while (keys_[place] != -1 && keys_[place] != edge) place = (place + 1) & mask;
    return place;
  }
  std::vector<std::int64_t> keys_, sorted_;
  std::vector<std::uint32_t> ranks_;
};

class BufferAccesses {
 public:
  /// Chooses the row width by the regions of one buffer.
  void plan(Buffer buffer, std::span<const Region> regions) {
    std::unordered_map<std::int64_t, std::size_t> votes;
    std::size_t most = 0, total = 0;
    for (const Region& region : regions) {
      if (region.buffer != buffer) continue;
      ++total;
      if (region.contiguous()) continue;
      if (const std::size_t n = ++votes[region.stride]; n > most) {
        most = n;
        width_ = region.stride;
      }
    }
    edges_ = Edges(2 * total + 2);
    for (const Region& region : regions) {
      if (region.buffer != buffer) continue;
      for_each_rectangle(region, [&](const Rectangle& r) {
        edges_.add(r.column);
        edges_.add(r.column_end);
      });
    }
    edges_.sort();
    cells_.assign(edges_.size(), {});
  }

  /// Appends to `found` the earlier steps that `step` must wait for, and remembers the access.
  void access(std::uint32_t step, const Region& region, bool write,
              std::vector<std::uint32_t>& found, std::int64_t& assumed) {
    for_each_rectangle(region, [&](const Rectangle& r) {
      const std::uint32_t end = edges_.rank(r.column_end);
      for (std::uint32_t cell = edges_.rank(r.column); cell < end; ++cell) {
        visit(cells_[cell], step, r, write, found, assumed);
      }
    });
  }

 private:
  struct Access {
    std::int64_t row, row_end;
    std::uint32_t step, next;
    bool assumed;
  };
  /// Heads of the lists of writes and of reads.
  struct Cell {
    std::uint32_t writes = none, reads = none;
  };

  void visit(Cell& cell, std::uint32_t step, const Rectangle& r, bool write,
             std::vector<std::uint32_t>& found, std::int64_t& assumed) {
    follow(cell.writes, step, r, write, found, assumed);
    if (write) follow(cell.reads, step, r, write, found, assumed);
    std::uint32_t& head = write ? cell.writes : cell.reads;
    if (pool_.size() >= most_places)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("expected a schedule whose steps share few elements, found one whose "
                              "first {} steps meet in {} places",
                              step + 1, pool_.size()));
    pool_.push_back({r.row, r.row_end, step, head, r.assumed});
    head = static_cast<std::uint32_t>(pool_.size() - 1);
  }

  /// Appends the steps of a list that meet `r`; if `r` is written, those that it hides are dropped.
  void follow(std::uint32_t& head, std::uint32_t step, const Rectangle& r, bool write,
              std::vector<std::uint32_t>& found, std::int64_t& assumed) {
    std::uint32_t* link = &head;
    while (*link != none) {
      Access& earlier = pool_[*link];
      if (earlier.row < r.row_end && r.row < earlier.row_end && earlier.step != step) {
        found.push_back(earlier.step);
        if (r.assumed || earlier.assumed) ++assumed;
      }
      // Whoever waits for this write waits for what it hides.
      if (write && !r.assumed && r.row <= earlier.row && earlier.row_end <= r.row_end) {
        *link = earlier.next;
      } else {
        link = &earlier.next;
      }
    }
  }

  template <class Visit>
  void for_each_rectangle(const Region& region, const Visit& visit) const {
    if (region.contiguous()) {
      span(region.offset, region.block, false, visit);
    } else if (region.stride == width_) {
      const std::int64_t row = region.offset / width_, column = region.offset % width_;
      const std::int64_t end = column + region.block;
      visit({column, std::min(end, width_), row, row + region.count, false});
      if (end > width_) visit({0, end - width_, row + 1, row + 1 + region.count, false});
    } else if (region.count <= most_blocks) {
      for (std::int64_t i = 0; i < region.count; ++i) {
        span(region.offset + i * region.stride, region.block, false, visit);
      }
    } else {
      span(region.offset, region.end() - region.offset, true, visit);
    }
  }

  template <class Visit>
  void span(std::int64_t offset, std::int64_t length, bool assumed, const Visit& visit) const {
    std::int64_t row = offset / width_, column = offset % width_;
    if (column + length <= width_) {
      visit({column, column + length, row, row + 1, assumed});
      return;
    }
    if (column > 0) {
      visit({column, width_, row, row + 1, assumed});
      ++row;
      length -= width_ - column;
    }
    if (const std::int64_t rows = length / width_; rows > 0) {
      visit({0, width_, row, row + rows, assumed});
      row += rows;
      length -= rows * width_;
    }
    if (length > 0) visit({0, length, row, row + 1, assumed});
  }

  std::int64_t width_ = std::numeric_limits<std::int64_t>::max();
  Edges edges_{0};
  std::vector<Cell> cells_;
  std::vector<Access> pool_;
};

}  // namespace

Dependencies infer_dependencies(std::span<const Step> steps, std::span<const Region> regions,
                                std::int64_t& assumed) {
  constexpr std::size_t buffers = 5;
  bool written[buffers] = {};
  for (const Step& step : steps) {
    if (step.kind == StepKind::send) continue;
    for (std::uint32_t i = 0; i < step.parts[0]; ++i) {
      written[static_cast<std::size_t>(regions[step.first + i].buffer)] = true;
    }
  }
  BufferAccesses accesses[buffers];
  for (std::size_t b = 0; b < buffers; ++b) {
    if (written[b]) accesses[b].plan(static_cast<Buffer>(b), regions);
  }

  Dependencies dependencies;
  dependencies.begin.reserve(steps.size() + 1);
  dependencies.list.reserve(2 * steps.size());
  std::vector<std::uint32_t> found;
  std::uint32_t computation = none;  // the last one: a rank computes one thing after the other
  for (std::uint32_t s = 0; s < steps.size(); ++s) {
    const Step& step = steps[s];
    found.clear();
    if (step.kind == StepKind::compute) {
      if (computation != none) found.push_back(computation);
      computation = s;
    }
    std::uint32_t region = step.first;
    for (int k = 0; k < operands(step.kind); ++k) {
      const bool write = k == 0 && step.kind != StepKind::send;
      for (std::uint32_t i = 0; i < step.parts[k]; ++i, ++region) {
        const auto buffer = static_cast<std::size_t>(regions[region].buffer);
        if (written[buffer]) accesses[buffer].access(s, regions[region], write, found, assumed);
      }
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    dependencies.list.insert(dependencies.list.end(), found.begin(), found.end());
    dependencies.end_step();
    if (dependencies.list.size() > most_dependencies)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("expected a schedule of which each step waits for few others, found "
                              "one whose first {} steps wait for {}",
                              s + 1, dependencies.list.size()));
  }
  return dependencies;
}

}  // namespace baton::scheduling
