#pragma once
/// Stand-ins for the devices under NCCL's interface. A cudaStream_t is a stream of theirs.

#include <nccl.h>

#include <cstddef>

#include "support/stand_in.hpp"

namespace nccl_stand_in {

inline constexpr int devices = 3;

support::StandInDevice& device(int ordinal);
/// As cudaSetDevice(), for the calling thread.
void set_device(int ordinal);
/// As cudaStreamCreate(), on this device.
cudaStream_t make_stream(int ordinal);

}  // namespace nccl_stand_in
