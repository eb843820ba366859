#pragma once
/// MPI's predefined datatypes and operations, each with a model that computes what it should give.

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

namespace dropin {

/// The value of an element of any datatype: of a number (a), of a complex number (a + bi), or of a
/// pair with its index (a, b).
struct Value {
  std::int64_t a = 0, b = 0;
  bool operator==(const Value&) const = default;
};

/// The classes that MPI's operations are defined on.
enum Kind : unsigned {
  integer = 1,
  fortran_integer = 2,
  floating = 4,
  logical = 8,
  complex = 16,
  byte = 32,
  multi_language = 64,
  indexed_pair = 128,
  only_moved = 256,  ///< no operation of MPI's is defined on it
};

struct Datatype {
  std::string name;
  MPI_Datatype handle;
  Kind kind;
  std::size_t extent;  ///< in bytes
  void (*store)(Value value, void* at);
  Value (*load)(const void* at);
};

/// Those that the MPI library has and that a C++ type stands for.
std::vector<Datatype> predefined_datatypes();

struct Operation {
  std::string name;
  MPI_Op handle;
  unsigned kinds;  ///< that it is defined on
  Value (*fold)(Kind kind, Value left, Value right);
  /// What a rank has as its i-th element: such that no result overflows 8 bits with sign.
  Value (*input)(Kind kind, int rank, int i, int size);
};

std::vector<Operation> predefined_operations();

}  // namespace dropin
