#pragma once
/// Devices that compute in place of the host, and the one that a thread uses.

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "baton/device.hpp"
#include "ops/ops.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// Type, shape and strides of an operand.
struct OperandLayout {
  Datatype type = Datatype::f32;
  Shape shape;
  std::array<std::int64_t, Shape::max_rank> strides{};  ///< in elements

  /// A scalar.
  OperandLayout() = default;
  /// That of a view.
  template <class T>
  explicit OperandLayout(const View<T>& view) : type(datatype_of<T>), shape(view.shape()) {
    for (int d = 0; d < view.rank(); ++d) strides[static_cast<std::size_t>(d)] = view.stride(d);
  }
};
/// A strided tensor of any type, to write. An operand that was left out has no data.
struct Operand : OperandLayout {
  void* data = nullptr;

  /// Left out.
  Operand() = default;
  /// The elements of a view.
  template <class T>
  requires(!std::is_const_v<T>) Operand(const View<T>& view)  // NOLINT: free
      : OperandLayout(view), data(view.data()) {}
};
/// The same to read.
struct ConstOperand : OperandLayout {
  const void* data = nullptr;

  /// Left out.
  ConstOperand() = default;
  /// The elements of a view.
  template <class T>
  ConstOperand(const View<T>& view)  // NOLINT: free
      : OperandLayout(view), data(view.data()) {}
  /// The same elements.
  ConstOperand(const Operand& writable)  // NOLINT: free
      : OperandLayout(static_cast<const OperandLayout&>(writable)), data(writable.data) {}
};

/// One step of SGD: velocity = momentum · velocity + grad + decay · value, value -= rate ·
/// velocity. Without momentum there is no velocity to keep.
struct SgdStep {
  double rate = 0, momentum = 0, decay = 0;
};

/// One step of AdamW: mean = beta1 · mean + (1 - beta1) · grad, square = beta2 · square + (1 -
/// beta2) · grad², value = kept · value - rate · mean / (sqrt(square) · scale + epsilon).
struct AdamWStep {
  double beta1 = 0, beta2 = 0, rate = 0, scale = 0, epsilon = 0, kept = 1;
};

/// A supply of markers of a device. A marker is a point in the work of a stream.
class Markers {
 public:
  /// Makes `count` markers at once, since a device that makes another one later may wait for
  /// streams that are held.
  explicit Markers(Device& device, std::size_t count = 16);
  /// A spare marker, or a new one if there is none.
  std::unique_ptr<Marker> take();
  /// Keeps a marker for later use.
  void give(std::unique_ptr<Marker> marker) { spare_.push_back(std::move(marker)); }

 private:
  Device& device_;
  std::vector<std::unique_ptr<Marker>> spare_;
};

/// The computations of layers, exchanges and optimizers on a device: the functions of ops/ops.hpp
/// and a few more. Each function gives its work to one stream, in order, and returns at once;
/// functions that return a double wait for the result. Operands lie in the device's memory. They
/// are f32 or bf16, all of one type unless said otherwise. Their shapes fit, and may have no
/// elements; their strides are those that ops.hpp allows. With bf16, statistics, sums of
/// exponentials and optimizers' state are f32, and sums are f32 until they are written. Results
/// depend on operands only, not on timing.
///
/// An accelerator belongs to one rank, whose thread uses it. Any thread may release memory while
/// the accelerator lives. Throws Error(device) and Error(memory), also for earlier work, and
/// Error(unsupported) for f64.
class Accelerator {
 public:
  virtual ~Accelerator() = default;
  /// The device that it computes on.
  virtual Device& device() const = 0;
  /// The stream of computations, and of calls of a StreamCommunicator that do not go on beside
  /// them.
  virtual Stream stream() const = 0;
  /// The stream of calls that go on beside computation. Markers order the two streams.
  virtual Stream exchange_stream() const = 0;
  /// Markers of the device, for both streams.
  virtual Markers& markers() = 0;
  /// Returns when all work in both streams is done.
  virtual void synchronize() = 0;

  // --- memory -----------------------------------------------------------------------------------

  /// Memory of at least one byte, aligned to 256 bytes, for work that is given to the stream
  /// between this call and the release.
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
  /// Copies from the host's memory, which may change when this returns.
  virtual void upload(const void* from, void* to, std::size_t bytes) = 0;
  /// Copies to the host's memory; complete when this returns.
  virtual void download(const void* from, void* to, std::size_t bytes) = 0;
  /// Sets memory to zero.
  virtual void zero(void* data, std::size_t bytes) = 0;
  /// to = from. Strides may differ. Types are equal, i32 included, or f32 and bf16.
  virtual void assign(const ConstOperand& from, const Operand& to) = 0;

  // --- ops/ops.hpp -------------------------------------------------------------------------------

