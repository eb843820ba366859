/// Operations of the program's, memory, windows, texts and versions, as the program sees them.

#include <string>

#include "../../base/raise.hpp"
#include "arguments.hpp"
#include "group.hpp"
#include "platform.hpp"
#include "real.hpp"

namespace {

using namespace baton;
using namespace baton::nccl_abi;

void deregister(ncclComm& member, void* handle) {
  if (handle != nullptr && !member.deregister(handle))
    base::refuse("expected memory that is registered with this communicator, found another handle");
}

}  // namespace

extern "C" {

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
  return taken(
      comm,
      [&](const Held& member) {
        check_pointer(op, "room for an operation");
        check_pointer(scalar, "a scalar");
        if (residence != ncclScalarDevice && residence != ncclScalarHostImmediate)
          base::refuse("expected ncclScalarDevice or ncclScalarHostImmediate, found {}",
                       static_cast<int>(residence));
        *op = member->scalings().create(scalar, nccl_abi::datatype_of(datatype),
                                        residence == ncclScalarDevice);
      },
      BATON_PASSED_ON(ncclRedOpCreatePreMulSum, op, scalar, datatype, residence, comm));
}
BATON_SECOND_NAME(ncclRedOpCreatePreMulSum);

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  return taken(
      comm, [&](const Held& member) { member->scalings().destroy(op); },
      BATON_PASSED_ON(ncclRedOpDestroy, op, comm));
}
BATON_SECOND_NAME(ncclRedOpDestroy);

ncclResult_t ncclMemAlloc(void** ptr, size_t size) {
  if (off()) return pass_on("ncclMemAlloc", &ncclMemAlloc, ncclSystemError, ptr, size);
  return guarded([&] {
    check_pointer(ptr, "room for an address");
    *ptr = size > 0 ? platform::allocate(size) : nullptr;
  });
}
BATON_SECOND_NAME(ncclMemAlloc);

ncclResult_t ncclMemFree(void* ptr) {
  if (off()) return pass_on("ncclMemFree", &ncclMemFree, ncclSystemError, ptr);
  return guarded([&] {
    if (ptr != nullptr) platform::free(ptr);
  });
}
BATON_SECOND_NAME(ncclMemFree);

ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle) {
  return taken(
      comm,
      [&](const Held& member) {
        check_pointer(handle, "room for a handle");
        *handle = member->register_memory();
      },
      BATON_PASSED_ON(ncclCommRegister, comm, buff, size, handle));
}
BATON_SECOND_NAME(ncclCommRegister);

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) {
  return taken(
      comm, [&](const Held& member) { deregister(*member, handle); },
      BATON_PASSED_ON(ncclCommDeregister, comm, handle));
}
BATON_SECOND_NAME(ncclCommDeregister);

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win,
                                    int winFlags) {
  return taken(
      comm,
      [&](const Held& member) {
        check_pointer(win, "room for a window");
        *win = static_cast<ncclWindow_t>(member->register_memory());
      },
      BATON_PASSED_ON(ncclCommWindowRegister, comm, buff, size, win, winFlags));
}
BATON_SECOND_NAME(ncclCommWindowRegister);

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win) {
  return taken(
      comm, [&](const Held& member) { deregister(*member, win); },
      BATON_PASSED_ON(ncclCommWindowDeregister, comm, win));
}
BATON_SECOND_NAME(ncclCommWindowDeregister);

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "a device failed or had too little memory";
    case ncclSystemError:
      return "a call of the system failed";
    case ncclInternalError:
      return "an error of this library";
    case ncclInvalidArgument:
      return "an argument is wrong";
    case ncclInvalidUsage:
      return "a call is wrong here, or is not supported";
    case ncclRemoteError:
      return "another rank failed, left or did not come in time";
    case ncclInProgress:
      return "a call is in progress";
    case ncclNumResults:
      break;
  }
  return "an unknown result code";
}
BATON_SECOND_NAME(ncclGetErrorString);

const char* ncclGetLastError(ncclComm_t comm) {
  if (off())
    return pass_on("ncclGetLastError", &ncclGetLastError, static_cast<const char*>(""), comm);
  thread_local std::string text;
  try {
    const Held member = of_handle(comm);
    text = member ? member->last_text() : std::string();
    if (text.empty()) text = last_text();
  } catch (...) {  // no memory for the sentence
    text.clear();
  }
  return text.c_str();
}
BATON_SECOND_NAME(ncclGetLastError);

ncclResult_t ncclGetVersion(int* version) {
  if (off()) return pass_on("ncclGetVersion", &ncclGetVersion, ncclSystemError, version);
  return guarded([&] {
    check_pointer(version, "room for a number");
    *version = NCCL_VERSION_CODE;
  });
}
BATON_SECOND_NAME(ncclGetVersion);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
void ncclResetDebugInit() {}  // NCCL_DEBUG is read at each failure
BATON_SECOND_NAME(ncclResetDebugInit);
#pragma GCC diagnostic pop

}  // extern "C"
