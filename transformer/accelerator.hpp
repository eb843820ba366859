#pragma once
/// What computes on a device in place of the host, and which of them a thread uses.

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "baton/device.hpp"
#include "baton/export.hpp"
#include "ops/ops.hpp"

namespace BATON_API baton {
namespace transformer {

/// How the elements of an operand lie in memory.
struct OperandLayout {
  Datatype type = Datatype::f32;
  Shape shape;
  std::array<std::int64_t, Shape::max_rank> strides{};  ///< in elements

  OperandLayout() = default;
  template <class T>
  explicit OperandLayout(const View<T>& view) : type(datatype_of<T>), shape(view.shape()) {
    for (int d = 0; d < view.rank(); ++d) strides[static_cast<std::size_t>(d)] = view.stride(d);
  }
};
/// A strided tensor to write, of any type; without data where it was left out.
struct Operand : OperandLayout {
  void* data = nullptr;

  Operand() = default;
  template <class T>
  requires(!std::is_const_v<T>) Operand(const View<T>& view)  // NOLINT: free
      : OperandLayout(view), data(view.data()) {}
};
/// The same to read.
struct ConstOperand : OperandLayout {
  const void* data = nullptr;

  ConstOperand() = default;
  template <class T>
  ConstOperand(const View<T>& view)  // NOLINT: free
      : OperandLayout(view), data(view.data()) {}
  ConstOperand(const Operand& writable)  // NOLINT: free
      : OperandLayout(static_cast<const OperandLayout&>(writable)), data(writable.data) {}
};

/// One step of AdamW: mean = beta1 · mean + (1 - beta1) · grad, square = beta2 · square + (1 -
/// beta2) · grad², value = kept · value - rate · mean / (sqrt(square) · scale + epsilon).
struct AdamWStep {
  double beta1 = 0, beta2 = 0, rate = 0, scale = 0, epsilon = 0, kept = 1;
};

/// Points in the work of a device's streams, to be used again and again.
class Markers {
 public:
  /// `count` are made at once, since a device may wait for streams that are held when it makes
  /// more.
  explicit Markers(Device& device, std::size_t count = 16);
  std::unique_ptr<Marker> take();
  void give(std::unique_ptr<Marker> marker) { spare_.push_back(std::move(marker)); }

 private:
  Device& device_;
  std::vector<std::unique_ptr<Marker>> spare_;
};

/// The functions of ops/ops.hpp, and what else layers, exchanges and optimizers do to elements, on
/// a device. Each is given to one stream, in order, and returns at once; those that return a
/// double wait for it. Operands lie in the device's memory, and are f32 or bf16, all alike unless
/// said otherwise; their shapes fit, also without any elements, and their strides are those that
/// ops.hpp allows. With bf16, statistics, sums of exponentials and what optimizers keep are f32,
/// and sums are f32 until they are written. Results depend on operands only, not on timing.
///
/// It belongs to one rank, whose thread uses it. Memory may be released by any thread, until the
/// accelerator ends. Throws Error(device) and Error(memory), also for what was given earlier, and
/// Error(unsupported) for f64.
class Accelerator {
 public:
  virtual ~Accelerator() = default;
  virtual Device& device() const = 0;
  /// In which it computes. Calls of a StreamCommunicator go there, too, unless they go on beside.
  virtual Stream stream() const = 0;
  /// Another one, of calls that go on beside computation; what orders the two is markers.
  virtual Stream exchange_stream() const = 0;
  virtual Markers& markers() = 0;
  /// Returns when all that was given is done, in both streams.
  virtual void synchronize() = 0;

  // --- memory -----------------------------------------------------------------------------------

  /// At least one byte, aligned to 256 bytes, for what is given to the stream from here on; when it
  /// is released, for what was given until then.
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
  /// From the host's memory, which may change when this returns.
  virtual void upload(const void* from, void* to, std::size_t bytes) = 0;
  /// To the host's memory, when this returns.
  virtual void download(const void* from, void* to, std::size_t bytes) = 0;
  virtual void zero(void* data, std::size_t bytes) = 0;
  /// to = from, with any strides, of one type, i32 as well, or between f32 and bf16.
  virtual void assign(const ConstOperand& from, const Operand& to) = 0;

  // --- ops/ops.hpp -------------------------------------------------------------------------------

