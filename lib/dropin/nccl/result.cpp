#include "result.hpp"

#include <cstdio>
#include <cstdlib>
#include <new>
#include <string_view>
#include <system_error>

namespace baton::nccl_abi {
namespace {

thread_local std::string last;

bool speaks() {
  const char* const level = std::getenv("NCCL_DEBUG");
  if (level == nullptr) return false;
  const std::string_view text = level;
  return text == "WARN" || text == "INFO" || text == "TRACE";
}

}  // namespace

ncclResult_t code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return ncclInvalidArgument;
    case ErrorCode::mismatch:
    case ErrorCode::truncated:
    case ErrorCode::unsupported:
      return ncclInvalidUsage;
    case ErrorCode::transport:
    case ErrorCode::timeout:
      return ncclRemoteError;
    case ErrorCode::memory:
    case ErrorCode::device:
      return ncclUnhandledCudaError;
  }
  return ncclInternalError;
}

Failure failure_in_flight() noexcept {
  ncclResult_t code = ncclInternalError;
  try {
    try {
      throw;
    } catch (const Error& error) {
      code = code_of(error.code);
      return {code, error.what()};
    } catch (const std::bad_alloc&) {
      code = ncclSystemError;
      return {code, "expected more of the host's memory, found too little"};
    } catch (const std::system_error& error) {
      code = ncclSystemError;
      return {code, error.what()};
    } catch (const std::exception& error) {
      return {code, error.what()};
    } catch (...) {
      return {code, "expected an exception of the library, found another one"};
    }
  } catch (...) {                // no memory for the sentence
    return {code, "no memory"};  // as short as a string that allocates none
  }
}

ncclResult_t reported(const Failure& failure) noexcept {
  if (failure.code == ncclSuccess) return ncclSuccess;
  try {
    last = failure.text;
  } catch (...) {  // no memory for the sentence
    last.clear();
  }
  if (speaks()) std::fprintf(stderr, "baton: %s\n", last.c_str());
  return failure.code;
}

const std::string& last_text() { return last; }

}  // namespace baton::nccl_abi
