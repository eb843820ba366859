#include "layout.hpp"

#include <algorithm>

#include "element.hpp"

namespace baton::cuda {
namespace {

constexpr std::int64_t narrowest_body = 8;  // vectors; a shorter block does not pay for three jobs
constexpr std::int64_t largest_cell = 32;   // bytes: a sector, the least that memory moves
constexpr std::int64_t least_cells = 64;    // fewer do not pay for tiles
constexpr std::int64_t line_bytes = 128;    // of a tile, if there are enough cells
constexpr std::int64_t tile_bytes = 16384;  // likewise: four loads and stores of 16 bytes a thread

std::uint64_t number(const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at); }

/// The widest of `widths` that divides all numbers or-ed into `alignment`.
std::uint32_t widest_in(std::uint32_t widths, std::uint64_t alignment) {
  const std::uint64_t divides = alignment == 0 ? widest : alignment & -alignment;
  const std::uint32_t fit =
      widths & static_cast<std::uint32_t>(2 * std::min<std::uint64_t>(divides, widest) - 1);
  return std::bit_floor(fit);
}

template <int operands>
std::uint64_t strides_of(const Sheet<operands>& sheet) {
  std::uint64_t all = 0;
  for (int k = 0; k < operands; ++k)
    all |= static_cast<std::uint64_t>(sheet.row_stride[k] | sheet.outer_stride[k]);
  return all;
}

/// Whether all of a's operands equal b's times `factor`.
template <std::size_t n>
bool multiple(const std::int64_t (&a)[n], const std::int64_t (&b)[n], std::int64_t factor) {
  for (std::size_t k = 0; k < n; ++k)
    if (a[k] != b[k] * factor) return false;
  return true;
}

/// The same blocks in the fewest directions.
template <int operands>
void simplify(Sheet<operands>& sheet) {
  const auto drop_outer = [&] {
    std::fill_n(sheet.outer_stride, operands, 0);
    sheet.outer = 1;
  };
  const auto drop_rows = [&] {
    sheet.rows = sheet.outer;
    std::copy_n(sheet.outer_stride, operands, sheet.row_stride);
    drop_outer();
  };
  const auto side_by_side = [&](const auto& strides) {
    return std::ranges::all_of(strides, [&](std::int64_t stride) { return stride == sheet.bytes; });
  };
  if (sheet.rows == 1) drop_rows();
  if (sheet.outer > 1 && side_by_side(sheet.outer_stride)) {
    sheet.bytes *= sheet.outer;
    drop_outer();
  }
  if (sheet.outer > 1 && multiple(sheet.outer_stride, sheet.row_stride, sheet.rows)) {
    sheet.rows *= sheet.outer;
    drop_outer();
  }
  while (sheet.rows > 1 && side_by_side(sheet.row_stride)) {
    sheet.bytes *= sheet.rows;
    drop_rows();
  }
  if (sheet.rows == 1) std::fill_n(sheet.row_stride, operands, 0);
}

}  // namespace

std::uint32_t fold_widths(OpKind op, Datatype type) {
  return widths_for(bitwise(op) ? 1 : size_of(type));
}

void skip_empty(std::span<const Rows>& pieces) {
  while (!pieces.empty() && (pieces.front().block == 0 || pieces.front().rows == 0))
    pieces = pieces.subspan(1);
}

template <int operands>
Sheet<operands> take_sheet(std::span<const Rows>& pieces, std::int64_t element_bytes) {
  const Rows& first = pieces.front();
  Sheet<operands> sheet{};
  for (int k = 0; k < operands; ++k) {
    sheet.at[k] = first.at[k];
    sheet.row_stride[k] = first.rows > 1 ? first.stride[k] : 0;
  }
  sheet.bytes = first.block * element_bytes;
  sheet.rows = first.rows;
  sheet.outer = 1;
  while (sheet.outer < std::ssize(pieces)) {
    const Rows& next = pieces[static_cast<std::size_t>(sheet.outer)];
    bool fits = next.block == first.block && next.rows == first.rows;
    for (int k = 0; fits && k < operands; ++k) {
      const auto step = static_cast<std::int64_t>(number(next.at[k]) - number(sheet.at[k]));
      fits = first.rows == 1 || next.stride[k] == first.stride[k];
      if (sheet.outer == 1) {
        sheet.outer_stride[k] = step;
      } else {
        fits = fits && step == sheet.outer * sheet.outer_stride[k];
      }
    }
    if (!fits) break;
    ++sheet.outer;
  }
  if (sheet.outer == 1) std::fill_n(sheet.outer_stride, operands, 0);
  pieces = pieces.subspan(static_cast<std::size_t>(sheet.outer));
  simplify(sheet);
  return sheet;
}

template <int operands>
std::uint32_t width_of(const Sheet<operands>& sheet, std::uint32_t widths) {
  std::uint64_t alignment = strides_of(sheet) | static_cast<std::uint64_t>(sheet.bytes);
  for (const std::byte* at : sheet.at) alignment |= number(at);
  return widest_in(widths, alignment);
}

template <int operands>
std::optional<Peel> peel_of(const Sheet<operands>& sheet, std::uint32_t widths) {
  std::uint64_t apart = strides_of(sheet);
  for (const std::byte* at : sheet.at) apart |= number(at) - number(sheet.at[0]);
  const std::uint32_t width = widest_in(widths, apart);
  if (sheet.bytes < narrowest_body * width || width == width_of(sheet, widths)) return {};
  const auto mask = std::int64_t{width} - 1;
  const auto head = static_cast<std::int64_t>(-number(sheet.at[0])) & mask;
  const std::int64_t body = (sheet.bytes - head) & ~mask;
  return Peel{head, body, sheet.bytes - head - body, width};
}