  /// linear().
  virtual void linear(const ConstOperand& x, const ConstOperand& weight, const ConstOperand& bias,
                      const Operand& y) = 0;
  /// linear_backward_input().
  virtual void linear_backward_input(const ConstOperand& dy, const ConstOperand& weight,
                                     const Operand& dx, bool add) = 0;
  /// linear_backward_weight().
  virtual void linear_backward_weight(const ConstOperand& x, const ConstOperand& dy,
                                      const Operand& dweight, const Operand& dbias) = 0;
  /// add_to_rows().
  virtual void add_to_rows(const ConstOperand& bias, const Operand& y) = 0;
  /// add_rows().
  virtual void add_rows(const ConstOperand& x, const Operand& sum) = 0;
  /// layer_norm(); stats are f32.
  virtual void layer_norm(const ConstOperand& x, const ConstOperand& weight,
                          const ConstOperand& bias, double epsilon, const Operand& y,
                          const Operand& stats) = 0;
  /// layer_norm_backward(); stats are f32.
  virtual void layer_norm_backward(const ConstOperand& dy, const ConstOperand& x,
                                   const ConstOperand& weight, const ConstOperand& stats,
                                   const Operand& dx, const Operand& dweight,
                                   const Operand& dbias) = 0;
  /// activate().
  virtual void activate(Activation f, const ConstOperand& x, const Operand& y) = 0;
  /// activate_backward().
  virtual void activate_backward(Activation f, const ConstOperand& dy, const ConstOperand& x,
                                 const Operand& dx) = 0;
  /// linear_activate().
  virtual void linear_activate(Activation f, const ConstOperand& x, const ConstOperand& weight,
                               const ConstOperand& bias, const Operand& pre, const Operand& y) = 0;
  /// add(), with any strides.
  virtual void add(const ConstOperand& x, const Operand& y) = 0;
  /// attention(); log_sums are f32, and AttentionOptions::meanwhile is empty.
  virtual void attention(const ConstOperand& q, const ConstOperand& k, const ConstOperand& v,
                         const AttentionOptions& options, const Operand& out,
                         const Operand& log_sums) = 0;
  /// attention_backward(), likewise.
  virtual void attention_backward(const ConstOperand& dout, const ConstOperand& q,
                                  const ConstOperand& k, const ConstOperand& v,
                                  const ConstOperand& out, const ConstOperand& log_sums,
                                  const AttentionOptions& options, const Operand& dq,
                                  const Operand& dk, const Operand& dv) = 0;
  /// embedding(); ids are i32.
  virtual void embedding(const ConstOperand& ids, const ConstOperand& table, std::int64_t first,
                         const Operand& y) = 0;
  /// embedding_backward(); ids are i32.
  virtual void embedding_backward(const ConstOperand& ids, const ConstOperand& dy,
                                  std::int64_t first, const Operand& dtable) = 0;
  /// mse().
  virtual double mse(const ConstOperand& y, const ConstOperand& target, double elements,
                     const Operand& dy) = 0;
  /// cross_entropy(); targets are i32. Throws Error(invalid_argument) that names the first target
  /// outside of the classes.
  virtual double cross_entropy(const ConstOperand& logits, const ConstOperand& targets,
                               double elements, const Operand& dlogits) = 0;

  // --- vocab.hpp ---------------------------------------------------------------------------------
  // vocab_parallel_cross_entropy() between its exchanges: logits [n, classes] belong to the classes
  // from `first` on, targets i32 [n] count through all classes; most and sums are f32.

  /// most [n] = the largest element of each row.
  virtual void row_maximum(const ConstOperand& logits, const Operand& most) = 0;
  /// sums [2, n] = Σ exp(logits - most) of each row, and its logits[target] - most, or 0 if the
  /// target is none of these classes.
  virtual void exponential_sums(const ConstOperand& logits, const ConstOperand& targets,
                                std::int64_t first, const ConstOperand& most,
                                const Operand& sums) = 0;
  /// Σ (log sums[0] - sums[1]) / elements, from sums over all classes. dlogits, which may be left
  /// out, = (exp(logits - most) / sums[0] - [it is the target]) / elements.
  virtual double cross_entropy_of_sums(const ConstOperand& logits, const ConstOperand& targets,
                                       std::int64_t first, const ConstOperand& most,
                                       const ConstOperand& sums, double elements,
                                       const Operand& dlogits) = 0;

  // --- dropout and optimizers
  // ---------------------------------------------------------------------------------

  /// Dropout::apply(), with any strides.
  virtual void drop(const Dropout& dropout, const Operand& x) = 0;
  /// SgdStep. velocity is f32, or left out if step.momentum is 0. If value is bf16, the step
  /// changes `master`, which is f32, and value is rounded from it; else there is no master. All
  /// operands are contiguous.
  virtual void sgd_step(const SgdStep& step, const ConstOperand& grad, const Operand& velocity,
                        const Operand& value, const Operand& master) = 0;
  /// AdamWStep. mean and square are f32; master as in sgd_step().
  virtual void adamw_step(const AdamWStep& step, const ConstOperand& grad, const Operand& mean,
                          const Operand& square, const Operand& value, const Operand& master) = 0;
};

/// The accelerator of this thread: its arrays lie there, and its ops run there. Null: the host.
Accelerator* accelerator();

/// Sets the thread's accelerator while this lives.
class AcceleratorScope {
 public:
  /// Null: the host.
  explicit AcceleratorScope(Accelerator* accelerator);
  ~AcceleratorScope();
  AcceleratorScope(const AcceleratorScope&) = delete;
  AcceleratorScope& operator=(const AcceleratorScope&) = delete;

 private:
  Accelerator* before_;
};

/// A copy of elements in the host's memory, as an array of the thread's accelerator.
/// Array::copy_of() copies elements that lie there already.
template <class T>
Array<T> from_host(View<const std::type_identity_t<T>> x);
/// A copy in the host's memory of elements of the thread's accelerator. Waits for them.
template <class T>
Array<T> to_host(View<const std::type_identity_t<T>> x);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
