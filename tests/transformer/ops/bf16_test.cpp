#include <doctest/doctest.h>

#include "../compare.hpp"
#include "transformer/block.hpp"
#include "transformer/ops/ops.hpp"
#include "transformer/training/compare.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

namespace {

Array<float> wide(const Array<bf16>& x) {
  auto y = Array<float>::uninitialized(x.shape());
  convert<bf16>(x, y.view());
  return y;
}
Array<bf16> rounded(const Array<float>& x) {
  auto y = Array<bf16>::uninitialized(x.shape());
  convert<float>(x, y.view());
  return y;
}

/// An operand in both types, with the same values.
struct Both {
  explicit Both(const Shape& shape, std::uint64_t stream)
      : narrow(random_array<bf16>(shape, stream)), wide(::wide(narrow)) {}
  /// What was written is, to the bit, what was written in f32, rounded.
  void check(const char* what) const {
    CAPTURE(what);
    const Array<bf16> expected = rounded(wide);
    for (std::int64_t i = 0; i < expected.size(); ++i)
      CHECK(narrow.data()[i] == expected.data()[i]);
  }
  /// The other type's elements become those of bf16.
  void widen() { wide = ::wide(narrow); }
  Array<bf16> narrow;
  Array<float> wide;
};

void check_equal(const Array<float>& found, const Array<float>& expected) {
  for (std::int64_t i = 0; i < expected.size(); ++i) CHECK(found.data()[i] == expected.data()[i]);
}

}  // namespace

TEST_CASE("bf16 is computed as f32 and rounded once: linear") {
  Both x({3, 5, 8}, 1), weight({6, 8}, 2), bias({6}, 3), dy({3, 5, 6}, 4);
  Both y({3, 5, 6}, 5), dx({3, 5, 8}, 6), dweight({6, 8}, 7), dbias({6}, 8), sum({6}, 9);
  linear<bf16>(x.narrow, weight.narrow, bias.narrow, y.narrow.view());
  linear<float>(x.wide, weight.wide, bias.wide, y.wide.view());
  y.check("y");
  linear<bf16>(x.narrow, weight.narrow, {}, y.narrow.view());
  linear<float>(x.wide, weight.wide, {}, y.wide.view());
  y.check("y without bias");
  for (const bool add : {false, true}) {
    linear_backward_input<bf16>(dy.narrow, weight.narrow, dx.narrow.view(), add);
    linear_backward_input<float>(dy.wide, weight.wide, dx.wide.view(), add);
    if (!add) dx.widen();
  }
  dx.check("dx");
  linear_backward_weight<bf16>(x.narrow, dy.narrow, dweight.narrow.view(), dbias.narrow.view());
  linear_backward_weight<float>(x.wide, dy.wide, dweight.wide.view(), dbias.wide.view());
  dweight.check("dweight");
  dbias.check("dbias");
  add_rows<bf16>(dy.narrow, sum.narrow.view());
  add_rows<float>(dy.wide, sum.wide.view());
  sum.check("sum");
  add_to_rows<bf16>(bias.narrow, dy.narrow.view());
  add_to_rows<float>(bias.wide, dy.wide.view());
  dy.check("dy + bias");
}

TEST_CASE("bf16 is computed as f32 and rounded once: layer norm, with statistics in f32") {
  Both x({7, 12}, 1), weight({12}, 2), bias({12}, 3), y({7, 12}, 4), dy({7, 12}, 5);
  Both dx({7, 12}, 6), dweight({12}, 7), dbias({12}, 8);
  Array<float> stats({7, 2}), expected({7, 2});
  layer_norm<bf16>(x.narrow, weight.narrow, bias.narrow, 1e-5, y.narrow.view(), stats.view());
  layer_norm<float>(x.wide, weight.wide, bias.wide, 1e-5, y.wide.view(), expected.view());
  y.check("y");
  check_equal(stats, expected);
  layer_norm_backward<bf16>(dy.narrow, x.narrow, weight.narrow, stats.view(), dx.narrow.view(),
                            dweight.narrow.view(), dbias.narrow.view());
  layer_norm_backward<float>(dy.wide, x.wide, weight.wide, stats.view(), dx.wide.view(),
                             dweight.wide.view(), dbias.wide.view());
  dx.check("dx");
  dweight.check("dweight");
  dbias.check("dbias");
}

