#include "cuda_cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <string>

namespace cuda_cases {
namespace {

using namespace baton;
using baton::Rows;

std::byte* at(std::int64_t offset) { return reinterpret_cast<std::byte*>(offset); }

Image random_bytes(std::size_t bytes, std::mt19937_64& generator) {
  Image image(bytes);
  for (auto& byte : image) byte = static_cast<unsigned char>(generator());
  return image;
}

/// What a step's pieces make of an image, block by block.
template <class Block>
Image expected(const Pieces& pieces, Image image, Block block) {
  const Pieces here = placed(pieces, reinterpret_cast<std::byte*>(image.data()));
  for (const Rows& piece : here) {
    for (std::int64_t row = 0; row < piece.rows; ++row) {
      std::byte* blocks[3];
      for (int k = 0; k < 3; ++k) blocks[k] = piece.at[k] + row * piece.stride[k];
      block(blocks, static_cast<std::size_t>(piece.block));
    }
  }
  return image;
}

Image folded(OpKind op, Datatype type, const Pieces& pieces, const Image& image) {
  return expected(pieces, image, [&](auto blocks, std::size_t count) {
    host::reference_fold(op, type)(blocks[0], blocks[1], blocks[2], count);
  });
}

Image divided(Datatype type, int ranks, const Pieces& pieces, const Image& image) {
  return expected(pieces, image, [&](auto blocks, std::size_t count) {
    host::reference_divide(type)(blocks[0], count, ranks);
  });
}

Image copied(std::size_t element_bytes, const Pieces& pieces, const Image& image) {
  return expected(pieces, image, [&](auto blocks, std::size_t count) {
    std::memcpy(blocks[0], blocks[1], count * element_bytes);
  });
}

/// The first place where two images differ, or -1.
std::int64_t difference(const Image& expected, const Image& found) {
  REQUIRE(expected.size() == found.size());
  if (expected == found) return -1;
  const auto [e, f] = std::mismatch(expected.begin(), expected.end(), found.begin());
  return e == expected.end() ? -1 : e - expected.begin();
}

void check_fold(Backend& backend, OpKind op, Datatype type, const Pieces& pieces,
                const Image& image) {
  CAPTURE(name(op));
  CAPTURE(name(type));
  CHECK(difference(folded(op, type, pieces, image), backend.fold(op, type, pieces, image)) == -1);
}

void check_copy(Backend& backend, std::size_t element_bytes, const Pieces& pieces,
                const Image& image) {
  CAPTURE(element_bytes);
  CHECK(difference(copied(element_bytes, pieces, image),
                   backend.copy(element_bytes, pieces, image)) == -1);
}

/// Cells of a matrix, each to its place in the transposed one.
struct Turn {
  std::size_t element;
  std::int64_t block, columns, rows;  // of the source; a cell is a block of elements
  struct Side {
    std::int64_t at, padding;  // of its lines, all in bytes
  } into, from;
};

/// Checks both directions: column after column to rows, and back.
void check_turn(Backend& backend, const Turn& turn, const Image& image) {
  const auto cell = static_cast<std::int64_t>(turn.element) * turn.block;
  const std::int64_t wide = turn.columns * cell + turn.from.padding;
  const std::int64_t high = turn.rows * cell + turn.into.padding;
  Pieces there, back;
  for (std::int64_t j = 0; j < turn.columns; ++j) {
    std::byte *column = at(turn.from.at + j * cell), *row = at(turn.into.at + j * high);
    there.push_back(
        {.at = {row, column}, .stride = {cell, wide}, .block = turn.block, .rows = turn.rows});
    back.push_back(
        {.at = {column, row}, .stride = {wide, cell}, .block = turn.block, .rows = turn.rows});
  }
  CAPTURE(turn.block);
  const std::string size = std::to_string(turn.columns) + " x " + std::to_string(turn.rows);
  CAPTURE(size);
  CAPTURE(turn.into.at);
  CAPTURE(turn.from.at);
  check_copy(backend, turn.element, there, image);
  check_copy(backend, turn.element, back, image);
}

}  // namespace

Pieces placed(Pieces pieces, std::byte* base) {
  for (Rows& piece : pieces)
    for (std::byte*& address : piece.at) address = base + reinterpret_cast<std::uintptr_t>(address);
  return pieces;
}

void folds_of_every_count_and_alignment(Backend& backend) {
  std::mt19937_64 generator(1);
  for (const Datatype type : samples::datatypes()) {
    const auto bytes = static_cast<std::int64_t>(size_of(type));
    for (const std::int64_t count : {0, 1, 2, 15, 16, 17, 255, 1031, 4097, 20011}) {
      // Three operands with room before, between and behind, as far off 16 bytes as skew says.
      const std::int64_t apart = (count * bytes + 79) / 16 * 16;
      const Image image =
          samples::random(type, static_cast<std::size_t>(3 * apart / bytes + 16), generator);
      std::vector<std::array<std::int64_t, 3>> skews{{0, 0, 0}, {bytes, bytes, bytes}};
      for (int i = 0; i < 2; ++i) {
        std::array<std::int64_t, 3> skew;
        for (auto& offset : skew)
          offset = static_cast<std::int64_t>(generator() % 16) / bytes * bytes;
        skews.push_back(skew);
      }
      for (const auto& skew : skews) {
        CAPTURE(count);
        CAPTURE(skew[0]);
        CAPTURE(skew[1]);
        CAPTURE(skew[2]);
        const Pieces pieces{
            {.at = {at(16 + skew[0]), at(16 + apart + skew[1]), at(16 + 2 * apart + skew[2])},
             .block = count}};
        for (const OpKind op : samples::ops_on(type)) check_fold(backend, op, type, pieces, image);
      }
    }
  }
}

void folds_in_place(Backend& backend) {
  std::mt19937_64 generator(2);
  for (const Datatype type : samples::datatypes()) {
    const Image image = samples::random(type, 10000, generator);
    const auto bytes = static_cast<std::int64_t>(size_of(type));
    std::byte *left = at(bytes), *right = at(5000 * bytes);
    for (const OpKind op : samples::ops_on(type)) {
      check_fold(backend, op, type, {{.at = {left, left, right}, .block = 4099}}, image);
      check_fold(backend, op, type, {{.at = {right, left, right}, .block = 4099}}, image);
      check_fold(backend, op, type, {{.at = {left, left, left}, .block = 4099}}, image);
    }
  }
}

void folds_of_strided_pieces(Backend& backend) {
  std::mt19937_64 generator(3);
  for (const Datatype type : samples::datatypes()) {
    const Image image = samples::random(type, 9000, generator);
    const auto bytes = static_cast<std::int64_t>(size_of(type));
    for (const std::int64_t block : {1, 3, 16, 33}) {
      // Rows at a different distance in each operand, then more pieces than one launch takes.
      Pieces pieces{{.at = {at(0), at(3000 * bytes), at(6000 * bytes)},
                     .stride = {(block + 1) * bytes, (block + 16) * bytes, block * bytes},
                     .block = block,
                     .rows = 50}};
      for (int i = 0; i < 60; ++i) {
        const std::int64_t first = 2500 + i * 7 + i % 3;
        pieces.push_back(
            {.at = {at(first * bytes), at((first + 3000) * bytes), at((first + 5900) * bytes)},
             .block = i % 5});
      }
      CAPTURE(block);
      for (const OpKind op : samples::ops_on(type)) check_fold(backend, op, type, pieces, image);
    }
  }
}

void all_pairs_of_special_values(Backend& backend) {
  for (const Datatype type : samples::datatypes()) {
    const auto specials = samples::special(type);
    const std::size_t count = specials.size() * specials.size();
    const auto offset = static_cast<std::int64_t>(count * size_of(type));
    Image image(3 * count * size_of(type));
    for (std::size_t i = 0; i < count; ++i) {
      samples::put(image, count + i, type, specials[i / specials.size()]);
      samples::put(image, 2 * count + i, type, specials[i % specials.size()]);
    }
    const Pieces pieces{
        {.at = {at(0), at(offset), at(2 * offset)}, .block = static_cast<std::int64_t>(count)}};
    for (const OpKind op : samples::ops_on(type)) check_fold(backend, op, type, pieces, image);
  }
}

void divisions(Backend& backend) {
  std::mt19937_64 generator(4);
  for (const Datatype type : samples::datatypes()) {
    const auto bytes = static_cast<std::int64_t>(size_of(type));
    for (const std::int64_t count : {0, 1, 15, 16, 17, 4097}) {
      const Image image = samples::random(type, static_cast<std::size_t>(count) + 300, generator);
      const Pieces pieces{
          {.at = {at(bytes)}, .block = count},
          {.at = {at((count + 20) * bytes)}, .stride = {5 * bytes}, .block = 3, .rows = 50}};
      for (const int ranks : {1, 2, 3, 7, 100, 1000, 4096}) {
        CAPTURE(name(type));
        CAPTURE(count);
        CAPTURE(ranks);
        CHECK(difference(divided(type, ranks, pieces, image),
                         backend.divide(type, ranks, pieces, image)) == -1);
      }
    }
  }
}

void all_16_bit_floats_divided(Backend& backend) {
  for (const Datatype type : {Datatype::f16, Datatype::bf16}) {
    Image image(2 << 16);
    for (std::size_t i = 0; i <= 0xffff; ++i) samples::put(image, i, type, i);
    const Pieces pieces{{.at = {at(0)}, .block = 1 << 16}};
    for (const int ranks : {1, 2, 3, 5, 7, 48, 1000, 100000}) {
      CAPTURE(name(type));
      CAPTURE(ranks);
      CHECK(difference(divided(type, ranks, pieces, image),
                       backend.divide(type, ranks, pieces, image)) == -1);
    }
  }
}

void strided_copies(Backend& backend) {
  std::mt19937_64 generator(5);
  const Image image = random_bytes(200000, generator);
  for (const std::size_t element : {1, 2, 3, 4, 8, 16, 24}) {
    const auto bytes = static_cast<std::int64_t>(element);
    for (const std::int64_t block : {1, 2, 7, 64, 200}) {
      for (const std::int64_t skew : {0, 1, 4}) {
        CAPTURE(block);
        CAPTURE(skew);
        const std::int64_t wide = (block + 3) * bytes, from = 100000 + skew;
        // Packed from strided, strided from packed, strided both, one block.
        check_copy(backend, element,
                   {{.at = {at(16), at(from)},
                     .stride = {block * bytes, wide},
                     .block = block,
                     .rows = 17}},
                   image);
        check_copy(backend, element,
                   {{.at = {at(16), at(from)},
                     .stride = {wide, block * bytes},
                     .block = block,
                     .rows = 17}},
                   image);
        check_copy(
            backend, element,
            {{.at = {at(16), at(from)}, .stride = {wide, wide + 16}, .block = block, .rows = 17}},
            image);
        check_copy(backend, element, {{.at = {at(16), at(from)}, .block = block * 100 / 7}}, image);
      }
    }
  }
}

void random_lists_of_copies(Backend& backend) {
  std::mt19937_64 generator(6);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(generator() % static_cast<std::uint64_t>(n));
  };
  for (int trial = 0; trial < 40; ++trial) {
    const Image image = random_bytes(400000, generator);
    const std::size_t element = std::size_t{1} << below(5);
    const auto bytes = static_cast<std::int64_t>(element);
    Pieces pieces;
    std::int64_t into = below(20), from = 200000 + below(20);
    while (std::ssize(pieces) < 150 && into < 150000 && from < 350000) {
      Rows piece{.block = below(20), .rows = below(8)};
      piece.stride[0] = (piece.block + below(3)) * bytes;
      piece.stride[1] = (piece.block + below(3)) * bytes;
      // Some lists continue as they began, so that pieces join.
      for (std::int64_t again = 1 + below(4); again > 0; --again) {
        piece.at[0] = at(into);
        piece.at[1] = at(from);
        pieces.push_back(piece);
        into += piece.rows * piece.stride[0] + piece.block * bytes;
        from += piece.rows * piece.stride[1] + piece.block * bytes;
      }
    }
    CAPTURE(trial);
    check_copy(backend, element, pieces, image);
  }
}

