#pragma once
/// Tensors of the transformer: strided views, and arrays that own row-major elements.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "baton/data.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

namespace detail {
// Each throws Error(invalid_argument) that names what was asked of which shape.
[[noreturn]] void refuse_index(const Shape& shape, int dim, std::int64_t index);
[[noreturn]] void refuse_slice(const Shape& shape, int dim, std::int64_t begin, std::int64_t end);
[[noreturn]] void refuse_reshape(const Shape& from, const Shape& to, bool contiguous);
[[noreturn]] void refuse_dim(const Shape& shape, int dim);
/// Memory for a tensor, aligned to a cache line: the accelerator's if the thread has one, else the
/// host's. Throws Error(unsupported, memory) if there is not enough.
std::shared_ptr<void> aligned_bytes(const Shape& shape, std::size_t element_bytes);
/// Sets memory of aligned_bytes() to zero.
void zero(void* data, std::size_t bytes);
/// Bytes by purpose (held.hpp).
struct Counters;
/// Counts memory of aligned_bytes() for another purpose.
void count_as(int purpose, const std::shared_ptr<void>& memory);
}  // namespace detail

/// Elements of a tensor, without ownership. Dimensions may have any strides. Wrong dimensions,
/// slices and shapes throw Error(invalid_argument), and in debug builds (BATON_CHECK_INDEXES) so do
/// wrong indexes.
template <class T>
class View {
 public:
  static constexpr Datatype type = datatype_of<T>;
  using Strides = std::array<std::int64_t, Shape::max_rank>;  ///< in elements

  /// No elements, no memory.
  View() = default;
  /// Row-major elements.
  View(T* data, const Shape& shape) : data_(data), shape_(shape) {
    std::int64_t stride = 1;
    for (int d = shape.rank(); d-- > 0; stride *= shape[d]) strides_[at(d)] = stride;
  }
  /// Elements with these strides.
  View(T* data, const Shape& shape, const Strides& strides)
      : data_(data), shape_(shape), strides_(strides) {}
  /// The same elements to read.
  operator View<const T>() const  // NOLINT: writable is readable
      requires(!std::is_const_v<T>) {
    return {data_, shape_, strides_};
  }

  /// The first element.
  T* data() const { return data_; }
  /// Whether there is no memory. A view of a shape without elements may have some.
  bool empty() const { return data_ == nullptr; }
  /// The number of elements in each dimension.
  const Shape& shape() const { return shape_; }
  /// The number of dimensions.
  int rank() const { return shape_.rank(); }
  /// The number of elements.
  std::int64_t size() const { return shape_.elements(); }
  /// The number of indexes of a dimension. Negative dimensions count from the end.
  std::int64_t extent(int dim) const { return shape_[dimension(dim)]; }
  /// The distance of neighbours along a dimension, in elements.
  std::int64_t stride(int dim) const { return strides_[at(dimension(dim))]; }
  /// Whether elements are row-major without gaps.
  bool contiguous() const {
    std::int64_t stride = 1;
    for (int d = rank(); d-- > 0; stride *= shape_[d])
      if (shape_[d] > 1 && strides_[at(d)] != stride) return false;
    return true;
  }

  /// One element; an index for each dimension.
  template <std::integral... I>
  T& operator()(I... index) const {
    const std::int64_t indexes[] = {static_cast<std::int64_t>(index)...};
    std::int64_t offset = 0;
    for (int d = 0; d < static_cast<int>(sizeof...(I)); ++d) {
#ifdef BATON_CHECK_INDEXES
      if (d >= rank() || indexes[d] < 0 || indexes[d] >= shape_[d])
        detail::refuse_index(shape_, d, indexes[d]);
#endif
      offset += indexes[d] * strides_[at(d)];
    }
    return data_[offset];
  }

  /// The elements with indexes [begin, end) in one dimension.
  View slice(int dim, std::int64_t begin, std::int64_t end) const {
    const int d = dimension(dim);
    if (begin < 0 || end < begin || end > shape_[d]) detail::refuse_slice(shape_, d, begin, end);
    return {data_ + begin * strides_[at(d)], shape_.with(d, end - begin), strides_};
  }
  /// The elements with one index in a dimension, without that dimension.
  View select(int dim, std::int64_t index) const {
    const int d = dimension(dim);
    if (index < 0 || index >= shape_[d]) detail::refuse_index(shape_, d, index);
    std::array<std::int64_t, Shape::max_rank> extents{};
    Strides strides{};
    for (int from = 0, to = 0; from < rank(); ++from) {
      if (from == d) continue;
      extents[at(to)] = shape_[from];
      strides[at(to++)] = strides_[at(from)];
    }
    return {data_ + index * strides_[at(d)],
            Shape(std::span<const std::int64_t>(extents.data(), at(rank() - 1))), strides};
  }
  /// The same elements with two dimensions exchanged.
  View transposed(int a, int b) const {
    View other = *this;
    a = dimension(a), b = dimension(b);
    other.shape_ = shape_.with(a, shape_[b]).with(b, shape_[a]);
    std::swap(other.strides_[at(a)], other.strides_[at(b)]);
    return other;
  }
  /// The same elements in another shape. The view must be contiguous.
  View reshaped(const Shape& shape) const {
    if (!contiguous() || shape.elements() != size())
      detail::refuse_reshape(shape_, shape, contiguous());
    return {data_, shape};
  }
  /// [.., n] as [rows, n]. The view must be contiguous.
  View rows() const {
    if (rank() == 0) return reshaped({1, 1});
    return reshaped({shape_.product(0, rank() - 1), extent(-1)});
  }

