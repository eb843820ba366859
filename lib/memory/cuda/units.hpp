#pragma once
/// The work of one thread for one unit of a batch, on host and device. Tests run it without a
/// device.

#include "element.hpp"
#include "strided.hpp"

namespace baton::cuda {

template <std::uint32_t width>
BATON_DEVICE Vector<width> load(const std::byte* at) {
  return *reinterpret_cast<const Vector<width>*>(at);
}
template <std::uint32_t width>
BATON_DEVICE void store(std::byte* at, const Vector<width>& vector) {
  *reinterpret_cast<Vector<width>*>(at) = vector;
}

BATON_DEVICE constexpr std::uint32_t least(std::uint32_t a, std::uint32_t b) {
  return a < b ? a : b;
}

/// into = op(in...) for the thread's vectors of a unit. All loads precede all stores, so `into` may
/// be an operand.
template <std::uint32_t width, int operands, class Op>
BATON_DEVICE void transform(const Strided<operands>& job, std::uint32_t unit, std::uint32_t thread,
                            Op op) {
  constexpr int ins = operands == 1 ? 1 : operands - 1, first_in = operands - ins;
  constexpr std::uint32_t count = in_flight(width);
  const std::uint32_t first = (unit - job.first_unit) * stretch(width) + thread;
  Vector<width> in[ins][count];
  BATON_UNROLL
  for (std::uint32_t i = 0; i < count; ++i) {
    // Repeats the last vector beyond the end, so that no branch separates the loads.
    const std::uint32_t index = least(first + i * threads, job.vectors - 1);
    for (int k = 0; k < ins; ++k) in[k][i] = load<width>(job.address(index, first_in + k));
  }
  BATON_UNROLL
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t index = first + i * threads;
    if (index >= job.vectors) continue;
    if constexpr (ins == 1) {
      store(job.address(index, 0), op(in[0][i]));
    } else {
      store(job.address(index, 0), op(in[0][i], in[1][i]));
    }
  }
}

/// Calls `call` with the width as a constant: one of `widths`, added up, widest first.
// NOLINTBEGIN(bugprone-branch-clone): one condition is constant, the other is not
template <std::uint32_t widths, std::uint32_t width = widest, class Call>
BATON_DEVICE void at_width(std::uint32_t wanted, Call call) {
  if constexpr (width == 1 || (widths & (width - 1)) == 0) {
    call(std::integral_constant<std::uint32_t, width>());
  } else if constexpr ((widths & width) == 0) {
    at_width<widths, width / 2>(wanted, call);
  } else if (wanted == width) {
    call(std::integral_constant<std::uint32_t, width>());
  } else {
    at_width<widths, width / 2>(wanted, call);
  }
}
// NOLINTEND(bugprone-branch-clone)

template <OpKind op, class T>
BATON_DEVICE void fold_unit(const Batch<Strided<3>>& batch, std::uint32_t unit,
                            std::uint32_t thread) {
  const auto& job = batch.job_of(unit);
  at_width<widths_for(sizeof(T))>(job.width, [&](auto width) {
    transform<width>(job, unit, thread, [](const auto& left, const auto& right) {
      return combine<op, T>(left, right);
    });
  });
}

template <class T>
BATON_DEVICE void divide_unit(const Batch<Strided<1>>& batch, int ranks, std::uint32_t unit,
                              std::uint32_t thread) {
  const auto& job = batch.job_of(unit);
  at_width<widths_for(sizeof(T))>(job.width, [&](auto width) {
    transform<width>(job, unit, thread, [=](const auto& value) { return divide<T>(value, ranks); });
  });
}

BATON_DEVICE void copy_unit(const Batch<Strided<2>>& batch, std::uint32_t unit,
                            std::uint32_t thread) {
  const auto& job = batch.job_of(unit);
  at_width<copy_widths>(job.width, [&](auto width) {
    transform<width>(job, unit, thread, [](const auto& value) { return value; });
  });
}

/// The first cell of a unit's tile.
struct Corner {
  std::uint32_t a, b;
};
BATON_DEVICE Corner corner_of(const Tiles& tiles, std::uint32_t unit) {
  const std::uint32_t tile = unit - tiles.first_unit, down = tiles.across.quotient(tile);
  return {(tile - down * tiles.across.divisor()) * tiles.tile_a, down * tiles.tile_b};
}

