/// CUDA's calls that ask for devices, errors and the driver; launches of kernels.

#include <cuda.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "machine.hpp"
#include "stand_in_cuda.hpp"

namespace cuda_stand_in {
namespace {

/// Names and sentences of the errors that this runtime gives.
std::pair<const char*, const char*> about(cudaError_t code) {
  switch (code) {
    case cudaSuccess:
      return {"cudaSuccess", "no error"};
    case cudaErrorInvalidValue:
      return {"cudaErrorInvalidValue", "expected a valid argument"};
    case cudaErrorMemoryAllocation:
      return {"cudaErrorMemoryAllocation", "expected more memory"};
    case cudaErrorInvalidDevice:
      return {"cudaErrorInvalidDevice", "expected a device that there is"};
    case cudaErrorInvalidDeviceFunction:
      return {"cudaErrorInvalidDeviceFunction", "expected a kernel of the host's"};
    case cudaErrorNoKernelImageForDevice:
      return {"cudaErrorNoKernelImageForDevice", "expected a kernel of the host's"};
    case cudaErrorInvalidResourceHandle:
      return {"cudaErrorInvalidResourceHandle", "expected a handle in use"};
    case cudaErrorNotReady:
      return {"cudaErrorNotReady", "work is under way"};
    case cudaErrorStreamCaptureUnsupported:
      return {"cudaErrorStreamCaptureUnsupported", "expected a stream that is not captured"};
    case cudaErrorNotSupported:
      return {"cudaErrorNotSupported", "the stand-in has no such call"};
    default:
      return {"cudaErrorUnknown", "another error"};
  }
}

struct Kernels {
  std::mutex mutex;
  std::set<const void*> all;
};
Kernels& kernels() {
  static Kernels& here = *new Kernels;
  return here;
}
bool is_kernel(const void* kernel) {
  const std::lock_guard lock(kernels().mutex);
  return kernels().all.contains(kernel);
}

/// cuStreamWaitValue32(), for words in locked memory of the host.
CUresult wait_value(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  if (flags != CU_STREAM_WAIT_VALUE_GEQ) return CUDA_ERROR_NOT_SUPPORTED;
  auto* const word = reinterpret_cast<std::uint32_t*>(address);
  const cudaError_t code = give(stream, [word, value] {
    const std::atomic_ref<std::uint32_t> its(*word);
    for (int turn = 0; static_cast<std::int32_t>(its.load() - value) < 0; ++turn) {
      if (turn < 100)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });
  return code == cudaSuccess ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

const void* host_kernel(HostKernel kernel) {
  const auto* const address = reinterpret_cast<const void*>(kernel);
  const std::lock_guard lock(kernels().mutex);
  kernels().all.insert(address);
  return address;
}

}  // namespace cuda_stand_in

using namespace cuda_stand_in;

// What nvcc's own code calls: no header declares all of it.
#pragma GCC diagnostic ignored "-Wmissing-declarations"

extern "C" {

const char* cudaGetErrorName(cudaError_t code) { return about(code).first; }
const char* cudaGetErrorString(cudaError_t code) { return about(code).second; }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = devices();
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int ordinal) {
  return answer([&] {
    check_device(ordinal);
    *properties = {};
    std::snprintf(properties->name, sizeof(properties->name), "stand-in");
    properties->totalGlobalMem = device_bytes;
    properties->major = 9;
    properties->multiProcessorCount = 1;
    properties->memoryPoolsSupported = 1;
    properties->unifiedAddressing = 1;
    properties->pciBusID = ordinal;
  });
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int ordinal) {
  return answer([&] {
    check_device(ordinal);
    *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9
             : attribute == cudaDevAttrMultiProcessorCount  ? 1
                                                            : 0;
  });
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = least_priority;
  *greatest = greatest_priority;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int ordinal, int peer) {
  return answer([&] {
    check_device(ordinal);
    check_device(peer);
    *can = ordinal != peer;
  });
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  return answer([&] {
    check_device(peer);
    require(peer != current_device(), cudaErrorInvalidDevice);
  });
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  const bool found = std::string_view(name) == "cuStreamWaitValue32";
  *function = found ? reinterpret_cast<void*>(&wait_value) : nullptr;
  if (result != nullptr)
    *result = found ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  return answer([&] {
    require(is_kernel(kernel), cudaErrorInvalidDeviceFunction);
    *attributes = {};
  });
}
cudaError_t cudaLaunchKernel(const void* kernel, dim3, dim3, void** arguments, std::size_t,
                             cudaStream_t stream) {
  return answer([&] {
    require(is_kernel(kernel), cudaErrorNoKernelImageForDevice);
    stream_for_work(stream)->give(
        reinterpret_cast<HostKernel>(const_cast<void*>(kernel))(arguments));
  });
}

// Kernels of programs are known, but none of them runs.
void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*,
                            dim3*, int*) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}
char __cudaInitModule(void**) { return 0; }
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void*) {
  *kernel = nullptr;
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t) {
  return answer([] { throw Refusal{cudaErrorNoKernelImageForDevice}; });
}
unsigned __cudaPushCallConfiguration(dim3, dim3, std::size_t, cudaStream_t) { return 0; }
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  *grid = *block = {};
  *shared = 0;
  std::memset(stream, 0, sizeof(cudaStream_t));
  return cudaSuccess;
}

}  // extern "C"
