#pragma once
/// What device memory's kernels must do, checked bit by bit against plain loops, on whatever runs
/// them.

#include <vector>

#include "memory/cuda/kernels.hpp"
#include "samples.hpp"

namespace cuda_cases {

/// All the memory of one case. Addresses in Rows are offsets into it.
using Image = samples::Bytes;
using Pieces = std::vector<baton::Rows>;

/// Copies an image to where kernels work, has them change it, and gives back what became of it.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual Image fold(baton::OpKind op, baton::Datatype type, Pieces pieces, const Image& image) = 0;
  virtual Image divide(baton::Datatype type, int ranks, Pieces pieces, const Image& image) = 0;
  virtual Image copy(std::size_t element_bytes, Pieces pieces, const Image& image) = 0;
};

/// The pieces, at addresses.
Pieces placed(Pieces pieces, std::byte* base);

/// Each contains checks of doctest.
void folds_of_every_count_and_alignment(Backend& backend);
void folds_in_place(Backend& backend);
void folds_of_strided_pieces(Backend& backend);
void all_pairs_of_special_values(Backend& backend);
void divisions(Backend& backend);
void all_16_bit_floats_divided(Backend& backend);
void strided_copies(Backend& backend);
void random_lists_of_copies(Backend& backend);
void transpositions(Backend& backend);
void transpositions_of_every_width(Backend& backend);

}  // namespace cuda_cases
