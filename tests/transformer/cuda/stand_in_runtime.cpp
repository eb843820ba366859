#include "stand_in_runtime.hpp"

#include <cstring>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "baton/cuda.hpp"
#include "transformer/cuda/element.hpp"

namespace support {
namespace {
std::shared_ptr<StandInDevice> current;
std::mutex mutex;  // of the products' epilogues
std::vector<cublasLtEpilogue_t> used;
}  // namespace

void stand_in_for_cuda(std::shared_ptr<StandInDevice> device) { current = std::move(device); }

std::vector<cublasLtEpilogue_t> epilogues() {
  const std::lock_guard lock(mutex);
  return std::exchange(used, {});
}

void give(cudaStream_t stream, std::function<void()> work) {
  current->run(stream, std::move(work));
}

void* seen_bytes(const void* address) {
  if (!address) return nullptr;
  if (current->residence(address) != baton::Residence::device)
    throw std::logic_error("expected an address of the stand-in device's memory");
  return current->host_view(address);
}

}  // namespace support

using namespace support;

namespace baton {
std::shared_ptr<Device> cuda_device(int) { return current; }
}  // namespace baton

// --- CUDA's runtime ------------------------------------------------------------------------------

cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorName(cudaError_t) { return "an error"; }
const char* cudaGetErrorString(cudaError_t) { return "an error"; }
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int*, int, int) { return cudaErrorInvalidDevice; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = static_cast<cudaStream_t>(current->make_user_stream());
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  current->synchronize(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaMemPoolCreate(cudaMemPool_t*, const cudaMemPoolProps*) { return cudaSuccess; }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, std::size_t) {
  return cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t) { return cudaSuccess; }
cudaError_t cudaMallocFromPoolAsync(void** memory, std::size_t bytes, cudaMemPool_t,
                                    cudaStream_t stream) {
  // What is not written is not a number.
  *memory = current->allocate(bytes);
  give(stream, [at = *memory, bytes] { std::memset(seen(at), 0xff, bytes); });
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  give(stream, [memory] { current->free(static_cast<std::byte*>(memory)); });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  give(stream, [=] { std::memset(seen(memory), value, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  // Behind a held stream, CUDA copies other memory while the calls of all threads wait.
  const void* const here = kind == cudaMemcpyDeviceToHost ? to : from;
  if (kind != cudaMemcpyDeviceToDevice && !current->locked(here, bytes))
    return cudaErrorInvalidHostPointer;
  give(stream, [=] {
    std::memcpy(kind == cudaMemcpyDeviceToHost ? to : seen(to),
                kind == cudaMemcpyHostToDevice ? from : seen(from), bytes);
  });
  return cudaSuccess;
}

// --- cuBLASLt ------------------------------------------------------------------------------------

namespace {

struct Description {
  cublasComputeType_t compute;
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};
struct Layout {
  cudaDataType type;
  std::int64_t rows, columns, leading;

  float at(const void* data, std::int64_t row, std::int64_t column) const {
    const auto index = static_cast<std::size_t>(column * leading + row);
    using baton::transformer::cuda::load;
    return type == CUDA_R_32F ? static_cast<const float*>(data)[index]
                              : load(static_cast<const baton::bf16*>(data) + index);
  }
};

template <class Opaque, class Value>
void make(Opaque** made, Value value) {
  *made = reinterpret_cast<Opaque*>(new Value(value));
}
template <class Value, class Opaque>
cublasStatus_t destroy(Opaque* made) {
  delete reinterpret_cast<Value*>(made);
  return CUBLAS_STATUS_SUCCESS;
}
template <class Value>
void take(Value& into, const void* from, std::size_t bytes) {
  if (bytes != sizeof(into)) throw std::logic_error("an attribute of another size");
  std::memcpy(&into, from, bytes);
}

}  // namespace

const char* cublasLtGetStatusName(cublasStatus_t) { return "a status"; }
const char* cublasLtGetStatusString(cublasStatus_t) { return "a status"; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t*) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute,
                                        cudaDataType_t) {
  make(made, Description{compute});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t made) {
  return destroy<Description>(made);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t made,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  auto& description = *reinterpret_cast<Description*>(made);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      take(description.a, value, bytes);
      return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_TRANSB:
      take(description.b, value, bytes);
      return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      take(description.epilogue, value, bytes);
      return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      take(description.bias, value, bytes);
      return CUBLAS_STATUS_SUCCESS;
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t leading) {
  make(made,
       Layout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), leading});
  return leading < static_cast<std::int64_t>(rows) ? CUBLAS_STATUS_INVALID_VALUE
                                                   : CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t made) {
  return destroy<Layout>(made);
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  make(made, 0);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t made) {
  return destroy<int>(made);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int,
                                              cublasLtMatmulHeuristicResult_t[], int* found) {
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

/// By plain loops, as cuBLASLt's documentation defines it.
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t*, void*, std::size_t,
                              cudaStream_t stream) {
  const auto of = *reinterpret_cast<const Description*>(description);
  const auto left = *reinterpret_cast<const Layout*>(a_layout),
             right = *reinterpret_cast<const Layout*>(b_layout),
             result = *reinterpret_cast<const Layout*>(d_layout);
  const float times = *static_cast<const float*>(alpha), kept = *static_cast<const float*>(beta);
  const bool a_turned = of.a == CUBLAS_OP_T, b_turned = of.b == CUBLAS_OP_T;
  const std::int64_t k = a_turned ? left.rows : left.columns;
  if (c != d || k == 0 || result.rows != (a_turned ? left.columns : left.rows) ||
      result.columns != (b_turned ? right.rows : right.columns) ||
      k != (b_turned ? right.columns : right.rows) ||
      ((of.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0) != (of.bias != nullptr))
    return CUBLAS_STATUS_INVALID_VALUE;
  const bool relu = (of.epilogue & CUBLASLT_EPILOGUE_RELU) != 0;
  {
    const std::lock_guard lock(mutex);
    used.push_back(of.epilogue);
  }
  give(stream, [=] {
    const void *const a_here = seen(a), *const b_here = seen(b);
    for (std::int64_t i = 0; i < result.rows; ++i)
      for (std::int64_t j = 0; j < result.columns; ++j) {
        float sum = 0;
        for (std::int64_t l = 0; l < k; ++l)
          sum += left.at(a_here, a_turned ? l : i, a_turned ? i : l) *
                 right.at(b_here, b_turned ? j : l, b_turned ? l : j);
        sum *= times;
        if (kept != 0) sum += kept * result.at(seen(c), i, j);
        if (of.bias) sum += result.at(seen(of.bias), i, 0);
        if (relu && !(sum > 0)) sum = 0;  // NaN, too
        const auto index = static_cast<std::size_t>(j * result.leading + i);
        using baton::transformer::cuda::store;
        if (result.type == CUDA_R_32F) {
          static_cast<float*>(seen(d))[index] = sum;
        } else {
          store(static_cast<baton::bf16*>(seen(d)) + index, sum);
        }
      }
  });
  return CUBLAS_STATUS_SUCCESS;
}