void transpositions(Backend& backend) {
  std::mt19937_64 generator(7);
  const Image image = random_bytes(900000, generator);
  const std::pair<std::int64_t, std::int64_t> sizes[] = {
      {2, 40}, {3, 1000}, {8, 64}, {64, 8}, {33, 65}, {130, 70}, {5, 2000}, {8, 4096}, {264, 520}};
  for (const std::size_t element : {1, 2, 4, 8, 16}) {
    for (const std::int64_t block : {1, 3}) {
      for (const auto& [columns, rows] : sizes) {
        if (static_cast<std::int64_t>(element) * block * columns * rows > 300000) continue;
        for (const std::int64_t padding : {0, 5 * static_cast<int>(element)}) {
          check_turn(backend, {element, block, columns, rows, {16, padding}, {400000, padding}},
                     image);
        }
      }
    }
  }
}

void transpositions_of_every_width(Backend& backend) {
  std::mt19937_64 generator(8);
  const Image image = random_bytes(400000, generator);
  for (const std::int64_t cell : {1, 2, 3, 4, 6, 8, 12, 16}) {
    for (const std::int64_t into : {1, 2, 4, 8, 16}) {
      for (const std::int64_t from : {1, 2, 4, 8, 16})
        check_turn(backend, {1, cell, 48, 208, {into, 16}, {200000 + from, 32}}, image);
    }
  }
}

}  // namespace cuda_cases
