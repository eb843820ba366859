#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace baton::pmpi {

/// A list of counts or displacements, as the program gave it or copied: ints or, in MPI 4's large
/// forms, 64-bit integers.
class Numbers {
 public:
  Numbers() = default;
  Numbers(const int* numbers) : data_(numbers) {}  // NOLINT: stands for the list
  /// Of MPI_Count or MPI_Aint.
  template <class Wide>
  Numbers(const Wide* numbers) : data_(numbers), wide_(true) {  // NOLINT: stands for the list
    static_assert(sizeof(Wide) == sizeof(std::int64_t));
  }

  explicit operator bool() const { return data_ != nullptr; }
  std::int64_t operator[](int i) const {
    if (!wide_) return static_cast<const int*>(data_)[i];
    std::int64_t number = 0;  // MPI_Count may be another type of the same size
    std::memcpy(&number, static_cast<const std::int64_t*>(data_) + i, sizeof number);
    return number;
  }
  /// The program's list.
  template <class Number>
  const Number* as() const {
    return static_cast<const Number*>(data_);
  }
  /// Moves the first `count` numbers into `copy` and refers to them there.
  void copy_to(std::vector<std::int64_t>& copy, int count) {
    if (!data_) return;
    copy.resize(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) copy[static_cast<std::size_t>(i)] = (*this)[i];
    *this = copy.data();
  }

 private:
  const void* data_ = nullptr;
  bool wide_ = false;
};

}  // namespace baton::pmpi