 private:
  static std::size_t at(int d) { return static_cast<std::size_t>(d); }
  int dimension(int dim) const {
    const int d = dim < 0 ? dim + rank() : dim;
    if (d < 0 || d >= rank()) detail::refuse_dim(shape_, dim);
    return d;
  }
  T* data_ = nullptr;
  Shape shape_;
  Strides strides_{};
};

/// Row-major elements with shared ownership. Copying an Array shares its elements; copy() and
/// copy_of() copy them. A const Array gives const elements only. Elements lie in the memory of the
/// accelerator that the thread had when they were made, or on the host. Only the functions of this
/// library touch elements of an accelerator.
///
/// An Array converts to a view to read. view() gives a view to write, so calls show which arrays
/// they change. A temporary Array gives no view, since its elements may go before the view.
template <class T>
class Array {
 public:
  /// No elements, no memory.
  Array() = default;
  /// Zeros. Throws Error(unsupported) if there is not enough memory.
  explicit Array(const Shape& shape) : Array(uninitialized(shape)) {
    detail::zero(data(), bytes());
  }
  /// Elements that have any values. Throws like the constructor.
  static Array uninitialized(const Shape& shape) {
    Array a;
    a.shape_ = shape;
    a.data_ = std::static_pointer_cast<T>(detail::aligned_bytes(shape, sizeof(T)));
    return a;
  }
  /// The elements of a view, copied.
  static Array copy_of(View<const T> view);
  /// The same elements, copied.
  Array copy() const { return copy_of(view()); }

  /// The number of elements in each dimension.
  const Shape& shape() const { return shape_; }
  /// The number of indexes of a dimension. Negative dimensions count from the end.
  std::int64_t extent(int dim) const { return shape_[dim < 0 ? dim + shape_.rank() : dim]; }
  /// The number of elements.
  std::int64_t size() const { return shape_.elements(); }
  /// The size of the elements, in bytes.
  std::size_t bytes() const { return static_cast<std::size_t>(size()) * sizeof(T); }
  /// Whether there is no memory.
  bool empty() const { return data_ == nullptr; }
  /// Whether no other Array shares these elements.
  bool alone() const { return data_.use_count() == 1; }

  /// The first element.
  T* data() { return data_.get(); }
  /// The first element, to read.
  const T* data() const { return data_.get(); }
  /// All elements, to write.
  View<T> view() & { return {data(), shape_}; }
  /// All elements, to read.
  View<const T> view() const& { return {data(), shape_}; }
  void view() const&& = delete;
  /// All elements, to read.
  operator View<const T>() const& { return view(); }  // NOLINT: free, and reads only
  operator View<const T>() const&& = delete;
  /// All elements, as collectives take them.
  std::span<T> span() & { return {data(), static_cast<std::size_t>(size())}; }
  /// All elements, to read.
  std::span<const T> span() const& { return {data(), static_cast<std::size_t>(size())}; }
  void span() const&& = delete;
  /// All elements with their shape, as collectives take them.
  Tensor tensor() & { return {data(), datatype_of<T>, shape_}; }
  /// The same to read.
  ConstTensor tensor() const& { return {data(), datatype_of<T>, shape_}; }
  void tensor() const&& = delete;

  /// The same elements in another shape.
  Array reshaped(const Shape& shape) const {
    if (shape.elements() != size()) detail::refuse_reshape(shape_, shape, true);
    Array other = *this;
    other.shape_ = shape;
    return other;
  }
  /// Those elements that are, in memory, from number `first` on, in this shape.
  Array part(std::int64_t first, const Shape& shape) const {
    const std::int64_t count = shape.elements();
    if (first < 0 || first + count > size())
      detail::refuse_slice({size()}, 0, first, first + count);
    Array other = *this;
    other.shape_ = shape;
    if (data_) other.data_ = std::shared_ptr<T>(data_, data_.get() + first);
    return other;
  }
  /// Gives the elements up, and keeps the shape.
  void release() { data_.reset(); }
  /// The memory, shared.
  std::shared_ptr<void> owner() const { return data_; }

 private:
  std::shared_ptr<T> data_;
  Shape shape_;
};

/// Elements that layers compute with.
template <class T>
concept Real = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, bf16>;

/// The type of values that must be more exact than elements of T: statistics, optimizers' state.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, bf16>, float, T>;
/// The same value; exact.
template <class T>
Wide<T> widen(T value) {
  if constexpr (std::is_same_v<T, bf16>)
    return to_float(value);
  else
    return value;
}
/// The nearest value of T; ties go to even.
template <class T>
T narrow(Wide<T> value) {
  if constexpr (std::is_same_v<T, bf16>)
    return to_bf16(value);
  else
    return value;
}

/// to = from. Shapes are equal; strides may differ.
template <class T>
requires(!std::is_const_v<T>) void assign(View<const std::type_identity_t<T>> from, View<T> to);
/// to = from, from bf16 to f32 or back; f32 is rounded to nearest even.
template <Real From, Real To>
void convert(View<const From> from, View<To> to);

template <class T>
Array<T> Array<T>::copy_of(View<const T> view) {
  Array a = uninitialized(view.shape());
  assign(view, a.view());
  return a;
}

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
