/// The library's kernels on the host, for launches on the stand-in: in place of the .cu files.

#include "memory/cuda/kernel_table.hpp"

#include <cstdlib>
#include <memory>
#include <utility>

#include "memory/host/with_element.hpp"
#include "on_host.hpp"
#include "stand_in_cuda.hpp"

namespace baton::cuda {
namespace {

using cuda_stand_in::host_view;
using Work = std::function<void()>;

template <int operands>
void place(Strided<operands>& job) {
  for (std::byte*& at : job.at) at = host_view(at);
}
void place(Tiles& tiles) {
  tiles.into = host_view(tiles.into);
  tiles.from = host_view(tiles.from);
}

std::byte* written(const Tiles& tiles) { return tiles.into; }
template <int operands>
std::byte* written(const Strided<operands>& job) {
  return job.at[0];
}

/// Whether launches are to give a wrong bit, for tests of those who check results.
bool is_wrong() {
  static const bool wrong = std::getenv("STAND_IN_WRONG") != nullptr;
  return wrong;
}

/// `call` of the first argument, with the host's addresses.
template <class Job, class Call>
Work work_on(void** arguments, Call call) {
  const auto& given = *static_cast<const Batch<Job>*>(arguments[0]);
  auto batch = std::make_shared<Batch<Job>>();
  batch->count = given.count;
  batch->units = given.units;
  for (std::uint32_t i = 0; i < given.count; ++i) place(batch->jobs[i] = given.jobs[i]);
  return [batch, call] {
    call(*batch);
    if (is_wrong() && batch->count > 0) *written(batch->jobs[0]) ^= std::byte{1};
  };
}

template <class T, OpKind op>
Work fold_work(void** arguments) {
  return work_on<Strided<3>>(arguments, on_host::fold_batch<T, op>);
}
template <class T>
Work divide_work(void** arguments) {
  return work_on<Strided<1>>(arguments,
                             [ranks = *static_cast<const int*>(arguments[1])](const auto& batch) {
                               on_host::divide_batch<T>(batch, ranks);
                             });
}
Work copy_work(void** arguments) { return work_on<Strided<2>>(arguments, on_host::copy_batch); }
Work tile_work(void** arguments) { return work_on<Tiles>(arguments, on_host::turn_batch); }

template <class T, OpKind op>
const void* kernel_of() {
  if constexpr (on_host::folds<T, op>) return cuda_stand_in::host_kernel(&fold_work<T, op>);
  return nullptr;
}

template <class T>
const void* fold_of(OpKind op) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    const void* found = nullptr;
    ((op == static_cast<OpKind>(i) ? void(found = kernel_of<T, static_cast<OpKind>(i)>()) : void()),
     ...);
    return found;
  }
  (std::make_index_sequence<static_cast<std::size_t>(OpKind::bit_and)>());
}

const void* fold_of(OpKind op, Datatype type) {
  return host::with_element(type, [op]<class T>() { return fold_of<T>(op); });
}

}  // namespace

const void* bitwise_fold(OpKind op) {
  switch (op) {
    case OpKind::bit_and:
      return kernel_of<std::uint8_t, OpKind::bit_and>();
    case OpKind::bit_or:
      return kernel_of<std::uint8_t, OpKind::bit_or>();
    case OpKind::bit_xor:
      return kernel_of<std::uint8_t, OpKind::bit_xor>();
    default:
      return nullptr;
  }
}
const void* byte_fold(OpKind op, Datatype type) { return fold_of(op, type); }
const void* integer_fold(OpKind op, Datatype type) { return fold_of(op, type); }
const void* float8_fold(OpKind op, Datatype type) { return fold_of(op, type); }
const void* half_fold(OpKind op, Datatype type) { return fold_of(op, type); }
const void* float_fold(OpKind op, Datatype type) { return fold_of(op, type); }

const void* divide_kernel(Datatype type) {
  return host::with_element(type,
                            []<class T>() { return cuda_stand_in::host_kernel(&divide_work<T>); });
}
const void* copy_kernel() { return cuda_stand_in::host_kernel(&copy_work); }
const void* tile_kernel() { return cuda_stand_in::host_kernel(&tile_work); }

}  // namespace baton::cuda