  virtual void linear(const ConstOperand& x, const ConstOperand& weight, const ConstOperand& bias,
                      const Operand& y) = 0;
  virtual void linear_backward_input(const ConstOperand& dy, const ConstOperand& weight,
                                     const Operand& dx, bool add) = 0;
  virtual void linear_backward_weight(const ConstOperand& x, const ConstOperand& dy,
                                      const Operand& dweight, const Operand& dbias) = 0;
  virtual void add_to_rows(const ConstOperand& bias, const Operand& y) = 0;
  virtual void add_rows(const ConstOperand& x, const Operand& sum) = 0;
  /// stats f32.
  virtual void layer_norm(const ConstOperand& x, const ConstOperand& weight,
                          const ConstOperand& bias, double epsilon, const Operand& y,
                          const Operand& stats) = 0;
  virtual void layer_norm_backward(const ConstOperand& dy, const ConstOperand& x,
                                   const ConstOperand& weight, const ConstOperand& stats,
                                   const Operand& dx, const Operand& dweight,
                                   const Operand& dbias) = 0;
  virtual void activate(Activation f, const ConstOperand& x, const Operand& y) = 0;
  virtual void activate_backward(Activation f, const ConstOperand& dy, const ConstOperand& x,
                                 const Operand& dx) = 0;
  virtual void linear_activate(Activation f, const ConstOperand& x, const ConstOperand& weight,
                               const ConstOperand& bias, const Operand& pre, const Operand& y) = 0;
  /// Any strides.
  virtual void add(const ConstOperand& x, const Operand& y) = 0;
  /// log_sums f32. AttentionOptions::meanwhile is empty.
  virtual void attention(const ConstOperand& q, const ConstOperand& k, const ConstOperand& v,
                         const AttentionOptions& options, const Operand& out,
                         const Operand& log_sums) = 0;
  virtual void attention_backward(const ConstOperand& dout, const ConstOperand& q,
                                  const ConstOperand& k, const ConstOperand& v,
                                  const ConstOperand& out, const ConstOperand& log_sums,
                                  const AttentionOptions& options, const Operand& dq,
                                  const Operand& dk, const Operand& dv) = 0;
  /// ids i32.
  virtual void embedding(const ConstOperand& ids, const ConstOperand& table, std::int64_t first,
                         const Operand& y) = 0;
  virtual void embedding_backward(const ConstOperand& ids, const ConstOperand& dy,
                                  std::int64_t first, const Operand& dtable) = 0;
  virtual double mse(const ConstOperand& y, const ConstOperand& target, double elements,
                     const Operand& dy) = 0;
  /// targets i32; throws Error(invalid_argument) that names the first one outside of the classes.
  virtual double cross_entropy(const ConstOperand& logits, const ConstOperand& targets,
                               double elements, const Operand& dlogits) = 0;

  // --- vocab.hpp ---------------------------------------------------------------------------------
  // vocab_parallel_cross_entropy() between its exchanges: logits [n, classes] are those of the
  // classes from `first` on, targets i32 [n] count through all; most and sums are f32.

  /// most [n] = the largest of each row.
  virtual void row_maximum(const ConstOperand& logits, const Operand& most) = 0;
  /// sums [2, n] = Σ exp(logits - most) of each row, and its logits[target] - most, or 0 where the
  /// target is none of these classes.
  virtual void exponential_sums(const ConstOperand& logits, const ConstOperand& targets,
                                std::int64_t first, const ConstOperand& most,
                                const Operand& sums) = 0;
  /// Of sums over all classes: Σ (log sums[0] - sums[1]) / elements. dlogits, which may be left
  /// out, = (exp(logits - most) / sums[0] - [it is the target]) / elements.
  virtual double cross_entropy_of_sums(const ConstOperand& logits, const ConstOperand& targets,
                                       std::int64_t first, const ConstOperand& most,
                                       const ConstOperand& sums, double elements,
                                       const Operand& dlogits) = 0;

  // --- elsewhere ---------------------------------------------------------------------------------

  /// Dropout::apply, of any strides.
  virtual void drop(const Dropout& dropout, const Operand& x) = 0;
  /// value -= rate · grad. Where value is bf16, this happens to `master`, f32, which value is then
  /// rounded from; elsewhere there is no master. All contiguous.
  virtual void sgd_step(double rate, const ConstOperand& grad, const Operand& value,
                        const Operand& master) = 0;
  /// mean and square f32; master likewise.
  virtual void adamw_step(const AdamWStep& step, const ConstOperand& grad, const Operand& mean,
                          const Operand& square, const Operand& value, const Operand& master) = 0;
};

/// What this thread's Arrays lie in and its ops run on; null: the host.
Accelerator* accelerator();

/// Sets it for as long as this lives.
class AcceleratorScope {
 public:
  explicit AcceleratorScope(Accelerator* accelerator);
  ~AcceleratorScope();
  AcceleratorScope(const AcceleratorScope&) = delete;
  AcceleratorScope& operator=(const AcceleratorScope&) = delete;

 private:
  Accelerator* before_;
};

/// A copy, where Arrays lie now, of elements in the host's memory; Array::copy_of() is of those
/// that lie there already.
template <class T>
Array<T> from_host(View<const std::type_identity_t<T>> x);
/// A copy in the host's memory of elements that lie where Arrays do now. Waits for them.
template <class T>
Array<T> to_host(View<const std::type_identity_t<T>> x);

}  // namespace transformer
}  // namespace baton
