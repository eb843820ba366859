#include "baton/types.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>

#include "baton/error.hpp"
#include "host/element.hpp"

namespace baton {
namespace {

struct DatatypeRow {
  std::string_view name;
  std::uint8_t bytes;
  bool floating;
};

/// Indexed by Datatype; `user` comes last.
constexpr std::array<DatatypeRow, datatype_count + 1> datatypes{{{"i8", 1, false},
                                                                 {"u8", 1, false},
                                                                 {"i32", 4, false},
                                                                 {"u32", 4, false},
                                                                 {"i64", 8, false},
                                                                 {"u64", 8, false},
                                                                 {"f8e4m3", 1, true},
                                                                 {"f8e5m2", 1, true},
                                                                 {"f16", 2, true},
                                                                 {"bf16", 2, true},
                                                                 {"f32", 4, true},
                                                                 {"f64", 8, true},
                                                                 {"user", 0, false}}};

struct OpRow {
  std::string_view name;
  bool on_floats;
};

/// Indexed by OpKind; `user` comes last.
constexpr std::array<OpRow, builtin_op_count + 1> ops{{{"sum", true},
                                                       {"avg", true},
                                                       {"prod", true},
                                                       {"min", true},
                                                       {"max", true},
                                                       {"logical_and", false},
                                                       {"logical_or", false},
                                                       {"logical_xor", false},
                                                       {"bit_and", false},
                                                       {"bit_or", false},
                                                       {"bit_xor", false},
                                                       {"user", false}}};

const DatatypeRow& row(Datatype type) { return datatypes[static_cast<std::size_t>(type)]; }
const OpRow& row(OpKind kind) { return ops[static_cast<std::size_t>(kind)]; }

/// Index of the row of that name. Throws Error(invalid_argument) that lists the names.
template <class Rows>
std::size_t find(const Rows& rows, std::string_view name, std::string_view what) {
  using Row = std::ranges::range_value_t<Rows>;
  const auto found = std::ranges::find(rows, name, &Row::name);
  if (found != rows.end()) return static_cast<std::size_t>(found - rows.begin());
  std::string names;
  for (const Row& row : rows) names += (names.empty() ? "" : ", ") + std::string(row.name);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: expected one of {}; found \"{}\"", what, names, name));
}

}  // namespace

std::size_t size_of(Datatype type) { return row(type).bytes; }
std::string_view name(Datatype type) { return row(type).name; }
bool is_float(Datatype type) { return row(type).floating; }
Datatype datatype_named(std::string_view name) {
  return static_cast<Datatype>(find(std::span(datatypes).first(datatype_count), name, "datatype"));
}

float to_float(f8e4m3 value) { return host::widen(value); }
float to_float(f8e5m2 value) { return host::widen(value); }
float to_float(f16 value) { return host::widen(value); }
float to_float(bf16 value) { return host::widen(value); }
f8e4m3 to_f8e4m3(float value) { return host::narrow<f8e4m3>(value); }
f8e5m2 to_f8e5m2(float value) { return host::narrow<f8e5m2>(value); }
f16 to_f16(float value) { return host::narrow<f16>(value); }
bf16 to_bf16(float value) { return host::narrow<bf16>(value); }

std::string_view name(OpKind kind) { return row(kind).name; }
OpKind op_named(std::string_view name) {
  return static_cast<OpKind>(find(std::span(ops).first(builtin_op_count), name, "operation"));
}
bool defined_on(OpKind kind, Datatype type) {
  return kind != OpKind::user && type != Datatype::user && (row(kind).on_floats || !is_float(type));
}

}  // namespace baton
