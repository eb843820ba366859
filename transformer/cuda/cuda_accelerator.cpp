#include "cuda_accelerator.hpp"

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "baton/cuda.hpp"
#include "baton/cuda_runtime.hpp"
#include "baton/error.hpp"
#include "kernels.hpp"
#include "matmul.hpp"
#include "resources.hpp"

namespace baton::transformer {
namespace {

using baton::cuda::check;
using baton::cuda::CurrentDevice;

/// Bytes that cuBLASLt may use.
constexpr std::size_t workspace_bytes = std::size_t{32} << 20;
/// Bytes that are copied to or from the host at once.
constexpr std::size_t passage_bytes = std::size_t{1} << 20;

template <class T>
const T* in(const ConstOperand& x) {
  return static_cast<const T*>(x.data);
}
template <class T>
T* out(const Operand& x) {
  return static_cast<T*>(x.data);
}
std::int64_t last(const Shape& shape) { return shape.rank() == 0 ? 1 : shape[shape.rank() - 1]; }
std::int64_t rows(const Shape& shape) {
  return shape.rank() == 0 ? 1 : shape.product(0, shape.rank() - 1);
}

/// Calls call.operator()<T>() with T float or bf16.
template <class Call>
void with_type(Datatype type, Call call) {
  if (type == Datatype::f32) return call.template operator()<float>();
  if (type == Datatype::bf16) return call.template operator()<bf16>();
  throw Error(ErrorCode::unsupported,
              fmt::format("expected elements of f32 or bf16 on a CUDA device, found {}",
                          baton::name(type)));
}

class CudaAccelerator final : public Accelerator {
 public:
  /// An accelerator on the current device.
  explicit CudaAccelerator(const CudaAcceleratorOptions& options, std::shared_ptr<Device> device)
      : device_(std::move(device)),
        markers_(*device_),
        resources_(options.ordinal),
        passage_(device_->allocate_host(passage_bytes), Release{device_.get()}),
        tf32_(options.tf32),
        matmul_(options.tf32, reserved(options.reserve), workspace_bytes) {
    cuda::load_kernels();
  }

  Device& device() const override { return *device_; }
  Stream stream() const override { return resources_.stream(); }
  Stream exchange_stream() const override { return resources_.exchange_stream(); }
  Markers& markers() override { return markers_; }
  void synchronize() override {
    check(cudaStreamSynchronize(resources_.exchange_stream()), "an exchange on a CUDA device");
    finish();
  }

  // --- memory ------------------------------------------------------------------------------------

  std::shared_ptr<void> allocate(std::size_t bytes) override { return resources_.allocate(bytes); }
  // By way of locked memory: while a copy of other memory stands behind a held stream, CUDA's calls
  // wait in all threads, also in the one that would release the stream.
  void upload(const void* from, void* to, std::size_t bytes) override {
    for (std::size_t at = 0; at < bytes; at += passage_bytes) {
      const std::size_t piece = std::min(bytes - at, passage_bytes);
      std::memcpy(passage_.get(), static_cast<const std::byte*>(from) + at, piece);
      copy(passage_.get(), static_cast<std::byte*>(to) + at, piece, cudaMemcpyHostToDevice);
      finish();
    }
  }
  void download(const void* from, void* to, std::size_t bytes) override {
    for (std::size_t at = 0; at < bytes; at += passage_bytes) {
      const std::size_t piece = std::min(bytes - at, passage_bytes);
      copy(static_cast<const std::byte*>(from) + at, passage_.get(), piece, cudaMemcpyDeviceToHost);
      finish();
      std::memcpy(static_cast<std::byte*>(to) + at, passage_.get(), piece);
    }
  }
  void zero(void* data, std::size_t bytes) override {
    const CurrentDevice current(resources_.ordinal());
    if (bytes > 0) check(cudaMemsetAsync(data, 0, bytes, native()), "zeros on a CUDA device");
  }
  void assign(const ConstOperand& from, const Operand& to) override {
    const CurrentDevice current(resources_.ordinal());
    const auto strides = cuda::strides_of(to.shape, to.strides, from.strides);
    if (from.type == to.type && contiguous(strides)) {
      return copy(from.data, to.data, static_cast<std::size_t>(strides.count) * size_of(to.type),
                  cudaMemcpyDeviceToDevice);
    }
    if (from.type == Datatype::i32 && to.type == Datatype::i32) {
      return cuda::assign(strides, in<std::int32_t>(from), out<std::int32_t>(to), native());
    }
    with_type(from.type, [&]<class From>() {
      with_type(to.type, [&]<class To>() {
        if (contiguous(strides)) {
          cuda::convert(strides.count, in<From>(from), out<To>(to), native());
        } else {
          cuda::assign(strides, in<From>(from), out<To>(to), native());
        }
      });
    });
  }

