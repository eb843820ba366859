#pragma once

#include <cstdint>

#include "cli/common/typed.hpp"

namespace baton::cli::measure {

/// Which numbers an input consists of.
enum class Fill : std::uint8_t {
  bits,    ///< any bits: for collectives that only move data
  exact,   ///< numbers whose reduction is exact in the datatype, in any order
  random,  ///< floating-point numbers whose reduction rounds
};

/// The inputs of all ranks, as a function of rank and element: what one rank holds, any other can
/// compute.
class Values {
 public:
  Values(Fill fill, OpKind op, Datatype type, int ranks)
      : fill_(fill), op_(op), type_(type), ranks_(ranks) {}

  Fill fill() const { return fill_; }
  Datatype type() const { return type_; }
  /// to = elements [first, first + count) of the rank's input.
  void write(int rank, std::int64_t first, std::int64_t count, void* to) const;

 private:
  template <class T>
  void write_as(int rank, std::int64_t first, std::int64_t count, void* to) const;
  Fill fill_;
  OpKind op_;
  Datatype type_;
  int ranks_;
};

/// Unit roundoff of a floating-point datatype; 0 for integers.
double unit_roundoff(Datatype type);
/// The smallest positive number of a floating-point datatype; 0 for integers.
double least_positive(Datatype type);

}  // namespace baton::cli::measure
