#include "stand_in_accelerator.hpp"

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace support {

using namespace baton;
using namespace baton::transformer;

namespace {

/// An operand where the host sees it.
struct Seen {
  void* data;
  const ConstOperand& operand;

  template <class T>
  operator View<T>() const {  // NOLINT: for whatever function it is given to
    if (!data) return {};
    if (operand.type != View<T>::type) throw std::logic_error("operand of another type");
    return {static_cast<T*>(data), operand.shape, operand.strides};
  }
};

template <class T>
View<T> at(const Seen& seen) {
  return seen;
}

/// Largest and sums, row by row, as functions of what is read.
template <class T>
float value(View<const T> x, std::int64_t row, std::int64_t column) {
  return widen(x(row, column));
}

}  // namespace

void* StandInAccelerator::seen(const void* data) const {
  if (!data) return nullptr;
  if (device_->residence(data) != Residence::device)
    throw std::logic_error("expected an operand in the stand-in device's memory");
  return device_->host_view(data);
}

void StandInAccelerator::give(std::function<void()> work) {
  device_->run(stream_, [this, work = std::move(work)] {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  });
}

template <class Compute, class... Operands>
void StandInAccelerator::give(const ConstOperand& of, Compute compute,
                              const Operands&... operands) {
  const std::array<void*, sizeof...(Operands)> data{seen(operands.data)...};
  const std::array<ConstOperand, sizeof...(Operands)> all{operands...};
  give([type = of.type, compute = std::move(compute), data, all] {
    const auto call = [&]<std::size_t... I>(auto zero, std::index_sequence<I...>) {
      compute(zero, Seen{data[I], all[I]}...);
    };
    constexpr auto indexes = std::make_index_sequence<sizeof...(Operands)>();
    if (type == Datatype::f32) return call(0.0f, indexes);
    if (type == Datatype::bf16) return call(bf16{}, indexes);
    throw std::logic_error("expected operands of f32 or bf16");
  });
}

void StandInAccelerator::synchronize() {
  device_->synchronize(exchange_stream_);
  finish();
}

void StandInAccelerator::finish() {
  device_->synchronize(stream_);
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

std::shared_ptr<void> StandInAccelerator::allocate(std::size_t bytes) {
  std::byte* const data = device_->allocate(bytes);
  give([at = device_->host_view(data), bytes] { std::memset(at, 0xff, bytes); });
  *held_ += static_cast<std::int64_t>(bytes);
  return {data, [device = device_, stream = stream_, held = held_, bytes](void* memory) {
            *held -= static_cast<std::int64_t>(bytes);
            device->run(stream, [device = device.get(), memory] {
              device->free(static_cast<std::byte*>(memory));
            });
          }};
}

void StandInAccelerator::upload(const void* from, void* to, std::size_t bytes) {
  give([from, to = seen(to), bytes] { std::memcpy(to, from, bytes); });
  finish();
}
void StandInAccelerator::download(const void* from, void* to, std::size_t bytes) {
  give([from = seen(from), to, bytes] { std::memcpy(to, from, bytes); });
  finish();
}
void StandInAccelerator::zero(void* data, std::size_t bytes) {
  give([data = seen(data), bytes] { std::memset(data, 0, bytes); });
}

void StandInAccelerator::assign(const ConstOperand& from, const Operand& to) {
  if (from.type == to.type) {
    give(
        to,
        [](auto zero, Seen from, Seen to) {
          transformer::assign<decltype(zero)>(from, at<decltype(zero)>(to));
        },
        from, to);
    return;
  }
  give(
      to,
      [](auto zero, Seen from, Seen to) {
        using To = decltype(zero);
        using From = std::conditional_t<std::is_same_v<To, bf16>, float, bf16>;
        convert<From>(at<const From>(from), at<To>(to));
      },
      from, to);
}

void StandInAccelerator::linear(const ConstOperand& x, const ConstOperand& weight,
                                const ConstOperand& bias, const Operand& y) {
  give(
      y, [](auto zero, auto... operands) { transformer::linear<decltype(zero)>(operands...); }, x,
      weight, bias, y);
}
void StandInAccelerator::linear_backward_input(const ConstOperand& dy, const ConstOperand& weight,
                                               const Operand& dx, bool add) {
  give(
      dx,
      [add](auto zero, auto... operands) {
        transformer::linear_backward_input<decltype(zero)>(operands..., add);
      },
      dy, weight, dx);
}
void StandInAccelerator::linear_backward_weight(const ConstOperand& x, const ConstOperand& dy,
                                                const Operand& dweight, const Operand& dbias) {
  give(
      dweight,
      [](auto zero, auto... operands) {
        transformer::linear_backward_weight<decltype(zero)>(operands...);
      },
      x, dy, dweight, dbias);
}
void StandInAccelerator::add_to_rows(const ConstOperand& bias, const Operand& y) {
  give(
      y, [](auto zero, auto... operands) { transformer::add_to_rows<decltype(zero)>(operands...); },
      bias, y);
}
void StandInAccelerator::add_rows(const ConstOperand& x, const Operand& sum) {
  give(
      sum, [](auto zero, auto... operands) { transformer::add_rows<decltype(zero)>(operands...); },
      x, sum);
}

void StandInAccelerator::layer_norm(const ConstOperand& x, const ConstOperand& weight,
                                    const ConstOperand& bias, double epsilon, const Operand& y,
                                    const Operand& stats) {
  give(
      y,
      [epsilon](auto zero, Seen x, Seen weight, Seen bias, Seen y, Seen stats) {
        transformer::layer_norm<decltype(zero)>(x, weight, bias, epsilon, y, stats);
      },
      x, weight, bias, y, stats);
}
void StandInAccelerator::layer_norm_backward(const ConstOperand& dy, const ConstOperand& x,
                                             const ConstOperand& weight, const ConstOperand& stats,
                                             const Operand& dx, const Operand& dweight,
                                             const Operand& dbias) {
  give(
      dx,
      [](auto zero, auto... operands) {
        transformer::layer_norm_backward<decltype(zero)>(operands...);
      },
      dy, x, weight, stats, dx, dweight, dbias);
}

void StandInAccelerator::activate(Activation f, const ConstOperand& x, const Operand& y) {
  give(
      y,
      [f](auto zero, auto... operands) { transformer::activate<decltype(zero)>(f, operands...); },
      x, y);
}
void StandInAccelerator::activate_backward(Activation f, const ConstOperand& dy,
                                           const ConstOperand& x, const Operand& dx) {
  give(
      dx,
      [f](auto zero, auto... operands) {
        transformer::activate_backward<decltype(zero)>(f, operands...);
      },
      dy, x, dx);
}
void StandInAccelerator::linear_activate(Activation f, const ConstOperand& x,
                                         const ConstOperand& weight, const ConstOperand& bias,
                                         const Operand& pre, const Operand& y) {
  give(
      y,
      [f](auto zero, auto... operands) {
        transformer::linear_activate<decltype(zero)>(f, operands...);
      },
      x, weight, bias, pre, y);
}
void StandInAccelerator::add(const ConstOperand& x, const Operand& y) {
  give(
      y, [](auto zero, auto... operands) { transformer::add<decltype(zero)>(operands...); }, x, y);
}

void StandInAccelerator::attention(const ConstOperand& q, const ConstOperand& k,
                                   const ConstOperand& v, const AttentionOptions& options,
                                   const Operand& out, const Operand& log_sums) {
  give(
      out,
      [options](auto zero, Seen q, Seen k, Seen v, Seen out, Seen log_sums) {
        transformer::attention<decltype(zero)>(q, k, v, options, out, log_sums);
      },
      q, k, v, out, log_sums);
}
void StandInAccelerator::attention_backward(const ConstOperand& dout, const ConstOperand& q,
                                            const ConstOperand& k, const ConstOperand& v,
                                            const ConstOperand& out, const ConstOperand& log_sums,
                                            const AttentionOptions& options, const Operand& dq,
                                            const Operand& dk, const Operand& dv) {
  give(
      dq,
      [options](auto zero, Seen dout, Seen q, Seen k, Seen v, Seen out, Seen log_sums, Seen dq,
                Seen dk, Seen dv) {
        transformer::attention_backward<decltype(zero)>(dout, q, k, v, out, log_sums, options, dq,
                                                        dk, dv);
      },
      dout, q, k, v, out, log_sums, dq, dk, dv);
}

void StandInAccelerator::embedding(const ConstOperand& ids, const ConstOperand& table,
                                   std::int64_t first, const Operand& y) {
  give(
      y,
      [first](auto zero, Seen ids, Seen table, Seen y) {
        transformer::embedding<decltype(zero)>(ids, table, first, y);
      },
      ids, table, y);
}
void StandInAccelerator::embedding_backward(const ConstOperand& ids, const ConstOperand& dy,
                                            std::int64_t first, const Operand& dtable) {
  give(
      dtable,
      [first](auto zero, Seen ids, Seen dy, Seen dtable) {
        transformer::embedding_backward<decltype(zero)>(ids, dy, first, dtable);
      },
      ids, dy, dtable);
}

double StandInAccelerator::mse(const ConstOperand& y, const ConstOperand& target, double elements,
                               const Operand& dy) {
  double loss = 0;
  give(
      y,
      [&loss, elements](auto zero, Seen y, Seen target, Seen dy) {
        using T = decltype(zero);
        loss = transformer::mse<T>(at<const T>(y), target, elements, dy);
      },
      y, target, dy);
  finish();
  return loss;
}
double StandInAccelerator::cross_entropy(const ConstOperand& logits, const ConstOperand& targets,
                                         double elements, const Operand& dlogits) {
  double loss = 0;
  give(
      logits,
      [&loss, elements](auto zero, Seen logits, Seen targets, Seen dlogits) {
        using T = decltype(zero);
        loss = transformer::cross_entropy<T>(at<const T>(logits), targets, elements, dlogits);
      },
      logits, targets, dlogits);
  finish();
  return loss;
}

void StandInAccelerator::row_maximum(const ConstOperand& logits, const Operand& most) {
  give(
      logits,
      [](auto zero, Seen logits, Seen most) {
        const auto x = at<const decltype(zero)>(logits);
        const auto result = at<float>(most);
        for (std::int64_t i = 0; i < x.extent(0); ++i) {
          result(i) = value(x, i, 0);
          for (std::int64_t c = 1; c < x.extent(1); ++c)
            result(i) = std::fmax(result(i), value(x, i, c));
        }
      },
      logits, most);
}
void StandInAccelerator::exponential_sums(const ConstOperand& logits, const ConstOperand& targets,
                                          std::int64_t first, const ConstOperand& most,
                                          const Operand& sums) {
  give(
      logits,
      [first](auto zero, Seen logits, Seen targets, Seen most, Seen sums) {
        const auto x = at<const decltype(zero)>(logits);
        const auto result = at<float>(sums);
        for (std::int64_t i = 0; i < x.extent(0); ++i) {
          const float largest = at<const float>(most)(i);
          const std::int64_t own = at<const std::int32_t>(targets)(i) - first;
          result(0, i) = 0;
          for (std::int64_t c = 0; c < x.extent(1); ++c)
            result(0, i) += std::exp(value(x, i, c) - largest);
          result(1, i) = own >= 0 && own < x.extent(1) ? value(x, i, own) - largest : 0;
        }
      },
      logits, targets, most, sums);
}
double StandInAccelerator::cross_entropy_of_sums(const ConstOperand& logits,
                                                 const ConstOperand& targets, std::int64_t first,
                                                 const ConstOperand& most, const ConstOperand& sums,
                                                 double elements, const Operand& dlogits) {
  double loss = 0;
  give(
      logits,
      [&loss, first, elements](auto zero, Seen logits, Seen targets, Seen most, Seen sums,
                               Seen dlogits) {
        using T = decltype(zero);
        const auto x = at<const T>(logits);
        const auto total = at<const float>(sums);
        for (std::int64_t i = 0; i < x.extent(0); ++i) {
          loss += (std::log(total(0, i)) - total(1, i)) / elements;
          for (std::int64_t c = 0; dlogits.data && c < x.extent(1); ++c) {
            const float p = std::exp(value(x, i, c) - at<const float>(most)(i)) / total(0, i);
            const bool own = at<const std::int32_t>(targets)(i) == first + c;
            at<T>(dlogits)(i, c) = narrow<T>(static_cast<float>((p - (own ? 1 : 0)) / elements));
          }
        }
      },
      logits, targets, most, sums, dlogits);
  finish();
  return loss;
}

void StandInAccelerator::drop(const Dropout& dropout, const Operand& x) {
  give(
      x, [dropout](auto zero, Seen x) { dropout.apply(at<decltype(zero)>(x)); }, x);
}

void StandInAccelerator::sgd_step(const SgdStep& step, const ConstOperand& grad,
                                  const Operand& velocity, const Operand& value,
                                  const Operand& master) {
  give(
      value,
      [step](auto zero, Seen grad, Seen velocity, Seen value, Seen master) {
        using T = decltype(zero);
        const auto all = at<T>(value), grads = at<T>(grad);
        for (std::int64_t i = 0; i < all.size(); ++i) {
          const float before = master.data ? at<float>(master).data()[i] : widen(all.data()[i]);
          float by = widen(grads.data()[i]) + static_cast<float>(step.decay) * before;
          if (velocity.data) {
            float& kept = at<float>(velocity).data()[i];
            by = kept = static_cast<float>(step.momentum) * kept + by;
          }
          const float after = before - static_cast<float>(step.rate) * by;
          if (master.data) at<float>(master).data()[i] = after;
          all.data()[i] = narrow<T>(after);
        }
      },
      grad, velocity, value, master);
}
void StandInAccelerator::adamw_step(const AdamWStep& step, const ConstOperand& grad,
                                    const Operand& mean, const Operand& square,
                                    const Operand& value, const Operand& master) {
  give(
      value,
      [step](auto zero, Seen grad, Seen mean, Seen square, Seen value, Seen master) {
        using T = decltype(zero);
        const auto all = at<T>(value), grads = at<T>(grad);
        for (std::int64_t i = 0; i < all.size(); ++i) {
          const double g = widen(grads.data()[i]);
          float& m = at<float>(mean).data()[i];
          float& s = at<float>(square).data()[i];
          m = static_cast<float>(step.beta1 * m + (1 - step.beta1) * g);
          s = static_cast<float>(step.beta2 * s + (1 - step.beta2) * g * g);
          const double before = master.data ? at<float>(master).data()[i] : widen(all.data()[i]);
          const auto after = static_cast<float>(
              step.kept * before - step.rate * m / (std::sqrt(s) * step.scale + step.epsilon));
          if (master.data) at<float>(master).data()[i] = after;
          all.data()[i] = narrow<T>(after);
        }
      },
      grad, mean, square, value, master);
}

}  // namespace support
