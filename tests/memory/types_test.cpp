#include "baton/types.hpp"

#include <doctest/doctest.h>

#include "baton/error.hpp"
#include "samples.hpp"

using namespace baton;

namespace {

/// The sentence of the invalid_argument that `call` throws.
template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.code == ErrorCode::invalid_argument);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("datatypes have the sizes of their elements, and names that lead back") {
  CHECK(size_of(datatype_of<std::int8_t>) == sizeof(std::int8_t));
  CHECK(size_of(datatype_of<std::uint8_t>) == sizeof(std::uint8_t));
  CHECK(size_of(datatype_of<std::int32_t>) == sizeof(std::int32_t));
  CHECK(size_of(datatype_of<std::uint32_t>) == sizeof(std::uint32_t));
  CHECK(size_of(datatype_of<std::int64_t>) == sizeof(std::int64_t));
  CHECK(size_of(datatype_of<std::uint64_t>) == sizeof(std::uint64_t));
  CHECK(size_of(datatype_of<f8e4m3>) == sizeof(f8e4m3));
  CHECK(size_of(datatype_of<f8e5m2>) == sizeof(f8e5m2));
  CHECK(size_of(datatype_of<f16>) == sizeof(f16));
  CHECK(size_of(datatype_of<bf16>) == sizeof(bf16));
  CHECK(size_of(datatype_of<float>) == sizeof(float));
  CHECK(size_of(datatype_of<double>) == sizeof(double));
  CHECK(name(datatype_of<std::int8_t>) == "i8");
  CHECK(name(datatype_of<std::uint64_t>) == "u64");
  CHECK(name(datatype_of<f8e4m3>) == "f8e4m3");
  CHECK(name(datatype_of<f8e5m2>) == "f8e5m2");
  CHECK(name(datatype_of<bf16>) == "bf16");
  for (const Datatype type : samples::datatypes()) {
    CHECK(datatype_named(name(type)) == type);
    CHECK(is_float(type) == (name(type).find('f') != std::string_view::npos));
  }
  CHECK(refusal([] { datatype_named("f8"); }) ==
        "datatype: expected one of i8, u8, i32, u32, i64, u64, f8e4m3, f8e5m2, f16, bf16, f32, "
        "f64; found \"f8\"");
}

TEST_CASE("operations have names that lead back") {
  for (const OpKind op : samples::ops()) CHECK(op_named(name(op)) == op);
  CHECK(name(OpKind::sum) == "sum");
  CHECK(name(OpKind::bit_xor) == "bit_xor");
  CHECK(name(OpKind::user) == "user");
  CHECK(refusal([] { op_named("mean"); }) ==
        "operation: expected one of sum, avg, prod, min, max, logical_and, logical_or, "
        "logical_xor, bit_and, bit_or, bit_xor; found \"mean\"");
  CHECK(refusal([] { op_named("user"); }) != "");
}

TEST_CASE("logical and bitwise operations are defined on integers only") {
  for (const Datatype type : samples::datatypes()) {
    for (const OpKind op : samples::ops()) {
      const bool bits = op >= OpKind::logical_and && op <= OpKind::bit_xor;
      CHECK(defined_on(op, type) == !(bits && is_float(type)));
    }
    CHECK(!defined_on(OpKind::user, type));
  }
}
