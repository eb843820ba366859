#pragma once
/// Arguments of collectives: typed memory, without ownership.

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <span>
#include <string>

#include <type_traits>

#include "baton/types.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// A range of contiguous elements of a supported datatype (std::vector, std::span, std::array …).
template <class R>
concept ElementRange = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    Element<std::ranges::range_value_t<R>>;

/// `count` elements to read.
struct ConstData {
  const void* data = nullptr;
  std::int64_t count = 0;
  Datatype type = Datatype::f32;

  constexpr ConstData() = default;
  /// `count` elements, not bytes.
  constexpr ConstData(const void* data, std::int64_t count, Datatype type)
      : data(data), count(count), type(type) {}
  /// The elements of a range.
  template <ElementRange R>
  constexpr ConstData(const R& range)  // NOLINT: a range is data
      : data(std::ranges::data(range)),
        count(static_cast<std::int64_t>(std::ranges::size(range))),
        type(datatype_of<std::ranges::range_value_t<R>>) {}
};

/// `count` elements to write.
struct Data {
  void* data = nullptr;
  std::int64_t count = 0;
  Datatype type = Datatype::f32;

  constexpr Data() = default;
  /// `count` elements, not bytes.
  constexpr Data(void* data, std::int64_t count, Datatype type)
      : data(data), count(count), type(type) {}
  /// The elements of a range that can be written.
  template <ElementRange R>
  requires(
      !std::is_const_v<std::remove_reference_t<
          std::ranges::range_reference_t<R>>>) constexpr Data(R&& range)  // NOLINT: a range is data
      : data(std::ranges::data(range)),
        count(static_cast<std::int64_t>(std::ranges::size(range))),
        type(datatype_of<std::ranges::range_value_t<R>>) {}
  /// The same elements to read.
  constexpr operator ConstData() const { return {data, count, type}; }  // NOLINT
};

/// Extents of a row-major tensor of rank 0 to 8.
class Shape {
 public:
  static constexpr int max_rank = 8;
  constexpr Shape() = default;
  /// {b, s, h, d}; throws as the next constructor.
  Shape(std::initializer_list<std::int64_t> extents)  // NOLINT: {b, s, h, d} is a shape
      : Shape(std::span(extents.begin(), extents.size())) {}
  /// Throws Error(invalid_argument) beyond rank 8 or for a negative extent.
  explicit Shape(std::span<const std::int64_t> extents);

  int rank() const { return rank_; }  ///< dimensions
  /// The extent of a dimension, from 0 to rank() - 1.
  std::int64_t operator[](int dimension) const {
    return extents_[static_cast<std::size_t>(dimension)];
  }
  std::int64_t elements() const;  ///< product of all extents; 1 for rank 0
  /// Product of the extents [first, last).
  std::int64_t product(int first, int last) const;
  /// The same shape with another extent in one dimension.
  Shape with(int dimension, std::int64_t extent) const;
  /// "[4, 128, 8, 64]"
  std::string text() const;
  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, max_rank> extents_{};
  int rank_ = 0;
};

/// A row-major tensor to read.
struct ConstTensor {
  const void* data = nullptr;
  Datatype type = Datatype::f32;
  Shape shape;

  constexpr ConstTensor() = default;
  /// Elements of a datatype that is known at run time.
  constexpr ConstTensor(const void* data, Datatype type, const Shape& shape)
      : data(data), type(type), shape(shape) {}
  /// Elements of a C++ type.
  template <Element T>
  ConstTensor(const T* data, const Shape& shape) : ConstTensor(data, datatype_of<T>, shape) {}
};
/// A row-major tensor to write.
struct Tensor {
  void* data = nullptr;
  Datatype type = Datatype::f32;
  Shape shape;

  constexpr Tensor() = default;
  /// Elements of a datatype that is known at run time.
  constexpr Tensor(void* data, Datatype type, const Shape& shape)
      : data(data), type(type), shape(shape) {}
  /// Elements of a C++ type.
  template <Element T>
  Tensor(T* data, const Shape& shape) : Tensor(data, datatype_of<T>, shape) {}
  /// The same tensor to read.
  operator ConstTensor() const { return {data, type, shape}; }  // NOLINT: writable is readable
};

}  // namespace baton
#pragma GCC visibility pop
