#pragma once
/// Derived datatypes of four ints, as they lie in memory in many ways.

#include "suite.hpp"

namespace dropin {

/// A datatype of ints, and where they are.
struct Shape {
  const char* name;
  MPI_Datatype type;
  int per_element;      ///< of the datatype for every four ints
  int extent;           ///< of those four ints, in ints
  std::vector<int> at;  ///< of each of them, in ints from the address

  int begin() const;  ///< the least of `at`, or 0
};

/// All of one type signature per four ints, so that any of them may be sent and any received.
class Shapes {
 public:
  Shapes();
  ~Shapes();
  Shapes(const Shapes&) = delete;
  Shapes& operator=(const Shapes&) = delete;

  const std::vector<Shape>& all() const { return shapes_; }

 private:
  std::vector<Shape> shapes_;
};

/// Memory of elements of a shape; everything around them untouched.
class Image {
 public:
  Image(const Shape& shape, int elements);
  /// The ints that `source` sends to `destination`, as `count` elements from element `at` on.
  void store(int at, int count, int source, int destination);
  void* data() { return words_.data() - begin_; }
  operator std::span<const std::byte>() const { return words_; }  // NOLINT: free

 private:
  const Shape* shape_;
  int begin_;
  Buffer<int> words_;
};

}  // namespace dropin
