#include "message.hpp"

#include <cassert>

#include "check.hpp"

namespace baton::mpi {

LongType::LongType(std::size_t bytes, std::size_t block) {
  assert(block <= most_bytes && bytes / block <= most_bytes);
  const auto blocks = static_cast<int>(bytes / block);
  MPI_Datatype one = MPI_DATATYPE_NULL;
  check(MPI_Type_contiguous(static_cast<int>(block), MPI_BYTE, &one), "MPI_Type_contiguous");
  const int lengths[] = {blocks, static_cast<int>(bytes % block)};
  const MPI_Aint offsets[] = {0, static_cast<MPI_Aint>(bytes - bytes % block)};
  const MPI_Datatype types[] = {one, MPI_BYTE};
  const int made = MPI_Type_create_struct(2, lengths, offsets, types, &type_);
  check(MPI_Type_free(&one), "MPI_Type_free");
  check(made, "MPI_Type_create_struct");
  check(MPI_Type_commit(&type_), "MPI_Type_commit");
}

LongType::~LongType() {
  // Nothing can be done about a failure here but to keep the type.
  if (type_ != MPI_DATATYPE_NULL && MPI_Type_free(&type_) != MPI_SUCCESS) type_ = MPI_DATATYPE_NULL;
}

}  // namespace baton::mpi
