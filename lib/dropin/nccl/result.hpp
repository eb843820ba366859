#pragma once
/// The library's exceptions as NCCL's result codes.

#include <nccl.h>

#include <string>

#include "baton/error.hpp"

namespace baton::nccl_abi {

/// A failed call: its code, and the sentence for ncclGetLastError().
struct Failure {
  ncclResult_t code = ncclSuccess;
  std::string text;
};

ncclResult_t code_of(ErrorCode code);
/// The exception being handled.
Failure failure_in_flight() noexcept;
/// Keeps the sentence for this thread's ncclGetLastError(), and prints it if NCCL_DEBUG asks for
/// warnings. Returns the code.
ncclResult_t reported(const Failure& failure) noexcept;
/// The sentence of this thread's last failure.
const std::string& last_text();

/// The result of a call that may throw.
template <class Call>
ncclResult_t guarded(const Call& call) {
  try {
    call();
    return ncclSuccess;
  } catch (...) {
    return reported(failure_in_flight());
  }
}

}  // namespace baton::nccl_abi
