#pragma once
/// Gradients by the weights of linear layers: beside an exchange, or postponed.

#include "exchange.hpp"
#include "module.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// The function between pieces of a computation: it calls the context's and advances `pending`.
/// None if there is neither, since pieces take longer than the whole.
template <class T>
Meanwhile advancing(const Context& context, const Pending<T>& pending, const Exchange& by) {
  if (!pending.under_way()) return context.meanwhile;
  return [communicator = by.group.host, also = context.meanwhile] {
    advance(*communicator);
    if (also) also();
  };
}

/// weight.grad += dyᵀ · x, which is then complete: a weight_part() of the context. x and dy must
/// not change until it has run.
template <class T>
void weight_gradient(const Array<T>& x, const Array<T>& dy, Param<T>& weight, Context& context,
                     const Meanwhile& beside) {
  context.weight_part(
      [x, dy, &weight](const Context& now, const Meanwhile& meanwhile) {
        linear_backward_weight<T>(x, dy, weight.grad.view(), {}, meanwhile);
        now.complete(weight);
      },
      beside);
}
/// The same with bias.grad += the rows of dy, unless the bias is empty.
template <class T>
void weight_gradient(const Array<T>& x, const Array<T>& dy, Param<T>& weight, Param<T>& bias,
                     Context& context, const Meanwhile& beside) {
  if (bias.empty()) return weight_gradient(x, dy, weight, context, beside);
  context.weight_part(
      [x, dy, &weight, &bias](const Context& now, const Meanwhile& meanwhile) {
        linear_backward_weight<T>(x, dy, weight.grad.view(), bias.grad.view(), meanwhile);
        now.complete(weight);
        now.complete(bias);
      },
      beside);
}

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
