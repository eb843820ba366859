#include "arguments.hpp"

#include <limits>

#include "../../base/raise.hpp"

namespace baton::nccl_abi {

using base::refuse;

Datatype datatype_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return Datatype::i8;
    case ncclUint8:
      return Datatype::u8;
    case ncclInt32:
      return Datatype::i32;
    case ncclUint32:
      return Datatype::u32;
    case ncclInt64:
      return Datatype::i64;
    case ncclUint64:
      return Datatype::u64;
    case ncclFloat16:
      return Datatype::f16;
    case ncclFloat32:
      return Datatype::f32;
    case ncclFloat64:
      return Datatype::f64;
    case ncclBfloat16:
      return Datatype::bf16;
    case ncclFloat8e4m3:
      return Datatype::f8e4m3;
    case ncclFloat8e5m2:
      return Datatype::f8e5m2;
    case ncclNumTypes:
      break;
  }
  refuse("expected a datatype from 0 to {}, found {}", ncclNumTypes - 1, static_cast<int>(type));
}

std::optional<OpKind> op_of(ncclRedOp_t op) {
  switch (static_cast<int>(op)) {
    case ncclSum:
      return OpKind::sum;
    case ncclProd:
      return OpKind::prod;
    case ncclMax:
      return OpKind::max;
    case ncclMin:
      return OpKind::min;
    case ncclAvg:
      return OpKind::avg;
    default:
      return std::nullopt;
  }
}

std::int64_t count_of(std::size_t count, int ranks) {
  const auto most = static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max() / 16);
  if (count > most / static_cast<std::size_t>(ranks))
    refuse("expected at most {} elements of each of {} ranks, found {}",
           most / static_cast<std::size_t>(ranks), ranks, count);
  return static_cast<std::int64_t>(count);
}

void check_root(int root, int size) {
  if (root < 0 || root >= size) refuse("expected a root from 0 to {}, found {}", size - 1, root);
}

void check_ranks(int rank, int size) {
  if (size < 1) refuse("expected at least 1 rank, found {}", size);
  if (rank < 0 || rank >= size) refuse("expected a rank from 0 to {}, found {}", size - 1, rank);
}

void check_config(const ncclConfig_t* config) {
  if (config == nullptr) return;
  if (config->magic != 0xcafebeef)
    refuse("expected a configuration that begins as NCCL_CONFIG_INITIALIZER, found another one");
  if (const int blocking = config->blocking;
      blocking != NCCL_CONFIG_UNDEF_INT && blocking != 0 && blocking != 1)
    refuse("expected 0 or 1 as the configuration's \"blocking\", found {}", blocking);
}

std::string name_in(const ncclConfig_t* config) {
  constexpr std::size_t end = offsetof(ncclConfig_t, commName) + sizeof(config->commName);
  return config == nullptr || config->size < end || config->commName == nullptr ? ""
                                                                                : config->commName;
}

void check_pointer(const void* pointer, const char* what) {
  if (pointer == nullptr) refuse("expected {}, found a null pointer", what);
}

}  // namespace baton::nccl_abi