/// Copies a tile to shared memory, in lines along a.
BATON_DEVICE void tile_in(const Batch<Tiles>& batch, std::uint32_t unit, std::uint32_t thread,
                          std::byte* shared) {
  const Tiles& tiles = batch.job_of(unit);
  const auto [a, b] = corner_of(tiles, unit);
  const std::uint32_t lines = least(tiles.b - b, tiles.tile_b);
  const std::uint32_t bytes = least(tiles.a - a, tiles.tile_a) * tiles.cell_bytes();
  const std::byte* from =
      tiles.from + std::int64_t{b} * tiles.from_stride + std::int64_t{a} * tiles.cell_bytes();
  at_width<copy_widths>(tiles.loads.width, [&](auto width) {
    constexpr std::uint32_t count = least(8, 32 / width);  // in flight
    using Words = Lanes<Vector<least(word, width)>, width>;
    for (std::uint32_t first = thread; first < tiles.loads.places(lines);
         first += count * threads) {
      // Repeats the last accesses beyond an edge, so that no branch separates them.
      const auto inside = [&](std::uint32_t i) -> Lines::Place {
        const auto [line, access] = tiles.loads.place(first + i * threads);
        return {least(line, lines - 1), least(access, bytes / width - 1)};
      };
      Vector<width> in[count];
      BATON_UNROLL
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto [line, access] = inside(i);
        in[i] = load<width>(from + line * tiles.from_stride + access * width);
      }
      BATON_UNROLL
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto [line, access] = inside(i);
        std::byte* into = shared + line * tiles.pitch + access * width;
        const auto words = std::bit_cast<Words>(in[i]);
        for (const auto& lane : words.lane) {
          store(into, lane);
          into += sizeof lane;
        }
      }
    }
  });
}

/// `width` bytes of a line along b, from pieces in shared memory. The first is number `within` of
/// its cell's and lies at `from`; the next cell lies `pitch` bytes after its cell.
template <std::uint32_t width, std::uint32_t piece>
BATON_DEVICE Vector<width> gather(const std::byte* from, std::uint32_t within, std::uint32_t cell,
                                  std::uint32_t pitch) {
  Lanes<Vector<piece>, width> pieces;
  BATON_UNROLL
  for (auto& lane : pieces.lane) {
    lane = load<piece>(from);
    from += piece;
    if (++within == cell) {
      within = 0;
      from += pitch - cell * piece;
    }
  }
  return std::bit_cast<Vector<width>>(pieces);
}

/// Copies a tile from shared memory, in lines along b.
BATON_DEVICE void tile_out(const Batch<Tiles>& batch, std::uint32_t unit, std::uint32_t thread,
                           const std::byte* shared) {
  const Tiles& tiles = batch.job_of(unit);
  const auto [a, b] = corner_of(tiles, unit);
  const std::uint32_t lines = least(tiles.a - a, tiles.tile_a);
  const std::uint32_t bytes = least(tiles.b - b, tiles.tile_b) * tiles.cell_bytes();
  std::byte* into =
      tiles.into + std::int64_t{a} * tiles.into_stride + std::int64_t{b} * tiles.cell_bytes();
  const auto turn = [&](auto width, auto piece, auto single) {
    for (std::uint32_t index = thread; index < tiles.stores.places(lines); index += threads) {
      const auto [line, access] = tiles.stores.place(index);
      if (line >= lines || access * width >= bytes) continue;
      const std::uint32_t first = access * (width / piece);
      const std::uint32_t cell = single ? 1 : tiles.cell.divisor();
      const std::uint32_t at_b = single ? first : tiles.cell.quotient(first);
      const std::uint32_t within = first - at_b * cell;
      store(into + line * tiles.into_stride + access * width,
            gather<width, piece>(shared + at_b * tiles.pitch + (line * cell + within) * piece,
                                 within, cell, tiles.pitch));
    }
  };
  at_width<copy_widths>(tiles.stores.width, [&](auto width) {
    constexpr std::uint32_t widths = shared_widths & (2 * width - 1);
    at_width<widths>(tiles.piece, [&](auto piece) {
      if (tiles.cell.divisor() == 1) {  // a constant saves most of the arithmetic
        turn(width, piece, std::true_type());
      } else {
        turn(width, piece, std::false_type());
      }
    });
  });
}

}  // namespace baton::cuda
