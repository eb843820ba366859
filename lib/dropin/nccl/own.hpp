#pragma once
/// NCCL's own functions. Needs no header of NCCL's.

namespace baton::nccl_abi {

/// Whether BATON_NCCL=off: all calls go to NCCL itself.
bool off();
/// NCCL's own function; null if there is no NCCL. `own` is this library's function of that name.
void* real(const char* name, const void* own);
/// ncclInvalidUsage, with a sentence: calls of a newer NCCL are not taken over.
int refuse_newer(const char* name);

}  // namespace baton::nccl_abi
