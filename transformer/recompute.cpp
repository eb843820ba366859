#include "recompute.hpp"

namespace baton::transformer {
namespace {

/// The same micro-batch, of which nothing is kept.
Context fresh(const Context& context) {
  Context other;
  other.training = context.training;
  other.postpones = context.postpones;
  other.random = context.random;
  other.first_sample = context.first_sample;
  other.meanwhile = context.meanwhile;
  other.completed = context.completed;
  return other;
}

}  // namespace

template <class T>
Array<T> Recomputed<T>::forward(const Array<T>& x, Context& context) {
  Context inner = fresh(context);
  inner.keeps = false;
  Array<T> y = module_.forward(x, inner);
  context.push(Saved{x});
  return y;
}

template <class T>
Array<T> Recomputed<T>::backward(const Array<T>& dy, Context& context) {
  const auto saved = context.pop<Saved>();
  Context inner = fresh(context);
  module_.forward(saved.x, inner);
  Array<T> dx = module_.backward(dy, inner);
  context.take_postponed(inner);
  return dx;
}

template class Recomputed<float>;
template class Recomputed<double>;
template class Recomputed<bf16>;

}  // namespace baton::transformer
