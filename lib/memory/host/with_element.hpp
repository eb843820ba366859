#pragma once

#include <cstdint>

#include "baton/types.hpp"

namespace baton::host {

/// call.template operator()<T>() for a datatype chosen at run time, which returns a pointer; null
/// for Datatype::user.
template <class Call>
auto with_element(Datatype type, const Call& call) -> decltype(call.template operator()<float>()) {
  switch (type) {
    case Datatype::i8:
      return call.template operator()<std::int8_t>();
    case Datatype::u8:
      return call.template operator()<std::uint8_t>();
    case Datatype::i32:
      return call.template operator()<std::int32_t>();
    case Datatype::u32:
      return call.template operator()<std::uint32_t>();
    case Datatype::i64:
      return call.template operator()<std::int64_t>();
    case Datatype::u64:
      return call.template operator()<std::uint64_t>();
    case Datatype::f8e4m3:
      return call.template operator()<f8e4m3>();
    case Datatype::f8e5m2:
      return call.template operator()<f8e5m2>();
    case Datatype::f16:
      return call.template operator()<f16>();
    case Datatype::bf16:
      return call.template operator()<bf16>();
    case Datatype::f32:
      return call.template operator()<float>();
    case Datatype::f64:
      return call.template operator()<double>();
    case Datatype::user:
      break;
  }
  return nullptr;
}

}  // namespace baton::host
