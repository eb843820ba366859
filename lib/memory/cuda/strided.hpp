#pragma once
/// The parameter of a launch: a batch of jobs, cut into units of one thread block each. Plain
/// values for host and device.

#include <bit>
#include <cstddef>
#include <cstdint>

#include "baton/device_code.hpp"

namespace baton::cuda {

inline constexpr std::uint32_t threads = 256;  ///< of a thread block
/// The most thread blocks of a launch for each multiprocessor. Registers allow this many: up to 64
/// a thread in folds and divisions, 32 in copies.
inline constexpr std::uint32_t fold_blocks = 4, copy_blocks = 8;
inline constexpr std::uint32_t widest = 16;  ///< bytes of one load or store

/// Widths, added up, of folds and divisions of elements of so many bytes.
constexpr std::uint32_t widths_for(std::size_t element_bytes) {
  return widest | (element_bytes < 4 ? 4 : 0) | static_cast<std::uint32_t>(element_bytes);
}
/// Widths, added up, of copies: all.
inline constexpr std::uint32_t copy_widths = 2 * widest - 1;

/// Vectors of each operand that a thread has in flight.
constexpr std::uint32_t in_flight(std::uint32_t width) { return width >= 8 ? 4 : 8; }
/// Vectors of one unit.
constexpr std::uint32_t stretch(std::uint32_t width) { return threads * in_flight(width); }

/// Bytes of a bank of shared memory, and the widths of accesses to it, added up.
inline constexpr std::uint32_t word = 4, shared_widths = 2 * word - 1;

/// Divides numbers below 2^31 by a constant from 1 to 2^31 - 1, by a product and a shift. Source:
/// Granlund & Montgomery, Division by invariant integers using multiplication, PLDI 1994.
class Divider {
 public:
  constexpr explicit Divider(std::uint32_t divisor = 1)
      : divisor_(divisor), shift_(31 + static_cast<std::uint32_t>(std::bit_width(divisor - 1))) {
    multiplier_ =
        static_cast<std::uint32_t>(((std::uint64_t{1} << shift_) + divisor - 1) / divisor);
  }

  BATON_DEVICE constexpr std::uint32_t divisor() const { return divisor_; }
  BATON_DEVICE constexpr std::uint32_t quotient(std::uint32_t number) const {
    return static_cast<std::uint32_t>(std::uint64_t{number} * multiplier_ >> shift_);
  }
  BATON_DEVICE constexpr std::uint32_t remainder(std::uint32_t number) const {
    return number - quotient(number) * divisor_;
  }

 private:
  std::uint32_t divisor_, multiplier_, shift_;
};

/// columns × rows × outer vectors of `width` bytes, the columns side by side.
template <int operands>
struct Strided {
  std::byte* at[operands];
  std::int64_t row_stride[operands], outer_stride[operands];  // bytes
  Divider columns, rows;
  std::uint32_t vectors;  // in all, below 2^31
  std::uint32_t width;
  std::uint32_t first_unit;

  constexpr std::uint32_t units() const { return (vectors + stretch(width) - 1) / stretch(width); }

  /// The address of vector `index` in operand k, counted column by column, then row by row.
  BATON_DEVICE std::byte* address(std::uint32_t index, int k) const {
    const std::uint32_t line = columns.quotient(index), plane = rows.quotient(line);
    const std::uint32_t column = index - line * columns.divisor();
    const std::uint32_t row = line - plane * rows.divisor();
    return at[k] + plane * outer_stride[k] + row * row_stride[k] +
           static_cast<std::int64_t>(column) * width;
  }
};

/// How threads share the lines of a tile on one side. Neighbouring threads access 2^together lines,
/// then neighbours in these lines, then the next lines.
struct Lines {
  Divider accesses;  // loads or stores of one line
  std::uint32_t together;
  std::uint32_t width;  // bytes of an access

  struct Place {
    std::uint32_t line, access;
  };
  BATON_DEVICE constexpr Place place(std::uint32_t index) const {
    const std::uint32_t column = index >> together, block = accesses.quotient(column);
    return {index - ((column - block) << together), column - block * accesses.divisor()};
  }
  /// The places 0, 1, ... that contain so many lines.
  BATON_DEVICE constexpr std::uint32_t places(std::uint32_t lines) const {
    return (((lines - 1) >> together) + 1) * accesses.divisor() << together;
  }
};

/// A transposition of a × b cells. In the source, neighbours along a lie side by side; in the
/// destination, neighbours along b. Both sides of a tile are lines of many cells. The tile turns in
/// shared memory: loads put cells of one line there, stores gather cells from several lines. Both
/// are as wide as their side allows.
struct Tiles {
  std::byte* into;
  const std::byte* from;
  std::int64_t into_stride,
      from_stride;               // bytes from a to a + 1 in `into`, from b to b + 1 in `from`
  std::uint32_t a, b;            // cells, each below 2^31
  std::uint32_t tile_a, tile_b;  // cells of one tile, powers of two
  Divider across;                // tiles along a
  Divider cell;                  // pieces of one cell
  Lines loads, stores;           // tile_b lines of the source, tile_a lines of the destination
  std::uint32_t piece;           // bytes that a store gathers at once: 1, 2 or 4
  std::uint32_t pitch;           // bytes from line to line of the source in shared memory
  std::uint32_t first_unit;

  BATON_DEVICE constexpr std::uint32_t cell_bytes() const { return cell.divisor() * piece; }
  constexpr std::uint32_t units() const { return across.divisor() * ((b - 1) / tile_b + 1); }
  constexpr std::uint32_t shared_bytes() const { return tile_b * pitch; }
};

/// Jobs of one launch, its only parameter.
template <class Job>
struct Batch {
  static constexpr std::uint32_t capacity = (4096 - 8) / sizeof(Job);

  std::uint32_t count = 0, units = 0;
  Job jobs[capacity];

  /// The job of a unit.
  BATON_DEVICE const Job& job_of(std::uint32_t unit) const {
    std::uint32_t low = 0, high = count;  // first units increase, from 0
    while (high - low > 1) {
      const std::uint32_t middle = (low + high) / 2;
      (jobs[middle].first_unit <= unit ? low : high) = middle;
    }
    return jobs[low];
  }
};
static_assert(sizeof(Batch<Strided<3>>) <= 4096);

}  // namespace baton::cuda