TEST_CASE("bf16 is computed as f32 and rounded once: activations, add") {
  Both x({4, 9}, 1), dy({4, 9}, 2), y({4, 9}, 3);
  for (const Activation f : activations) {
    activate<bf16>(f, x.narrow, y.narrow.view());
    activate<float>(f, x.wide, y.wide.view());
    y.check("y");
    auto dx = dy.narrow.copy();
    auto expected = dy.wide.copy();
    activate_backward<bf16>(f, dx, x.narrow, dx.view());
    activate_backward<float>(f, expected, x.wide, expected.view());
    for (std::int64_t i = 0; i < dx.size(); ++i) CHECK(dx.data()[i] == to_bf16(expected.data()[i]));
  }
  y.widen();
  add<bf16>(x.narrow, y.narrow.view());
  add<float>(x.wide, y.wide.view());
  y.check("x + y");
}

TEST_CASE("bf16 is computed as f32 and rounded once: attention, with sums in f32") {
  Both q({2, 6, 4, 8}, 1), k({2, 6, 2, 8}, 2), v({2, 6, 2, 8}, 3), out({2, 6, 4, 8}, 4);
  Both dout({2, 6, 4, 8}, 5), dq({2, 6, 4, 8}, 6), dk({2, 6, 2, 8}, 7), dv({2, 6, 2, 8}, 8);
  Array<float> log_sums({2, 4, 6}), expected({2, 4, 6});
  AttentionOptions options;
  options.causal = true;
  options.dropout.p = 0.25;
  options.dropout.piece = {{2, 4, 6, 6}};
  attention<bf16>(q.narrow, k.narrow, v.narrow, options, out.narrow.view(), log_sums.view());
  attention<float>(q.wide, k.wide, v.wide, options, out.wide.view(), expected.view());
  out.check("out");
  check_equal(log_sums, expected);
  out.widen();
  attention_backward<bf16>(dout.narrow, q.narrow, k.narrow, v.narrow, out.narrow, log_sums.view(),
                           options, dq.narrow.view(), dk.narrow.view(), dv.narrow.view());
  attention_backward<float>(dout.wide, q.wide, k.wide, v.wide, out.wide, log_sums.view(), options,
                            dq.wide.view(), dk.wide.view(), dv.wide.view());
  dq.check("dq");
  dk.check("dk");
  dv.check("dv");
}

TEST_CASE("bf16 is computed as f32 and rounded once: embedding, losses, dropout") {
  Both table({5, 4}, 1), y({3, 4}, 2), target({3, 4}, 3), dy({3, 4}, 4), dtable({5, 4}, 5);
  Array<std::int32_t> ids({3});
  ids.data()[0] = 1, ids.data()[1] = 3, ids.data()[2] = 1;
  embedding<bf16>(ids, table.narrow, 0, y.narrow.view());
  embedding<float>(ids, table.wide, 0, y.wide.view());
  y.check("y");
  embedding_backward<bf16>(ids, y.narrow, 0, dtable.narrow.view());
  embedding_backward<float>(ids, y.wide, 0, dtable.wide.view());
  dtable.check("dtable");
  CHECK(mse<bf16>(y.narrow.view(), target.narrow, 12, dy.narrow.view()) ==
        mse<float>(y.wide.view(), target.wide, 12, dy.wide.view()));
  dy.check("gradient of mse");
  CHECK(mse<bf16>(y.narrow.view(), target.narrow, 12, {}) ==
        mse<float>(y.wide.view(), target.wide, 12, {}));
  CHECK(cross_entropy<bf16>(y.narrow.view(), ids, 3, dy.narrow.view()) ==
        cross_entropy<float>(y.wide.view(), ids, 3, dy.wide.view()));
  dy.check("gradient of cross-entropy");
  const Dropout dropout{0.3, {2}, {{3, 4}}};
  dropout.apply(y.narrow.view());
  dropout.apply(y.wide.view());
  y.check("dropout");
}

TEST_CASE("a block of bf16 gives what one of f32 with its weights gives, to rounding") {
  BlockConfig config;
  config.heads = 4, config.d_model = 32, config.d_ff = 48;
  config.activation = Activation::gelu;
  TransformerBlock<bf16> block(config, {5});
  TransformerBlock<float> exact(config, {5});
  const Params<bf16> params = block.params();
  const Params<float> expected = exact.params();
  for (std::size_t p = 0; p < params.size(); ++p)
    convert<bf16>(params[p]->value, expected[p]->value.view());
  Both x({2, 8, 32}, 1), dy({2, 8, 32}, 2);
  const auto near = [](const Array<bf16>& found, const Array<float>& wanted) {
    const Array<float> values = wide(found);
    return compare_tensors<float>(values, wanted, 1.6e-2).match;
  };
  Context context, of_exact;
  CHECK(near(block.forward(x.narrow, context), exact.forward(x.wide, of_exact)));
  CHECK(near(block.backward(dy.narrow, context), exact.backward(dy.wide, of_exact)));
  for (std::size_t p = 0; p < params.size(); ++p) {
    CAPTURE(params[p]->name);
    CHECK(near(params[p]->grad, expected[p]->grad));
  }
}