  // --- ops/ops.hpp -------------------------------------------------------------------------------

  void linear(const ConstOperand& x, const ConstOperand& weight, const ConstOperand& bias,
              const Operand& y) override {
    multiply(cuda::linear_product(rows(y.shape), weight.shape[1], weight.shape[0]), weight, x, bias,
             false, y);
  }
  void linear_backward_input(const ConstOperand& dy, const ConstOperand& weight, const Operand& dx,
                             bool add) override {
    multiply(cuda::input_product(rows(dy.shape), weight.shape[1], weight.shape[0]), weight, dy, {},
             add, dx);
  }
  void linear_backward_weight(const ConstOperand& x, const ConstOperand& dy, const Operand& dweight,
                              const Operand& dbias) override {
    if (dbias.data) add_rows(dy, dbias);
    multiply(cuda::weight_product(rows(dy.shape), dweight.shape[1], dweight.shape[0]), x, dy, {},
             true, dweight);
  }
  void add_to_rows(const ConstOperand& bias, const Operand& y) override {
    on_device(y.type, [&]<class T>() {
      cuda::add_to_rows(rows(y.shape), last(y.shape), in<T>(bias), out<T>(y), native());
    });
  }
  void add_rows(const ConstOperand& x, const Operand& sum) override {
    const std::int64_t count = rows(x.shape), n = last(x.shape);
    const auto scratch = floats(cuda::chunks_of(count, n).count * n);
    on_device(x.type, [&]<class T>() {
      cuda::add_rows(count, n, in<T>(x), out<T>(sum), scratch.get(), native());
    });
  }

  void layer_norm(const ConstOperand& x, const ConstOperand& weight, const ConstOperand& bias,
                  double epsilon, const Operand& y, const Operand& stats) override {
    on_device(x.type, [&]<class T>() {
      cuda::layer_norm<T>({rows(x.shape), last(x.shape), in<T>(x), in<T>(weight), in<T>(bias),
                           static_cast<float>(epsilon), out<T>(y), out<float>(stats)},
                          native());
    });
  }
  void layer_norm_backward(const ConstOperand& dy, const ConstOperand& x,
                           const ConstOperand& weight, const ConstOperand& stats, const Operand& dx,
                           const Operand& dweight, const Operand& dbias) override {
    const std::int64_t count = rows(x.shape), n = last(x.shape);
    const auto scratch = floats(2 * cuda::chunks_of(count, n).count * n);
    on_device(x.type, [&]<class T>() {
      cuda::layer_norm_backward<T>(
          {count, n, in<T>(dy), in<T>(x), in<T>(weight), in<float>(stats), out<T>(dx)},
          out<T>(dweight), out<T>(dbias), scratch.get(), native());
    });
  }

  void activate(Activation f, const ConstOperand& x, const Operand& y) override {
    on_device(x.type, [&]<class T>() {
      cuda::activate(f, x.shape.elements(), in<T>(x), out<T>(y), native());
    });
  }
  void activate_backward(Activation f, const ConstOperand& dy, const ConstOperand& x,
                         const Operand& dx) override {
    on_device(x.type, [&]<class T>() {
      cuda::activate_backward(f, x.shape.elements(), in<T>(dy), in<T>(x), out<T>(dx), native());
    });
  }
  void linear_activate(Activation f, const ConstOperand& x, const ConstOperand& weight,
                       const ConstOperand& bias, const Operand& pre, const Operand& y) override {
    // Of cuBLASLt's epilogues only ReLU is used. It overwrites its argument.
    if (f == Activation::relu && pre.data == y.data) {
      const auto product = cuda::linear_product(rows(y.shape), weight.shape[1], weight.shape[0]);
      return multiply(product, weight, x, bias, false, y, true);
    }
    linear(x, weight, bias, pre);
    activate(f, pre, y);
  }
  void add(const ConstOperand& x, const Operand& y) override {
    const auto strides = cuda::strides_of(y.shape, y.strides, x.strides);
    on_device(y.type, [&]<class T>() {
      if (contiguous(strides)) {
        cuda::add(strides.count, in<T>(x), out<T>(y), native());
      } else {
        cuda::add(strides, in<T>(x), out<T>(y), native());
      }
    });
  }

