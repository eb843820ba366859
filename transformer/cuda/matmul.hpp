#pragma once
/// Matrix products by cuBLASLt.

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <map>
#include <memory>

#include "layout.hpp"

namespace baton::transformer::cuda {

/// The operations on a product before it is written.
struct Epilogue {
  const void* bias = nullptr;  ///< [n], added to every column, unless it is null
  bool relu = false;           ///< negative elements become 0; NaN may
};

/// Products on one stream of the current device; one thread at a time uses it. What cuBLASLt finds
/// for a product is kept, so the same operands give the same bits. It loads its own kernels when
/// they are first used.
class Matmul {
 public:
  /// `tf32`: products of f32 round their factors to 10 bits of mantissa. `workspace`: bytes in the
  /// device's memory.
  Matmul(bool tf32, std::shared_ptr<void> workspace, std::size_t workspace_bytes);
  ~Matmul();
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  /// c = a · b, of f32 or bf16, added up in f32; plus c itself with `add`; then the epilogue.
  /// Throws Error(unsupported) where cuBLASLt has no algorithm.
  void multiply(const Product& product, Datatype type, const void* a, const void* b,
                const Epilogue& epilogue, bool add, void* c, cudaStream_t stream);

 private:
  /// The properties that select an algorithm; alignments of a, b, c and bias, in bytes.
  struct Key {
    Product product;
    Datatype type = Datatype::f32;
    bool biased = false, relu = false, add = false;
    std::uint32_t alignment[4] = {};
    auto operator<=>(const Key&) const = default;
  };
  struct Plan;
  const Plan& plan(const Key& key);

  cublasLtHandle_t handle_ = nullptr;
  const bool tf32_;
  const std::shared_ptr<void> workspace_;
  const std::size_t workspace_bytes_;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace baton::transformer::cuda
