#include "matmul.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "baton/error.hpp"

namespace baton::transformer::cuda {
namespace {

void check(cublasStatus_t status, std::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const int number = static_cast<int>(status);
  Error error(ErrorCode::device, fmt::format("{}: expected success, found cuBLASLt's status {}, {}",
                                             what, number, cublasLtGetStatusName(status)));
  error.backend_code = number;
  error.backend_text = cublasLtGetStatusString(status);
  throw error;
}

/// The largest power of two that divides an address, up to what cuBLASLt asks for at most.
std::uint32_t alignment(const void* address) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address) | 256;
  return std::uint32_t{1} << std::countr_zero(bits);
}

template <class Value>
void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute, Value value) {
  check(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof(value)),
        "a matrix product");
}
template <class Value>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
         Value value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)),
        "a matrix product");
}

/// cuBLASLt's objects, destroyed when they go.
template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T* object) const {
    destroy(object);
  }
};
using Description =
    std::unique_ptr<cublasLtMatmulDescOpaque_t, Destroy<&cublasLtMatmulDescDestroy>>;
using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, Destroy<&cublasLtMatrixLayoutDestroy>>;
using Preference =
    std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, Destroy<&cublasLtMatmulPreferenceDestroy>>;

Layout layout(cudaDataType type, std::int64_t rows, std::int64_t columns, std::int64_t leading) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(columns), leading),
        "the layout of a matrix");
  return Layout(made);
}

cublasLtEpilogue_t epilogue_of(bool biased, bool relu) {
  if (relu) return biased ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
  return biased ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

}  // namespace

struct Matmul::Plan {
  Description description;
  Layout a, b, c;
  cublasLtMatmulAlgo_t algorithm{};
};

Matmul::Matmul(bool tf32, std::shared_ptr<void> workspace, std::size_t workspace_bytes)
    : tf32_(tf32), workspace_(std::move(workspace)), workspace_bytes_(workspace_bytes) {
  check(cublasLtCreate(&handle_), "cuBLASLt");
}

Matmul::~Matmul() { cublasLtDestroy(handle_); }

auto Matmul::plan(const Key& key) -> const Plan& {
  std::unique_ptr<Plan>& known = plans_[key];
  if (known) return *known;
  auto plan = std::make_unique<Plan>();
  const Product& p = key.product;
  const bool narrow = key.type == Datatype::bf16;
  const cudaDataType type = narrow ? CUDA_R_16BF : CUDA_R_32F;
  const bool rounds = tf32_ && !narrow;
  cublasLtMatmulDesc_t description = nullptr;
  check(cublasLtMatmulDescCreate(
            &description, rounds ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "a matrix product");
  plan->description.reset(description);
  const auto transposed = [](bool is) { return is ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(description, CUBLASLT_MATMUL_DESC_TRANSA, transposed(p.a_transposed));
  set(description, CUBLASLT_MATMUL_DESC_TRANSB, transposed(p.b_transposed));
  set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(key.biased, key.relu));
  if (key.biased) {
    // An address of the same alignment, which the search looks at.
    set(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
        reinterpret_cast<const void*>(std::uintptr_t{key.alignment[3]}));
  }
  plan->a = layout(type, p.a_transposed ? p.k : p.n, p.a_transposed ? p.n : p.k, p.a_leading);
  plan->b = layout(type, p.b_transposed ? p.m : p.k, p.b_transposed ? p.k : p.m, p.b_leading);
  plan->c = layout(type, p.n, p.m, p.c_leading);

  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "a matrix product");
  const Preference owner(preference);
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes_);
  // Parts of a sum are added in one order, by a kernel that comes after.
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.alignment[0]);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.alignment[1]);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.alignment[2]);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.alignment[2]);
  cublasLtMatmulHeuristicResult_t result{};
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle_, description, plan->a.get(), plan->b.get(),
                                     plan->c.get(), plan->c.get(), preference, 1, &result, &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && found == 0)) {
    throw Error(ErrorCode::unsupported,
                fmt::format("expected an algorithm of cuBLASLt for a product of [{}, {}] and "
                            "[{}, {}] of {}, found none",
                            p.n, p.k, p.k, p.m, narrow ? "bf16" : "f32"));
  }
  check(status, "the algorithm of a matrix product");
  plan->algorithm = result.algo;
  known = std::move(plan);
  return *known;
}

void Matmul::multiply(const Product& product, Datatype type, const void* a, const void* b,
                      const Epilogue& epilogue, bool add, void* c, cudaStream_t stream) {
  if (product.n == 0 || product.m == 0) return;
  const void* const bias = epilogue.bias;
  const Key key{
      product,       type, bias != nullptr,
      epilogue.relu, add,  {alignment(a), alignment(b), alignment(c), bias ? alignment(bias) : 0}};
  const Plan& plan = this->plan(key);
  if (bias) set(plan.description.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  const float one = 1, beta = add ? 1 : 0;
  check(cublasLtMatmul(handle_, plan.description.get(), &one, a, plan.a.get(), b, plan.b.get(),
                       &beta, c, plan.c.get(), c, plan.c.get(), &plan.algorithm, workspace_.get(),
                       workspace_bytes_, stream),
        "a matrix product");
}

}  // namespace baton::transformer::cuda
