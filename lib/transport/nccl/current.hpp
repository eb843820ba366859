#pragma once
/// The thread's current CUDA device, which NCCL's communicators are made for.

namespace baton::nccl {

/// Throws Error(device) that names `call` unless `code`, a cudaError_t, is success.
void check_cuda(int code, const char* call);

/// Makes a device the current one for as long as this lives.
class Current {
 public:
  explicit Current(int device);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  int before_ = 0;
};

}  // namespace baton::nccl