  void attention(const ConstOperand& q, const ConstOperand& k, const ConstOperand& v,
                 const AttentionOptions& options, const Operand& result,
                 const Operand& log_sums) override {
    expect_head(q.shape);
    on_device(q.type, [&]<class T>() {
      auto of = cuda::attention_of<T>(q, k, v, options, result, log_sums);
      of.tf32 = tf32_;
      cuda::attention(of, native());
    });
  }
  void attention_backward(const ConstOperand& dout, const ConstOperand& q, const ConstOperand& k,
                          const ConstOperand& v, const ConstOperand& result,
                          const ConstOperand& log_sums, const AttentionOptions& options,
                          const Operand& dq, const Operand& dk, const Operand& dv) override {
    expect_head(q.shape);
    const auto dots = floats(log_sums.shape.elements());
    on_device(q.type, [&]<class T>() {
      auto of = cuda::attention_backward_of<T>(dout, q, k, v, result, log_sums, options, dots.get(),
                                               dq, dk, dv);
      of.tf32 = tf32_;
      cuda::attention_backward(of, native());
    });
  }

  void embedding(const ConstOperand& ids, const ConstOperand& table, std::int64_t first,
                 const Operand& y) override {
    on_device(table.type, [&]<class T>() {
      cuda::embedding(table_of<T>(ids, table.shape, first), in<T>(table), out<T>(y), native());
    });
  }
  void embedding_backward(const ConstOperand& ids, const ConstOperand& dy, std::int64_t first,
                          const Operand& dtable) override {
    const auto scratch =
        scratch_of<std::int32_t>(cuda::chains_size(ids.shape.elements(), dtable.shape[0]));
    on_device(dy.type, [&]<class T>() {
      cuda::embedding_backward(table_of<T>(ids, dtable.shape, first), in<T>(dy), out<T>(dtable),
                               scratch.get(), native());
    });
  }

  // --- losses ------------------------------------------------------------------------------------

  double mse(const ConstOperand& y, const ConstOperand& target, double elements,
             const Operand& dy) override {
    const std::int64_t count = y.shape.elements();
    return loss(y.type, cuda::mse_terms(count), elements, [&]<class T>(double* terms, double* sum) {
      cuda::mse<T>({count, in<T>(y), in<T>(target), static_cast<float>(2 / elements), out<T>(dy)},
                   terms, sum, native());
    });
  }
  double cross_entropy(const ConstOperand& logits, const ConstOperand& targets, double elements,
                       const Operand& dlogits) override {
    const std::int64_t n = logits.shape[0], classes = logits.shape[1];
    const auto most = floats(n), sums = floats(2 * n);
    const double result = loss(logits.type, n, elements, [&]<class T>(double* terms, double* sum) {
      const auto of = logits_of<T>(logits, targets, 0);
      cuda::row_maximum(of, most.get(), native());
      cuda::exponential_sums(of, most.get(), sums.get(), native());
      cuda::cross_entropy(of, most.get(), sums.get(), elements, out<T>(dlogits), terms, sum,
                          native());
    });
    const auto here = std::make_unique<std::int32_t[]>(static_cast<std::size_t>(n));
    download(targets.data, here.get(), static_cast<std::size_t>(n) * sizeof(std::int32_t));
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int32_t target = here[static_cast<std::size_t>(i)];
      if (target >= 0 && target < classes) continue;
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("cross_entropy: expected a target within [0, {}), found {} at {}",
                              classes, target, i));
    }
    return result;
  }
  void row_maximum(const ConstOperand& logits, const Operand& most) override {
    on_device(logits.type, [&]<class T>() {
      cuda::row_maximum(logits_of<T>(logits, {}, 0), out<float>(most), native());
    });
  }
  void exponential_sums(const ConstOperand& logits, const ConstOperand& targets, std::int64_t first,
                        const ConstOperand& most, const Operand& sums) override {
    on_device(logits.type, [&]<class T>() {
      cuda::exponential_sums(logits_of<T>(logits, targets, first), in<float>(most),
                             out<float>(sums), native());
    });
  }
  double cross_entropy_of_sums(const ConstOperand& logits, const ConstOperand& targets,
                               std::int64_t first, const ConstOperand& most,
                               const ConstOperand& sums, double elements,
                               const Operand& dlogits) override {
    return loss(logits.type, logits.shape[0], elements, [&]<class T>(double* terms, double* sum) {
      cuda::cross_entropy(logits_of<T>(logits, targets, first), in<float>(most), in<float>(sums),
                          elements, out<T>(dlogits), terms, sum, native());
    });
  }

  // --- dropout and optimizers --------------------------------------------------------------------

