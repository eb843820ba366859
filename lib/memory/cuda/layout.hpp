#pragma once
/// From pieces to the jobs of launches: joins pieces, chooses vector widths, peels edges, detects
/// transpositions. Independent of CUDA.

#include <optional>
#include <span>
#include <utility>

#include "kernels.hpp"
#include "strided.hpp"

namespace baton::cuda {

/// outer × rows blocks of `bytes` bytes: pieces of a list at equal distances. The stride of a
/// direction with one entry is 0.
template <int operands>
struct Sheet {
  std::byte* at[operands];
  std::int64_t row_stride[operands], outer_stride[operands];
  std::int64_t bytes, rows, outer;

  bool contiguous() const { return rows == 1 && outer == 1; }
  bool operator==(const Sheet&) const = default;
};

/// The widths that an op's kernel accepts, added up.
std::uint32_t fold_widths(OpKind op, Datatype type);

/// Drops leading empty pieces.
void skip_empty(std::span<const Rows>& pieces);

/// Joins as many of the first pieces as possible into a sheet of the simplest form, and drops them
/// from the list. No piece may be empty. `element_bytes`: size of an element.
template <int operands>
Sheet<operands> take_sheet(std::span<const Rows>& pieces, std::int64_t element_bytes);

/// The widest of `widths` (bytes, powers of two added up) that divides every block of the sheet. At
/// least one must.
template <int operands>
std::uint32_t width_of(const Sheet<operands>& sheet, std::uint32_t widths);

/// A sheet's blocks, cut where operands are aligned to `width`.
struct Peel {
  std::int64_t head, body, tail;  // bytes
  std::uint32_t width;            // of the body
};
/// Cuts blocks that are misaligned alike, to use wider vectors, if the blocks are long enough to
/// pay for it.
template <int operands>
std::optional<Peel> peel_of(const Sheet<operands>& sheet, std::uint32_t widths);

/// The sheet as tiles, if it is a transposition of small cells.
std::optional<Tiles> tiles_of(const Sheet<2>& sheet);

/// `bytes` of each block, from `first` on.
template <int operands>
Sheet<operands> part(Sheet<operands> sheet, std::int64_t first, std::int64_t bytes) {
  for (std::byte*& at : sheet.at) at += first;
  sheet.bytes = bytes;
  return sheet;
}

/// Cuts a sheet in two across its slowest direction; keeps `width` bytes of a block together.
template <int operands>
std::pair<Sheet<operands>, Sheet<operands>> halves(const Sheet<operands>& sheet,
                                                   std::uint32_t width);

/// Gathers jobs in batches and hands each batch to `launch`.
template <class Job, class Launch>
class Batcher {
 public:
  explicit Batcher(Launch launch) : launch_(launch) {}

  void add(Job job) {
    if (batch_.count == batch_.capacity) flush();
    job.first_unit = batch_.units;
    batch_.units += job.units();
    batch_.jobs[batch_.count++] = job;
  }
  void flush() {
    if (batch_.count > 0) launch_(batch_);
    batch_.count = batch_.units = 0;
  }

 private:
  Batch<Job> batch_;
  Launch launch_;
};

/// The most vectors of one job: Divider's range.
inline constexpr std::int64_t most_vectors = (std::int64_t{1} << 31) - 1;

/// Adds a sheet to a batcher as jobs of one width.
template <int operands, class Batcher>
void add_whole(const Sheet<operands>& sheet, std::uint32_t width, Batcher& batcher) {
  const std::int64_t columns = sheet.bytes / width;
  if (columns * sheet.rows * sheet.outer > most_vectors) {
    const auto [first, second] = halves(sheet, width);
    add_whole(first, width, batcher);
    add_whole(second, width, batcher);
    return;
  }
  Strided<operands> job;
  for (int k = 0; k < operands; ++k) {
    job.at[k] = sheet.at[k];
    job.row_stride[k] = sheet.row_stride[k];
    job.outer_stride[k] = sheet.outer_stride[k];
  }
  job.columns = Divider(static_cast<std::uint32_t>(columns));
  job.rows = Divider(static_cast<std::uint32_t>(sheet.rows));
  job.vectors = static_cast<std::uint32_t>(columns * sheet.rows * sheet.outer);
  job.width = width;
  batcher.add(job);
}

/// Adds a sheet to a batcher, in the widest vectors that it allows.
template <int operands, class Batcher>
void add_sheet(const Sheet<operands>& sheet, std::uint32_t widths, Batcher& batcher) {
  const auto peel = peel_of(sheet, widths);
  if (!peel) return add_whole(sheet, width_of(sheet, widths), batcher);
  const std::int64_t tail_at = peel->head + peel->body;
  add_whole(part(sheet, peel->head, peel->body), peel->width, batcher);
  for (const auto& [first, bytes] :
       {std::pair{std::int64_t{0}, peel->head}, {tail_at, peel->tail}}) {
    if (bytes == 0) continue;
    const auto edge = part(sheet, first, bytes);
    add_whole(edge, width_of(edge, widths), batcher);
  }
}

/// Cuts a list of pieces into batches and hands each to `launch`. Blocks consist of elements of
/// `element_bytes`, vectors have one of `widths`.
template <int operands, class Launch>
void for_batches(std::span<const Rows> pieces, std::size_t element_bytes, std::uint32_t widths,
                 Launch launch) {
  Batcher<Strided<operands>, Launch> batcher(launch);
  for (skip_empty(pieces); !pieces.empty(); skip_empty(pieces)) {
    add_sheet(take_sheet<operands>(pieces, static_cast<std::int64_t>(element_bytes)), widths,
              batcher);
  }
  batcher.flush();
}

/// The same for a copy; transpositions become batches of tiles.
template <class LaunchStrided, class LaunchTiles>
void for_copy_batches(std::span<const Rows> pieces, std::size_t element_bytes,
                      LaunchStrided launch_strided, LaunchTiles launch_tiles) {
  Batcher<Strided<2>, LaunchStrided> strided(launch_strided);
  Batcher<Tiles, LaunchTiles> turned(launch_tiles);
  for (skip_empty(pieces); !pieces.empty(); skip_empty(pieces)) {
    const auto sheet = take_sheet<2>(pieces, static_cast<std::int64_t>(element_bytes));
    if (const auto tiles = tiles_of(sheet)) {
      turned.add(*tiles);
    } else {
      add_sheet(sheet, copy_widths, strided);
    }
  }
  turned.flush();
  strided.flush();
}

}  // namespace baton::cuda
