/// Functions of NCCL 2.29 and 2.30 that PyTorch needs to be loaded. They are refused, and go to
/// NCCL with BATON_NCCL=off.
///
/// Without NCCL's header, which may or may not declare them: types are those of the binary
/// interface.

#include <cstddef>
#include <cstdint>

#include "own.hpp"

#pragma GCC diagnostic ignored "-Wmissing-declarations"

namespace {

template <class... Arguments>
int passed_on(const char* name, int (*own)(Arguments...), Arguments... arguments) {
  using namespace baton::nccl_abi;
  void* const function = off() ? real(name, reinterpret_cast<const void*>(own)) : nullptr;
  return function ? reinterpret_cast<int (*)(Arguments...)>(function)(arguments...)
                  : refuse_newer(name);
}

}  // namespace

extern "C" {

int ncclCommGetUniqueId(void* comm, void* identifier) {
  return passed_on("ncclCommGetUniqueId", &ncclCommGetUniqueId, comm, identifier);
}
int ncclCommGrow(void* comm, int size, const void* identifier, int rank, void** made,
                 void* config) {
  return passed_on("ncclCommGrow", &ncclCommGrow, comm, size, identifier, rank, made, config);
}
int ncclCommMemStats(void* comm, int which, std::uint64_t* value) {
  return passed_on("ncclCommMemStats", &ncclCommMemStats, comm, which, value);
}
int ncclCommResume(void* comm) { return passed_on("ncclCommResume", &ncclCommResume, comm); }
int ncclCommSuspend(void* comm, int flags) {
  return passed_on("ncclCommSuspend", &ncclCommSuspend, comm, flags);
}
int ncclGetLsaMultimemDevicePointer(void* window, std::size_t offset, void** pointer) {
  return passed_on("ncclGetLsaMultimemDevicePointer", &ncclGetLsaMultimemDevicePointer, window,
                   offset, pointer);
}
int ncclGetPeerDevicePointer(void* window, std::size_t offset, int peer, void** pointer) {
  return passed_on("ncclGetPeerDevicePointer", &ncclGetPeerDevicePointer, window, offset, peer,
                   pointer);
}
int ncclPutSignal(const void* data, std::size_t count, int type, int peer, void* window,
                  std::size_t offset, int signal, int context, unsigned flags, void* comm,
                  void* stream) {
  return passed_on("ncclPutSignal", &ncclPutSignal, data, count, type, peer, window, offset, signal,
                   context, flags, comm, stream);
}
int ncclSignal(int peer, int signal, int context, unsigned flags, void* comm, void* stream) {
  return passed_on("ncclSignal", &ncclSignal, peer, signal, context, flags, comm, stream);
}
int ncclWaitSignal(int count, void* signals, void* comm, void* stream) {
  return passed_on("ncclWaitSignal", &ncclWaitSignal, count, signals, comm, stream);
}
int ncclWinGetUserPtr(void* comm, void* window, void** pointer) {
  return passed_on("ncclWinGetUserPtr", &ncclWinGetUserPtr, comm, window, pointer);
}

}  // extern "C"
