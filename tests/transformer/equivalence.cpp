#include "equivalence.hpp"

#include <fmt/core.h>

#include "transformer/training/compare.hpp"

namespace support {

using namespace baton;
using namespace baton::transformer;

namespace {

template <class T>
double difference(const Array<T>& found, View<const T> expected) {
  const auto here = to_host<T>(found);
  const AcceleratorScope host(nullptr);
  const auto packed = Array<T>::copy_of(expected);
  return compare_tensors<T>(here, packed, 0).relative();
}

template <class T>
double largest_of(const Array<T>& array) {
  double most = 0;
  for (const T value : array.span()) most = std::max(most, std::abs(double(widen(value))));
  return most;
}

Random of_step() { return Random{11, 3}; }

}  // namespace

Mesh mesh_of(Communicator& world, const Place& place,
             const std::vector<std::pair<Axis, int>>& axes) {
  if (place.communicator) return {world, *place.communicator, axes};
  return {world, axes};
}

template <class T>
Differences differences(Communicator& world, const BlockCase& c, const Rewire<T>& rewire, bool sync,
                        const Place& place) {
  const Random random{5};
  Array<T> x({c.batch, c.seq, c.config.d_model}), dy(x.shape());
  fill_normal(x.view(), random.of("x"), 1);
  fill_normal(dy.view(), random.of("dy"), 1);

  TransformerBlock<T> whole(c.config, random);
  Context context;
  context.random = of_step();
  const Array<T> y = whole.forward(x, context), dx = whole.backward(dy, context);

  const Mesh mesh = mesh_of(world, place, {{Axis::dp, c.dp}, {Axis::sp, c.sp}, {Axis::tp, c.tp}});
  TransformerBlock<T> block(c.config, random);
  block.parallelize(mesh, c.sequence_parallel);
  auto form = block.parallel_form();
  const std::int64_t samples = c.batch / c.dp, positions = c.seq / form.parts;
  const auto piece = [&](const Array<T>& a) {
    return a.view()
        .slice(0, mesh.rank(Axis::dp) * samples, (mesh.rank(Axis::dp) + 1) * samples)
        .slice(1, form.part * positions, (form.part + 1) * positions);
  };
  if (rewire) rewire(form);
  const Params<T> params = block.params(form), expected = whole.params();
  if (place.accelerator) move_to(*place.accelerator, params);
  const AcceleratorScope scope(place.accelerator);
  Context own;
  own.random = of_step();
  own.first_sample = mesh.rank(Axis::dp) * samples;
  Differences found;
  found["y"] = difference<T>(block.forward(from_host<T>(piece(x)), own, form), piece(y));
  found["dx"] = difference<T>(block.backward(from_host<T>(piece(dy)), own, form), piece(dx));
  if (sync) sync_grads(params, mesh, 4096);
  for (std::size_t p = 0; p < params.size(); ++p) {
    double& relative = found[expected[p]->name] =
        difference<T>(whole_grad(*params[p], mesh), expected[p]->grad.view());
    // What is added to all keys does not change attention, so this gradient is nothing but
    // rounding.
    if (params[p] == form.k_bias)
      relative *= largest_of<T>(expected[p]->grad) / largest_of<T>(whole.q_proj_bias.grad);
  }
  return found;
}

template Differences differences<float>(Communicator&, const BlockCase&, const Rewire<float>&, bool,
                                        const Place&);
template Differences differences<double>(Communicator&, const BlockCase&, const Rewire<double>&,
                                         bool, const Place&);
template Differences differences<bf16>(Communicator&, const BlockCase&, const Rewire<bf16>&, bool,
                                       const Place&);

double largest(const Differences& differences) {
  double most = 0;
  for (const auto& [name, difference] : differences)
    if (!(difference <= most)) most = difference;
  return most;
}

std::string text(const BlockCase& c) {
  return fmt::format("dp {} tp {}{} sp {}, batch {}, seq {}, {} heads{}{}{}{}", c.dp, c.tp,
                     c.sequence_parallel ? " with sequence" : "", c.sp, c.batch, c.seq,
                     c.config.heads,
                     c.config.kv_heads > 0 ? fmt::format(" in {} groups", c.config.kv_heads) : "",
                     c.config.causal ? ", causal" : "", c.config.attention_bias ? ", biases" : "",
                     c.config.hidden_dropout > 0 ? ", dropout" : "");
}

std::vector<BlockCase> cases_for(int ranks) {
  std::vector<BlockCase> cases;
  BlockConfig config;
  config.heads = 24, config.d_model = 48, config.d_ff = 72;
  for (int tp = 1; tp <= ranks; ++tp) {
    if (ranks % tp != 0) continue;
    for (int sp = 1; sp <= ranks / tp; ++sp) {
      if (ranks / tp % sp != 0) continue;
      BlockCase c{config, ranks / tp / sp, sp * 3, ranks / tp / sp, tp, sp};
      c.config.activation = Activation::gelu;
      cases.push_back(c);  // odd extents where the axes are
      c.config.activation = Activation::relu;
      c.config.causal = c.config.attention_bias = true;
      c.config.hidden_dropout = 0.25, c.config.attention_dropout = 0.125;
      c.batch *= 2;
      cases.push_back(c);
      if (tp > 1) {
        c.sequence_parallel = true;
        c.seq *= tp;
        cases.push_back(c);
      }
      c.config.heads = 16, c.config.kv_heads = 2 * tp;
      if (16 % (tp * sp) == 0 && (2 * tp) % tp == 0 && (sp % 2 == 0 || sp == 1)) cases.push_back(c);
    }
  }
  return cases;
}

}  // namespace support
