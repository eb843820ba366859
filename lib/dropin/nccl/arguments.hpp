#pragma once
/// NCCL's arguments in the library's terms. What is wrong throws Error(invalid_argument).

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "baton/types.hpp"

namespace baton::nccl_abi {

Datatype datatype_of(ncclDataType_t type);
/// None: an operation of ncclRedOpCreatePreMulSum.
std::optional<OpKind> op_of(ncclRedOp_t op);
std::int64_t count_of(std::size_t count, int ranks = 1);
void check_root(int root, int size);
void check_ranks(int rank, int size);
/// Throws unless the program began its configuration by NCCL_CONFIG_INITIALIZER.
void check_config(const ncclConfig_t* config);
/// The communicator's name in a configuration; empty where it has none, or is older than names.
std::string name_in(const ncclConfig_t* config);
void check_pointer(const void* pointer, const char* what);

}  // namespace baton::nccl_abi
