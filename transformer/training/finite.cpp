#include "finite.hpp"

#include <algorithm>
#include <cmath>

#include "../accelerator.hpp"
#include "../instantiation.hpp"

namespace baton::transformer {
namespace {

template <class T>
bool finite_everywhere(const Array<T>& array, Communicator& world) {
  const Array<T> here = to_host<T>(array);
  const auto values = here.span();
  std::int32_t bad =
      std::all_of(values.begin(), values.end(), [](T value) { return std::isfinite(widen(value)); })
          ? 0
          : 1;
  world.all_reduce(std::span(&bad, 1), max);
  return bad == 0;
}

}  // namespace

template <class T>
std::string first_not_finite(Sequential<T>& model, const Array<T>& x, Context context,
                             Communicator& world) {
  context.keeps = false;
  if (!finite_everywhere(x, world)) return "the input";
  Array<T> y = x;
  for (const auto& [name, module] : model.layers()) {
    for (const Param<T>* param : module->params())
      if (!finite_everywhere(param->value, world)) return "the weights " + param->name;
    y = module->forward(y, context);
    if (!finite_everywhere(y, world)) return "the output of layer " + name;
  }
  return "the loss";
}

#define BATON_INSTANTIATE(T)                                                                 \
  template BATON_INSTANTIATION std::string first_not_finite(Sequential<T>&, const Array<T>&, \
                                                            Context, Communicator&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
