#include "baton/cuda.hpp"
#include "baton/cuda_runtime.hpp"
#include "platform.hpp"

namespace baton::nccl_abi::platform {

int devices() { return cuda_devices(); }

int current_device() {
  int ordinal = 0;
  cuda::check(cudaGetDevice(&ordinal), "the current device");
  return ordinal;
}

std::shared_ptr<Device> device(int ordinal) { return cuda_device(ordinal); }

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  cuda::check_memory(cudaMalloc(&memory, bytes), bytes, "the current device");
  return memory;
}

void free(void* memory) { cuda::check(cudaFree(memory), "memory to free"); }

}  // namespace baton::nccl_abi::platform
