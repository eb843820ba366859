#pragma once
/// Linear layers, whole and cut over the ranks of a mesh's axis tp, with explicit backward.
/// Shoeybi et al., Megatron-LM (2019).

#include <cstdint>
#include <string>

#include "baton/export.hpp"
#include "exchange.hpp"
#include "module.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// y [.., out] = x [.., in] · weightᵀ + bias, on this rank alone.
template <class T>
class Linear : public Module<T> {
 public:
  /// Weight [out, in] and bias [out] are uniform within 1/sqrt(in), like torch.nn.Linear's. They
  /// are drawn from `random.of(name + ".weight")` and `random.of(name + ".bias")`.
  Linear(const std::string& name, std::int64_t in, std::int64_t out, bool with_bias,
         const Random& random);

  Array<T> forward(const Array<T>& x, Context& context) override;
  Array<T> backward(const Array<T>& dy, Context& context) override;
  Params<T> params() override;

  Param<T> weight, bias;  ///< bias is empty where there is none

 private:
  struct BATON_HIDDEN Saved {
    Array<T> x;
  };
};

/// Linear with weight and bias cut by outputs over the P ranks of axis tp. x is whole on every
/// rank; y is this rank's part [.., out / P], or with `gather_output` the whole on every rank. In
/// backward, the all-reduce of dx goes on while the weight's gradient is computed.
///
/// The mesh must outlive the layer. Throws Error(invalid_argument) if P does not divide `out`.
template <class T>
class ColumnParallelLinear : public Module<T> {
 public:
  /// Draws this rank's part of the weights that Linear of this name would draw.
  ColumnParallelLinear(const std::string& name, std::int64_t in, std::int64_t out, bool with_bias,
                       const Random& random, const Mesh& mesh, bool gather_output);
  /// This rank's part of a layer's present weights.
  ColumnParallelLinear(const Linear<T>& whole, const Mesh& mesh, bool gather_output);

  Array<T> forward(const Array<T>& x, Context& context) override;
  Array<T> backward(const Array<T>& dy, Context& context) override;
  Params<T> params() override;

  Param<T> weight, bias;  ///< [out / P, in] and [out / P]

 private:
  struct BATON_HIDDEN Saved {
    Array<T> x;
  };
  Exchange broadcast_, gather_;
};

/// Linear with the weight cut by inputs over the P ranks of axis tp. With `input_is_parallel`, x is
/// this rank's part [.., in / P]; else x is whole, and the layer cuts it. y is whole on every rank.
/// The bias is whole on every rank, and is added once, after the reduction.
///
/// The mesh must outlive the layer. Throws Error(invalid_argument) if P does not divide `in`.
template <class T>
class RowParallelLinear : public Module<T> {
 public:
  /// Draws this rank's part of the weights that Linear of this name would draw.
  RowParallelLinear(const std::string& name, std::int64_t in, std::int64_t out, bool with_bias,
                    const Random& random, const Mesh& mesh, bool input_is_parallel);
  /// This rank's part of a layer's present weights.
  RowParallelLinear(const Linear<T>& whole, const Mesh& mesh, bool input_is_parallel);

  Array<T> forward(const Array<T>& x, Context& context) override;
  Array<T> backward(const Array<T>& dy, Context& context) override;
  Params<T> params() override;

  Param<T> weight, bias;  ///< [out, in / P] and [out]

 private:
  struct BATON_HIDDEN Saved {
    Array<T> x;
  };
  Exchange split_, reduce_;
};

/// An exchange as a layer.
template <class T>
class ExchangeLayer : public Module<T> {
 public:
  /// forward() and backward() are those of `exchange`.
  explicit ExchangeLayer(const Exchange& exchange) : exchange_(exchange) {}
  Array<T> forward(const Array<T>& x, Context&) override { return exchange_.forward(x); }
  Array<T> backward(const Array<T>& dy, Context&) override { return exchange_.backward(dy); }
  Params<T> params() override { return {}; }

 private:
  Exchange exchange_;
};

/// Forward, the identity; backward, the sum over axis tp. The mesh must outlive the layer.
template <class T>
class BroadcastParallel : public ExchangeLayer<T> {
 public:
  /// Over axis tp of `mesh`.
  explicit BroadcastParallel(const Mesh& mesh)
      : ExchangeLayer<T>(Exchange::broadcast_parallel(mesh.group(Axis::tp))) {}
};

/// Forward, [.., n] of the P ranks of axis tp joined to [.., P·n]; backward, this rank's part. The
/// mesh must outlive the layer.
template <class T>
class GatherParallel : public ExchangeLayer<T> {
 public:
  /// Over axis tp of `mesh`.
  explicit GatherParallel(const Mesh& mesh)
      : ExchangeLayer<T>(Exchange::gather_parallel(mesh.group(Axis::tp), -1)) {}
};

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
