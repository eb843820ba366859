#pragma once

#include <cuda_runtime_api.h>

#include "error.hpp"

namespace baton::cuda {

/// Makes a device the thread's current one for a while.
class Current {
 public:
  explicit Current(int device) {
    check(cudaGetDevice(&before_), "the current device");
    if (before_ != device) check(cudaSetDevice(device), "a device as the current one");
    changed_ = before_ != device;
  }
  ~Current() {
    if (changed_) cudaSetDevice(before_);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

}  // namespace baton::cuda
