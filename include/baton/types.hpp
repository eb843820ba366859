#pragma once
/// Datatypes and operations.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#pragma GCC visibility push(default)
namespace baton {

/// Element types. Integers wrap around. 8- and 16-bit floats fold in fp32, rounded to nearest even.
/// `user`: what a user's operation takes, of Op::element_bytes bytes each.
enum class Datatype : std::uint8_t {
  i8,
  u8,
  i32,
  u32,
  i64,
  u64,
  f8e4m3,
  f8e5m2,
  f16,
  bf16,
  f32,
  f64,
  user
};
inline constexpr int datatype_count = 12;  ///< without `user`

std::size_t size_of(Datatype type);    ///< bytes of one element; 0 for `user`
std::string_view name(Datatype type);  ///< "f32" and so on
/// The datatype of that name; throws Error(invalid_argument) that lists those that exist.
Datatype datatype_named(std::string_view name);
bool is_float(Datatype type);  ///< of 8 to 64 bits

/// Storage of an 8-bit float without infinities, E4M3. Source: OCP 8-bit Floating Point
/// Specification (OFP8), revision 1.0, 2023. No arithmetic, here and below: that is the library's,
/// by the numerics contract.
struct f8e4m3 {
  std::uint8_t bits;
  bool operator==(const f8e4m3&) const = default;
};
/// Storage of an 8-bit float, E5M2. Source: as f8e4m3.
struct f8e5m2 {
  std::uint8_t bits;
  bool operator==(const f8e5m2&) const = default;
};
/// Storage of IEEE binary16.
struct f16 {
  std::uint16_t bits;
  bool operator==(const f16&) const = default;
};
/// Storage of bfloat16.
struct bf16 {
  std::uint16_t bits;
  bool operator==(const bf16&) const = default;
};

float to_float(f8e4m3 value);  ///< exact
float to_float(f8e5m2 value);  ///< exact
float to_float(f16 value);     ///< exact
float to_float(bf16 value);    ///< exact
/// Rounded to nearest even. What is beyond the largest number, 448, becomes NaN (magnitudes above
/// 464), as NaN itself does: 0x7f, whatever the sign.
f8e4m3 to_f8e4m3(float value);
f8e5m2 to_f8e5m2(float value);  ///< rounded to nearest even; NaN becomes 0x7e
f16 to_f16(float value);        ///< rounded to nearest even; NaN becomes 0x7e00
bf16 to_bf16(float value);      ///< rounded to nearest even; NaN becomes 0x7fc0

namespace detail {
template <class T, class... List>
consteval int index_in() {
  int index = 0;
  return ((std::is_same_v<T, List> || (++index, false)) || ...) ? index : -1;
}
/// Position of T in Datatype, or -1.
template <class T>
inline constexpr int datatype_index =
    index_in<std::remove_cv_t<T>, std::int8_t, std::uint8_t, std::int32_t, std::uint32_t,
             std::int64_t, std::uint64_t, f8e4m3, f8e5m2, f16, bf16, float, double>();
}  // namespace detail

/// Whether a C++ type is the element type of a datatype, and of which.
template <class T>
concept Element = detail::datatype_index<T>
>= 0;
template <Element T>
inline constexpr Datatype datatype_of = static_cast<Datatype>(detail::datatype_index<T>);

/// Operations. `logical_*` and `bit_*` are for integers. `avg` is sum, then division by the number
/// of ranks (integers: truncated toward zero). min and max: see the numerics contract in
/// lib/memory/README.md for NaN and signed zeros.
enum class OpKind : std::uint8_t {
  sum,
  avg,
  prod,
  min,
  max,
  logical_and,
  logical_or,
  logical_xor,
  bit_and,
  bit_or,
  bit_xor,
  user
};
inline constexpr int builtin_op_count = 11;
std::string_view name(OpKind kind);  ///< "sum" and so on
/// The built-in operation of that name; throws Error(invalid_argument) that lists those that exist.
OpKind op_named(std::string_view name);
/// Whether a built-in operation is defined on a datatype.
bool defined_on(OpKind kind, Datatype type);

/// An operation: a built-in one, or the user's own.
struct Op {
  /// into[i] = left[i] (+) right[i] for `count` elements. `into` may be `left` or `right`. Must be
  /// associative, and give the same bits on all ranks.
  using Function = void (*)(void* into, const void* left, const void* right, std::size_t count,
                            void* context);

  OpKind kind = OpKind::sum;
  Function function = nullptr;  ///< of a user's operation
  void* context = nullptr;      ///< handed to `function`
  bool commutative = true;
  std::string_view label = {};    ///< in messages; must outlive the calls
  std::size_t element_bytes = 0;  ///< of one element of Datatype::user

  constexpr Op() = default;
  /// A built-in op.
  constexpr Op(OpKind kind) : kind(kind) {}  // NOLINT: an OpKind is an Op
  /// On elements of a datatype of the library, or, with `element_bytes`, on Datatype::user.
  static constexpr Op user(Function function, void* context, bool commutative,
                           std::string_view label = "user", std::size_t element_bytes = 0) {
    Op op(OpKind::user);
    op.function = function;
    op.context = context;
    op.commutative = commutative;
    op.label = label;
    op.element_bytes = element_bytes;
    return op;
  }
};

inline constexpr Op sum{OpKind::sum}, avg{OpKind::avg}, prod{OpKind::prod}, min{OpKind::min},
    max{OpKind::max}, logical_and{OpKind::logical_and}, logical_or{OpKind::logical_or},
    logical_xor{OpKind::logical_xor}, bit_and{OpKind::bit_and}, bit_or{OpKind::bit_or},
    bit_xor{OpKind::bit_xor};

}  // namespace baton
#pragma GCC visibility pop
