#pragma once
/// An accelerator for tests, on a device of threads.

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

#include "support/stand_in.hpp"
#include "transformer/accelerator.hpp"

namespace support {

/// Runs the host's functions, in its stream's order, on memory that the host cannot touch and that
/// is filled with NaN when it is allocated. Expects every operand in that memory.
class StandInAccelerator final : public baton::transformer::Accelerator {
 public:
  using Operand = baton::transformer::Operand;
  using ConstOperand = baton::transformer::ConstOperand;
  using Activation = baton::transformer::Activation;
  using AttentionOptions = baton::transformer::AttentionOptions;

  explicit StandInAccelerator(std::shared_ptr<StandInDevice> device)
      : device_(std::move(device)),
        stream_(device_->make_user_stream()),
        exchange_stream_(device_->make_user_stream()),
        markers_(*device_) {}
  ~StandInAccelerator() override {
    device_->synchronize(exchange_stream_);
    device_->synchronize(stream_);
  }

  baton::Device& device() const override { return *device_; }
  baton::Stream stream() const override { return stream_; }
  baton::Stream exchange_stream() const override { return exchange_stream_; }
  baton::transformer::Markers& markers() override { return markers_; }
  void synchronize() override;
  std::shared_ptr<void> allocate(std::size_t bytes) override;
  /// Bytes of the arrays that there are.
  std::int64_t held() const { return *held_; }
  void upload(const void* from, void* to, std::size_t bytes) override;
  void download(const void* from, void* to, std::size_t bytes) override;
  void zero(void* data, std::size_t bytes) override;
  void assign(const ConstOperand& from, const Operand& to) override;

  void linear(const ConstOperand& x, const ConstOperand& weight, const ConstOperand& bias,
              const Operand& y) override;
  void linear_backward_input(const ConstOperand& dy, const ConstOperand& weight, const Operand& dx,
                             bool add) override;
  void linear_backward_weight(const ConstOperand& x, const ConstOperand& dy, const Operand& dweight,
                              const Operand& dbias) override;
  void add_to_rows(const ConstOperand& bias, const Operand& y) override;
  void add_rows(const ConstOperand& x, const Operand& sum) override;
  void layer_norm(const ConstOperand& x, const ConstOperand& weight, const ConstOperand& bias,
                  double epsilon, const Operand& y, const Operand& stats) override;
  void layer_norm_backward(const ConstOperand& dy, const ConstOperand& x,
                           const ConstOperand& weight, const ConstOperand& stats, const Operand& dx,
                           const Operand& dweight, const Operand& dbias) override;
  void activate(Activation f, const ConstOperand& x, const Operand& y) override;
  void activate_backward(Activation f, const ConstOperand& dy, const ConstOperand& x,
                         const Operand& dx) override;
  void linear_activate(Activation f, const ConstOperand& x, const ConstOperand& weight,
                       const ConstOperand& bias, const Operand& pre, const Operand& y) override;
  void add(const ConstOperand& x, const Operand& y) override;
  void attention(const ConstOperand& q, const ConstOperand& k, const ConstOperand& v,
                 const AttentionOptions& options, const Operand& out,
                 const Operand& log_sums) override;
  void attention_backward(const ConstOperand& dout, const ConstOperand& q, const ConstOperand& k,
                          const ConstOperand& v, const ConstOperand& out,
                          const ConstOperand& log_sums, const AttentionOptions& options,
                          const Operand& dq, const Operand& dk, const Operand& dv) override;
  void embedding(const ConstOperand& ids, const ConstOperand& table, std::int64_t first,
                 const Operand& y) override;
  void embedding_backward(const ConstOperand& ids, const ConstOperand& dy, std::int64_t first,
                          const Operand& dtable) override;
  double mse(const ConstOperand& y, const ConstOperand& target, double elements,
             const Operand& dy) override;
  double cross_entropy(const ConstOperand& logits, const ConstOperand& targets, double elements,
                       const Operand& dlogits) override;
  void row_maximum(const ConstOperand& logits, const Operand& most) override;
  void exponential_sums(const ConstOperand& logits, const ConstOperand& targets, std::int64_t first,
                        const ConstOperand& most, const Operand& sums) override;
  double cross_entropy_of_sums(const ConstOperand& logits, const ConstOperand& targets,
                               std::int64_t first, const ConstOperand& most,
                               const ConstOperand& sums, double elements,
                               const Operand& dlogits) override;
  void drop(const baton::transformer::Dropout& dropout, const Operand& x) override;
  void sgd_step(const baton::transformer::SgdStep& step, const ConstOperand& grad,
                const Operand& velocity, const Operand& value, const Operand& master) override;
  void adamw_step(const baton::transformer::AdamWStep& step, const ConstOperand& grad,
                  const Operand& mean, const Operand& square, const Operand& value,
                  const Operand& master) override;

 private:
  /// Gives the stream work; what it throws comes from synchronize().
  void give(std::function<void()> work);
  /// Gives the stream `compute`, called with a zero of the type of `of` and with what the host sees
  /// of these operands, f32 or bf16.
  template <class Compute, class... Operands>
  void give(const ConstOperand& of, Compute compute, const Operands&... operands);
  /// Where the host sees it. Throws std::logic_error unless it lies on the device.
  void* seen(const void* data) const;

  /// Returns when all that computes is done. Throws what went wrong.
  void finish();

  std::shared_ptr<StandInDevice> device_;
  std::shared_ptr<std::atomic<std::int64_t>> held_ = std::make_shared<std::atomic<std::int64_t>>(0);
  baton::Stream stream_, exchange_stream_;
  baton::transformer::Markers markers_;
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace support
