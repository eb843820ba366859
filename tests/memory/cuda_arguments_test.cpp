/// What device memory's calls refuse; where there is no device, how they fail.

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include "baton/cuda.hpp"
#include "baton/cuda_runtime.hpp"
#include "baton/error.hpp"
#include "memory/cuda/kernel_table.hpp"
#include "memory/cuda/kernels.hpp"
#include "samples.hpp"
#include "support/ranks.hpp"

using namespace baton;

using support::error_of;
using support::holds;

namespace {

template <class Call>
std::string refusal(Call call) {
  const Error error = error_of(call);
  CHECK(error.code == ErrorCode::invalid_argument);
  return error.what();
}

Rows piece(std::uintptr_t address, std::int64_t block, std::int64_t stride = 0,
           std::int64_t rows = 1) {
  std::byte* const at = reinterpret_cast<std::byte*>(address);
  return {.at = {at, at, at}, .stride = {stride, stride, stride}, .block = block, .rows = rows};
}

}  // namespace

TEST_CASE("there is a kernel exactly where the operation is defined") {
  for (const Datatype type : samples::datatypes()) {
    CHECK(cuda::divide_kernel(type) != nullptr);
    for (const OpKind op : samples::ops())
      CHECK((cuda::fold_kernel(op, type) != nullptr) == defined_on(op, type));
    CHECK(cuda::fold_kernel(OpKind::user, type) == nullptr);
  }
  CHECK(cuda::fold_kernel(OpKind::sum, Datatype::user) == nullptr);
}

TEST_CASE("wrong arguments are refused before anything is enqueued") {
  const auto fold = [](OpKind op, Datatype type, Rows rows) {
    return refusal([=] { cuda::fold(op, type, std::span(&rows, 1), nullptr); });
  };
  CHECK(fold(OpKind::bit_and, Datatype::f32, piece(0x1000, 1)) ==
        "fold on a device: expected an operation that is defined on f32, found bit_and");
  CHECK(fold(OpKind::sum, Datatype::user, piece(0x1000, 1)).find("user") != std::string::npos);
  CHECK(fold(OpKind::sum, Datatype::f32, piece(0x1002, 1)) ==
        "fold on a device: expected addresses that are multiples of 4, the bytes of f32, found "
        "0x1002");
  CHECK(fold(OpKind::sum, Datatype::f64, piece(0x1000, 1, 20, 2)) ==
        "fold on a device: expected strides that are multiples of 8, the bytes of f64, found 20");
  CHECK(fold(OpKind::sum, Datatype::f64, piece(0x1000, -1)).find("found 1 rows of -1") !=
        std::string::npos);

  const auto divide = [](Datatype type, int ranks, Rows rows) {
    return refusal([=] { cuda::divide(type, ranks, std::span(&rows, 1), nullptr); });
  };
  CHECK(divide(Datatype::f32, 0, piece(0x1000, 1)) ==
        "division on a device: expected at least 1 rank, found 0");
  CHECK(divide(Datatype::user, 2, piece(0x1000, 1)).find("user") != std::string::npos);
  CHECK(divide(Datatype::f16, 2, piece(0x1001, 1)).find("0x1001") != std::string::npos);

  const Rows negative = piece(0x1000, 4, 4, -2);
  CHECK(refusal([&] { cuda::copy(4, std::span(&negative, 1), nullptr); }).find("-2 rows") !=
        std::string::npos);
}

TEST_CASE("nothing to do touches no device") {
  const Rows none[] = {piece(0x1001, 0), piece(0x1001, 5, 3, 0)};
  CHECK_NOTHROW(cuda::fold(OpKind::sum, Datatype::f64, none, nullptr));
  CHECK_NOTHROW(cuda::divide(Datatype::f64, 2, none, nullptr));
  CHECK_NOTHROW(cuda::copy(8, none, nullptr));
  CHECK_NOTHROW(cuda::copy(8, {}, nullptr));
}

TEST_CASE("CUDA's errors keep their code and text") {
  CHECK_NOTHROW(cuda::check(cudaSuccess, "copy"));
  const Error error = error_of([] { cuda::check(cudaErrorMemoryAllocation, "copy"); });
  CHECK(error.code == ErrorCode::device);
  CHECK(error.backend_code == cudaErrorMemoryAllocation);
  CHECK(error.backend_text == "cudaErrorMemoryAllocation: out of memory");
  CHECK(std::string(error.what()) ==
        "copy: expected success, found CUDA's error 2, cudaErrorMemoryAllocation: out of memory");
}

TEST_CASE("without a device every call says so") {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0) {
    CHECK_NOTHROW(cuda::load_kernels());
    CHECK_NOTHROW(cuda::load_kernels());
    return;
  }
  const Rows one = piece(0x1000, 4, 64, 2);
  const auto pieces = std::span(&one, 1);
  for (const Error& error : {error_of([] { cuda::load_kernels(); }), error_of([&] {
                               cuda::fold(OpKind::sum, Datatype::f32, pieces, nullptr);
                             }),
                             error_of([&] { cuda::divide(Datatype::f32, 2, pieces, nullptr); }),
                             error_of([&] { cuda::copy(4, pieces, nullptr); })}) {
    CHECK(error.code == ErrorCode::device);
    CHECK(error.backend_code != 0);
    CHECK(error.backend_text.find("cudaError") == 0);
  }
}

TEST_CASE("CUDA devices: one that is not there is an error that says how many are") {
  for (const int ordinal : {-1, 1000}) {
    const Error error = error_of([&] { static_cast<void>(cuda_device(ordinal)); });
    CHECK(error.code == ErrorCode::unsupported);
    CHECK(holds(error.what(), {"expected CUDA device " + std::to_string(ordinal),
                               "found " + std::to_string(cuda_devices())}));
  }
}
