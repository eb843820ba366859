#include "shapes.hpp"

#include <algorithm>

namespace dropin {

namespace {

constexpr MPI_Aint word = sizeof(int);

MPI_Datatype resized(MPI_Datatype type, int begin, int extent) {
  MPI_Datatype result;
  MPI_Type_create_resized(type, begin * word, extent * word, &result);
  MPI_Type_free(&type);
  return result;
}

MPI_Datatype contiguous() {
  MPI_Datatype type;
  MPI_Type_contiguous(4, MPI_INT, &type);
  return type;
}

MPI_Datatype vector(int count, int block, int stride) {
  MPI_Datatype type;
  MPI_Type_vector(count, block, stride, MPI_INT, &type);
  return type;
}

MPI_Datatype indexed(std::vector<int> at) {
  MPI_Datatype type;
  MPI_Type_create_indexed_block(static_cast<int>(at.size()), 1, at.data(), MPI_INT, &type);
  return type;
}

MPI_Datatype duplicate(MPI_Datatype type) {
  MPI_Datatype result;
  MPI_Type_dup(type, &result);
  MPI_Type_free(&type);
  return result;
}

MPI_Datatype structure() {
  const int lengths[] = {1, 2, 1};
  const MPI_Aint at[] = {0, 2 * word, 6 * word};
  const MPI_Datatype types[] = {MPI_INT, MPI_INT, MPI_INT};
  MPI_Datatype type;
  MPI_Type_create_struct(3, lengths, at, types, &type);
  return type;
}

/// The middle of a 3 x 4 matrix.
MPI_Datatype subarray() {
  const int sizes[] = {3, 4}, subsizes[] = {2, 2}, starts[] = {1, 1};
  MPI_Datatype type;
  MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &type);
  return type;
}

#if MPI_VERSION >= 4
MPI_Datatype large_contiguous() {
  MPI_Datatype type;
  MPI_Type_contiguous_c(4, MPI_INT, &type);
  return type;
}

MPI_Datatype large_indexed(std::vector<MPI_Count> at) {
  MPI_Datatype type;
  MPI_Type_create_indexed_block_c(static_cast<MPI_Count>(at.size()), 1, at.data(), MPI_INT, &type);
  return type;
}

/// Three ints of one member, then one of another.
MPI_Datatype large_structure(MPI_Count first, MPI_Count second) {
  const MPI_Count lengths[] = {3, 1}, at[] = {first * word, second * word};
  const MPI_Datatype types[] = {MPI_INT, MPI_INT};
  MPI_Datatype type;
  MPI_Type_create_struct_c(2, lengths, at, types, &type);
  return type;
}
#endif

}  // namespace

int Shape::begin() const { return std::min(0, *std::ranges::min_element(at)); }

Shapes::Shapes() : shapes_ {
  {"ints", MPI_INT, 4, 4, {0, 1, 2, 3}}, {"contiguous", contiguous(), 1, 4, {0, 1, 2, 3}},
      {"half", vector(1, 2, 2), 2, 4, {0, 1, 2, 3}},
      {"vector", vector(2, 2, 3), 1, 5, {0, 1, 3, 4}},
      {"permuted", indexed({3, 1, 0, 2}), 1, 4, {3, 1, 0, 2}},
      {"struct", structure(), 1, 7, {0, 2, 3, 6}},
      {"padded", resized(contiguous(), 0, 6), 1, 6, {0, 1, 2, 3}},
      {"below", resized(indexed({-2, 1, 0, 3}), -3, 8), 1, 8, {-2, 1, 0, 3}},
      {"subarray", subarray(), 1, 12, {5, 6, 9, 10}},
      {"dup", duplicate(indexed({1, 0, 3, 2})), 1, 4, {1, 0, 3, 2}},
      // A column of a matrix, so resized that the next element is the next column.
      {"column", resized(vector(4, 1, 100), 0, 1), 1, 1, {0, 100, 200, 300}},
#if MPI_VERSION >= 4
      {"large contiguous", large_contiguous(), 1, 4, {0, 1, 2, 3}},
      {"large permuted", large_indexed({3, 1, 0, 2}), 1, 4, {3, 1, 0, 2}},
      {"large struct", large_structure(0, 3), 1, 4, {0, 1, 2, 3}},
      {"large turned struct", large_structure(1, 0), 1, 4, {1, 2, 3, 0}},
      {"dup of large", duplicate(large_contiguous()), 1, 4, {0, 1, 2, 3}},
#endif
}
{
  for (Shape& shape : shapes_)
    if (shape.type != MPI_INT) MPI_Type_commit(&shape.type);
}

Shapes::~Shapes() {
  for (Shape& shape : shapes_)
    if (shape.type != MPI_INT) MPI_Type_free(&shape.type);
}

Image::Image(const Shape& shape, int elements)
    : shape_(&shape),
      begin_(shape.begin()),
      words_(elements == 0 ? 0
                           : shape.extent * (elements - 1) + *std::ranges::max_element(shape.at) +
                                 1 - shape.begin()) {
  if (elements == 0) begin_ = 0;
}

void Image::store(int at, int count, int source, int destination) {
  for (int i = 0; i < count; ++i)
    for (int k = 0; k < 4; ++k)
      words_[(at + i) * shape_->extent + shape_->at[k] - begin_] =
          static_cast<int>(mixed(source, destination, 4 * i + k));
}

}  // namespace dropin