std::optional<Tiles> tiles_of(const Sheet<2>& sheet) {
  if (sheet.bytes >= largest_cell || sheet.rows < 2 || sheet.outer < 2 ||
      sheet.outer > most_vectors || sheet.rows > most_vectors ||
      sheet.outer < least_cells / sheet.rows) {
    return {};
  }
  enum { into, from };
  const bool rows_into =
      sheet.row_stride[into] == sheet.bytes && sheet.outer_stride[from] == sheet.bytes;
  const bool rows_from =
      sheet.row_stride[from] == sheet.bytes && sheet.outer_stride[into] == sheet.bytes;
  if (!rows_into && !rows_from) return {};

  const std::int64_t a = rows_into ? sheet.outer : sheet.rows;
  const std::int64_t b = rows_into ? sheet.rows : sheet.outer;
  const auto up = [](std::int64_t cells) {
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(cells)));
  };
  const auto line = static_cast<std::int64_t>(std::bit_floor(
      static_cast<std::uint64_t>(std::max<std::int64_t>(line_bytes / sheet.bytes, 8))));
  std::int64_t tile_a = std::min(line, up(a)), tile_b = std::min(line, up(b));
  while (tile_a * tile_b * sheet.bytes < tile_bytes && tile_b < up(b)) tile_b *= 2;
  while (tile_a * tile_b * sheet.bytes < tile_bytes && tile_a < up(a)) tile_a *= 2;
  const std::int64_t across = (a + tile_a - 1) / tile_a;
  if ((b + tile_b - 1) / tile_b > most_vectors / across) return {};

  Tiles tiles;
  tiles.into = sheet.at[into];
  tiles.from = sheet.at[from];
  tiles.into_stride = rows_into ? sheet.outer_stride[into] : sheet.row_stride[into];
  tiles.from_stride = rows_into ? sheet.row_stride[from] : sheet.outer_stride[from];
  tiles.a = static_cast<std::uint32_t>(a);
  tiles.b = static_cast<std::uint32_t>(b);
  tiles.tile_a = static_cast<std::uint32_t>(tile_a);
  tiles.tile_b = static_cast<std::uint32_t>(tile_b);
  tiles.across = Divider(static_cast<std::uint32_t>(across));
  const auto cell = static_cast<std::uint32_t>(sheet.bytes);
  // Lines of `cells` cells, of which a tile has `tile`.
  const auto access = [&](Lines& lines, const std::byte* at, std::int64_t stride,
                          std::int64_t cells, std::int64_t tile) {
    const std::int64_t apart = stride | (cells | tile) * sheet.bytes;
    lines.width = widest_in(copy_widths, number(at) | static_cast<std::uint64_t>(apart));
    lines.accesses = Divider(static_cast<std::uint32_t>(tile) * cell / lines.width);
  };
  access(tiles.loads, tiles.from, tiles.from_stride, a, tile_a);
  access(tiles.stores, tiles.into, tiles.into_stride, b, tile_b);
  tiles.piece = std::min(tiles.stores.width, widest_in(shared_widths, cell));
  tiles.cell = Divider(cell / tiles.piece);
  // Threads side by side load squares of words and gather squares of cells. From line to line are
  // an odd number of words, so that a square lies in different banks.
  tiles.pitch = ((tiles.tile_a * cell + word - 1) / word | 1) * word;
  const auto square = [](std::uint32_t parts, std::uint32_t lines) {
    return static_cast<std::uint32_t>(std::bit_width(std::clamp(parts, 1u, lines)) - 1);
  };
  tiles.loads.together = square(tiles.loads.width / word, tiles.tile_b);
  tiles.stores.together = square(tiles.stores.width / cell, tiles.tile_a);
  return tiles;
}

template <int operands>
std::pair<Sheet<operands>, Sheet<operands>> halves(const Sheet<operands>& sheet,
                                                   std::uint32_t width) {
  const bool by_outer = sheet.outer > 1, by_rows = !by_outer && sheet.rows > 1;
  Sheet<operands> first = sheet, second = sheet;
  std::int64_t Sheet<operands>::*count = by_outer  ? &Sheet<operands>::outer
                                         : by_rows ? &Sheet<operands>::rows
                                                   : &Sheet<operands>::bytes;
  const std::int64_t unit = by_outer || by_rows ? 1 : width;
  first.*count = sheet.*count / unit / 2 * unit;
  second.*count = sheet.*count - first.*count;
  for (int k = 0; k < operands; ++k) {
    const std::int64_t step = by_outer ? sheet.outer_stride[k] : by_rows ? sheet.row_stride[k] : 1;
    second.at[k] += first.*count * step;
  }
  return {first, second};
}

// Numbers of operands: divide, copy and fold.
#define BATON_FOR(operands)                                                              \
  template Sheet<operands> take_sheet<(operands)>(std::span<const Rows>&, std::int64_t); \
  template std::uint32_t width_of(const Sheet<operands>&, std::uint32_t);                \
  template std::optional<Peel> peel_of(const Sheet<operands>&, std::uint32_t);           \
  template std::pair<Sheet<operands>, Sheet<operands>> halves(const Sheet<operands>&, std::uint32_t)
BATON_FOR(1);
BATON_FOR(2);
BATON_FOR(3);
#undef BATON_FOR

}  // namespace baton::cuda