  void drop(const Dropout& dropout, const Operand& x) override {
    const cuda::Dropped of = cuda::dropped(dropout, x);
    on_device(x.type, [&]<class T>() {
      cuda::dropout(of.strides, of.mask, of.first, out<T>(x), native());
    });
  }
  void sgd_step(const SgdStep& step, const ConstOperand& grad, const Operand& velocity,
                const Operand& value, const Operand& master) override {
    on_device(value.type, [&]<class T>() {
      cuda::sgd(cuda::sgd_factors(step), value.shape.elements(), in<T>(grad), out<T>(value),
                out<float>(master), out<float>(velocity), native());
    });
  }
  void adamw_step(const AdamWStep& step, const ConstOperand& grad, const Operand& mean,
                  const Operand& square, const Operand& value, const Operand& master) override {
    on_device(value.type, [&]<class T>() {
      cuda::adamw(cuda::adam_step(step), value.shape.elements(), in<T>(grad), out<T>(value),
                  out<float>(master), out<float>(mean), out<float>(square), native());
    });
  }

 private:
  cudaStream_t native() const { return resources_.stream(); }
  /// Returns when all computations are done.
  void finish() { check(cudaStreamSynchronize(native()), "work on a CUDA device"); }
  template <class Call>
  void on_device(Datatype type, Call call) {
    const CurrentDevice current(resources_.ordinal());
    with_type(type, call);
  }

  /// The workspace, when the pool has got `bytes` more.
  std::shared_ptr<void> reserved(std::size_t bytes) {
    auto workspace = resources_.allocate(workspace_bytes);
    resources_.allocate(bytes);
    return workspace;
  }
  /// Memory in the stream's order: it may be released when the stream was given the kernels that
  /// use it.
  template <class T>
  std::shared_ptr<T> scratch_of(std::int64_t count) {
    return std::static_pointer_cast<T>(allocate(static_cast<std::size_t>(count) * sizeof(T)));
  }
  std::shared_ptr<float> floats(std::int64_t count) { return scratch_of<float>(count); }

  void copy(const void* from, void* to, std::size_t bytes, cudaMemcpyKind kind) {
    const CurrentDevice current(resources_.ordinal());
    if (bytes > 0) check(cudaMemcpyAsync(to, from, bytes, kind, native()), "a copy");
  }
  void multiply(const cuda::Product& product, const ConstOperand& a, const ConstOperand& b,
                const ConstOperand& bias, bool add, const Operand& c, bool relu = false) {
    const CurrentDevice current(resources_.ordinal());
    if (product.k == 0) {
      if (!add) zero(c.data, static_cast<std::size_t>(c.shape.elements()) * size_of(c.type));
      if (bias.data) add_to_rows(bias, c);
      if (relu) activate(Activation::relu, c, c);
      return;
    }
    with_type(c.type, [&]<class T>() {
      matmul_.multiply(product, c.type, a.data, b.data, {bias.data, relu}, add, c.data, native());
    });
  }
  /// call.operator()<T>(terms, sum) gives the stream kernels that write a sum of `terms` terms.
  template <class Call>
  double loss(Datatype type, std::int64_t terms, double elements, Call call) {
    const auto scratch = scratch_of<double>(terms + 1);
    on_device(type,
              [&]<class T>() { call.template operator()<T>(scratch.get() + 1, scratch.get()); });
    double sum = 0;
    download(scratch.get(), &sum, sizeof(sum));
    return sum / elements;
  }

  template <class T>
  static cuda::Table<T> table_of(const ConstOperand& ids, const Shape& table, std::int64_t first) {
    return {ids.shape.elements(), table[0], table[1], first, in<std::int32_t>(ids)};
  }
  template <class T>
  static cuda::Logits<T> logits_of(const ConstOperand& logits, const ConstOperand& targets,
                                   std::int64_t first) {
    return {logits.shape[0], logits.shape[1], first, in<T>(logits), in<std::int32_t>(targets)};
  }
  static void expect_head(const Shape& q) {
    if (q[3] <= cuda::largest_head) return;
    throw Error(ErrorCode::unsupported,
                fmt::format("attention: expected heads of at most {} elements on a CUDA device, "
                            "found {}",
                            cuda::largest_head, q.text()));
  }

  struct Release {
    Device* device;
    void operator()(std::byte* memory) const { device->free_host(memory); }
  };

  std::shared_ptr<Device> device_;
  Markers markers_;
  cuda::Resources resources_;
  std::unique_ptr<std::byte, Release> passage_;  // locked memory of the host
  const bool tf32_;
  cuda::Matmul matmul_;
};

}  // namespace

std::unique_ptr<Accelerator> cuda_accelerator(const CudaAcceleratorOptions& options) {
  auto device = cuda_device(options.ordinal);
  const CurrentDevice current(options.ordinal);
  return std::make_unique<CudaAccelerator>(options, std::move(device));
}

}  // namespace baton::transformer
