/// Attention against plain loops, finite differences and PyTorch.

#include <doctest/doctest.h>

#include "support/ranks.hpp"
#include "transformer/compare.hpp"
#include "transformer/golden.hpp"
#include "transformer/ops/ops.hpp"

using namespace baton::transformer;
using baton::Shape;
using support::converted;
using support::difference;
using support::random_array;

namespace {

struct Case {
  std::int64_t samples, queries, keys, heads, key_heads, size;
  bool causal;
  double dropped = 0;
};
const Case small_cases[] = {{1, 1, 1, 1, 1, 1, false},     {2, 5, 5, 3, 3, 4, false},
                            {2, 5, 5, 4, 2, 3, true},      {1, 3, 8, 6, 2, 5, false},
                            {1, 7, 2, 2, 1, 16, false},    {2, 6, 6, 4, 1, 7, true, 0.3},
                            {1, 4, 9, 2, 2, 3, false, 0.5}};
/// Of several tiles, the last of another height and width.
const Case large_cases[] = {
    {1, 300, 300, 2, 1, 4, true}, {1, 301, 600, 1, 1, 3, false}, {1, 290, 290, 2, 2, 2, true, 0.2}};

std::string text(const Case& c) {
  return Shape{c.samples, c.queries, c.keys, c.heads, c.key_heads, c.size}.text() +
         (c.causal ? " causal" : "") + (c.dropped > 0 ? " dropout" : "");
}

AttentionOptions options_of(const Case& c) {
  AttentionOptions options;
  options.causal = c.causal;
  options.dropout = {c.dropped, {5, 6}, {{c.samples, c.heads, c.queries, c.keys}}};
  return options;
}

template <class T>
struct Inputs {
  Array<T> q, k, v, dout;
};
template <class T>
Inputs<T> inputs_of(const Case& c) {
  const Shape queries{c.samples, c.queries, c.heads, c.size};
  const Shape keys{c.samples, c.keys, c.key_heads, c.size};
  Inputs<T> in{random_array<T>(queries, 1), random_array<T>(keys, 2), random_array<T>(keys, 3),
               random_array<T>(queries, 4)};
  for (T& value : in.q.span()) value *= 3;  // far from uniform probabilities
  return in;
}

template <class T>
struct Results {
  Array<T> out, log_sums, dq, dk, dv;
  explicit Results(const Case& c)
      : out({c.samples, c.queries, c.heads, c.size}),
        log_sums({c.samples, c.heads, c.queries}),
        dq(out.shape()),
        dk({c.samples, c.keys, c.key_heads, c.size}),
        dv(dk.shape()) {
    for (Array<T>* a : {&out, &log_sums, &dq, &dk, &dv}) std::fill_n(a->data(), a->size(), T(NAN));
  }
};
template <class T>
Results<T> results_of(const Case& c, const Inputs<T>& in, const AttentionOptions& options) {
  Results<T> r(c);
  attention<T>(in.q, in.k, in.v, options, r.out.view(), r.log_sums.view());
  attention_backward<T>(in.dout, in.q, in.k, in.v, r.out, r.log_sums, options, r.dq.view(),
                        r.dk.view(), r.dv.view());
  return r;
}

/// The definition, by loops.
Array<double> reference(const Case& c, const Inputs<double>& in) {
  Array<double> mask({c.samples, c.heads, c.queries, c.keys});
  std::fill_n(mask.data(), mask.size(), 1.0);
  options_of(c).dropout.apply(mask.view());
  Array<double> out(in.q.shape());
  for (std::int64_t b = 0; b < c.samples; ++b) {
    for (std::int64_t h = 0; h < c.heads; ++h) {
      const std::int64_t g = h / (c.heads / c.key_heads);
      for (std::int64_t i = 0; i < c.queries; ++i) {
        const std::int64_t seen = c.causal ? i + 1 : c.keys;
        std::vector<double> p;
        double sum = 0;
        for (std::int64_t j = 0; j < seen; ++j) {
          double score = 0;
          for (std::int64_t d = 0; d < c.size; ++d)
            score += in.q.view()(b, i, h, d) * in.k.view()(b, j, g, d);
          p.push_back(std::exp(score / std::sqrt(static_cast<double>(c.size))));
          sum += p.back();
        }
        for (std::int64_t j = 0; j < seen; ++j)
          for (std::int64_t d = 0; d < c.size; ++d)
            out.view()(b, i, h, d) += p[static_cast<std::size_t>(j)] / sum *
                                      mask.view()(b, h, i, j) * in.v.view()(b, j, g, d);
      }
    }
  }
  return out;
}

void check_same(const Results<double>& found, const Results<double>& expected) {
  CHECK(difference(found.out, expected.out) < 1e-13);
  CHECK(difference(found.log_sums, expected.log_sums) < 1e-13);
  CHECK(difference(found.dq, expected.dq) < 1e-13);
  CHECK(difference(found.dk, expected.dk) < 1e-13);
  CHECK(difference(found.dv, expected.dv) < 1e-13);
}

void check_against_definition(const Case& c) {
  CAPTURE(text(c));
  const auto in = inputs_of<double>(c);
  const auto options = options_of(c);
  const auto results = results_of<double>(c, in, options);
  CHECK(difference(results.out, reference(c, in)) < 1e-13);

  const Inputs<float> in32{converted<float>(in.q), converted<float>(in.k), converted<float>(in.v),
                           converted<float>(in.dout)};
  const auto results32 = results_of<float>(c, in32, options);
  CHECK(difference(results32.out, results.out) < 1e-5);
  CHECK(difference(results32.log_sums, results.log_sums) < 1e-5);
  CHECK(difference(results32.dq, results.dq) < 1e-5);
  CHECK(difference(results32.dk, results.dk) < 1e-5);
  CHECK(difference(results32.dv, results.dv) < 1e-5);
}

}  // namespace

TEST_CASE("attention is that of loops, its derivatives are finite differences") {
  for (const Case& c : small_cases) {
    check_against_definition(c);
    auto in = inputs_of<double>(c);
    const auto results = results_of<double>(c, in, options_of(c));
    const auto scalar = [&] { return support::weighted(reference(c, in), in.dout); };
    CHECK(difference(results.dq, support::finite_differences(in.q, scalar)) < 1e-8);
    CHECK(difference(results.dk, support::finite_differences(in.k, scalar)) < 1e-8);
    CHECK(difference(results.dv, support::finite_differences(in.v, scalar)) < 1e-8);
  }
}

TEST_CASE("several tiles") {
  for (const Case& c : large_cases) {
    check_against_definition(c);
    // Along a direction, since every element by itself takes long.
    auto in = inputs_of<double>(c);
    const auto results = results_of<double>(c, in, options_of(c));
    for (auto [x, gradient] :
         {std::pair(&in.q, &results.dq), {&in.k, &results.dk}, {&in.v, &results.dv}}) {
      const auto direction = random_array<double>(x->shape(), 7);
      const auto moved_by = [&, x = x](double step) {
        for (std::int64_t i = 0; i < x->size(); ++i) x->data()[i] += step * direction.data()[i];
        return support::weighted(reference(c, in), in.dout);
      };
      const double above = moved_by(1e-5), below = moved_by(-2e-5);
      moved_by(1e-5);
      CHECK(support::weighted(*gradient, direction) ==
            doctest::Approx((above - below) / 2e-5).epsilon(1e-7));
    }
  }
}

TEST_CASE("views of any strides: heads beside each other, slices, other orders of dimensions") {
  const Case c{2, 37, 37, 4, 2, 6, true};
  const auto in = inputs_of<double>(c);
  const auto expected = results_of<double>(c, in, options_of(c));

  // q, k and v as columns of one product, [b, s, (h + 2 g) d]; results in [b, h, s, d].
  Array<double> joined({c.samples, c.queries, 8, c.size});
  const auto q = joined.view().slice(2, 0, 4), k = joined.view().slice(2, 4, 6);
  const auto v = joined.view().slice(2, 6, 8);
  assign<double>(in.q, q);
  assign<double>(in.k, k);
  assign<double>(in.v, v);
  Array<double> out({c.samples, c.heads, c.queries, c.size});
  const Array<double> dout = Array<double>::copy_of(in.dout.view().transposed(1, 2));
  Array<double> gradients(joined.shape());
  Results<double> found(c);
  attention<double>(q, k, v, options_of(c), out.view().transposed(1, 2), found.log_sums.view());
  attention_backward<double>(dout.view().transposed(1, 2), q, k, v, out.view().transposed(1, 2),
                             found.log_sums, options_of(c), gradients.view().slice(2, 0, 4),
                             gradients.view().slice(2, 4, 6), gradients.view().slice(2, 6, 8));
  assign<double>(out.view().transposed(1, 2), found.out.view());
  assign<double>(gradients.view().slice(2, 0, 4), found.dq.view());
  assign<double>(gradients.view().slice(2, 4, 6), found.dk.view());
  assign<double>(gradients.view().slice(2, 6, 8), found.dv.view());
  check_same(found, expected);
}

TEST_CASE("a piece of samples and heads drops what the whole drops") {
  const Case c{3, 9, 9, 4, 4, 5, true, 0.4};
  const auto in = inputs_of<double>(c);
  const auto whole = results_of<double>(c, in, options_of(c));
  const auto piece = [](const Array<double>& x) {
    return Array<double>::copy_of(x.view().slice(0, 1, 3).slice(2, 1, 3));
  };
  Case part = c;
  part.samples = part.heads = part.key_heads = 2;
  AttentionOptions options = options_of(c);
  options.dropout.piece.first = {1, 1};
  const auto found =
      results_of<double>(part, {piece(in.q), piece(in.k), piece(in.v), piece(in.dout)}, options);
  CHECK(difference(found.out, piece(whole.out)) < 1e-14);
  CHECK(difference(found.dq, piece(whole.dq)) < 1e-14);
  CHECK(difference(found.dk, piece(whole.dk)) < 1e-14);
  CHECK(difference(found.dv, piece(whole.dv)) < 1e-14);
}

TEST_CASE("large scores overflow nothing; what is not a number spreads to what sees it") {
  const Case c{1, 20, 20, 1, 1, 4, true};
  auto in = inputs_of<float>(c);
  for (float& value : in.q.span()) value *= 1e18f;
  for (float& value : in.k.span()) value *= 1e18f;
  auto r = results_of<float>(c, in, options_of(c));
  for (const auto& x : {r.out, r.dv})
    for (const float value : x.span()) CHECK(std::isfinite(value));
  in.k.view()(0, 12, 0, 1) = NAN;
  r = results_of<float>(c, in, options_of(c));
  for (int i = 0; i < 20; ++i) CHECK(std::isnan(r.out.view()(0, i, 0, 0)) == (i >= 12));
}

TEST_CASE("something can be done meanwhile") {
  const Case c{2, 150, 150, 2, 1, 2, false};
  const auto in = inputs_of<float>(c);
  int calls = 0;
  auto options = options_of(c);
  options.meanwhile = [&] { ++calls; };
  Results<float> r(c);
  attention<float>(in.q, in.k, in.v, options, r.out.view(), r.log_sums.view());
  CHECK(calls >= 2 * 2 * 2);
  const int before = calls;
  attention_backward<float>(in.dout, in.q, in.k, in.v, r.out, r.log_sums, options, r.dq.view(),
                            r.dk.view(), r.dv.view());
  CHECK(calls == 2 * before);
}

TEST_CASE_TEMPLATE("as PyTorch", T, float, double) {
  const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-13;
  for (const auto* name : {"full", "causal", "grouped", "cross"}) {
    CAPTURE(std::string(name));
    const support::Golden golden(std::string("attention_") + name);
    const Inputs<T> in{golden.operator()<T>("q"), golden.operator()<T>("k"),
                       golden.operator()<T>("v"), golden.operator()<T>("y.grad")};
    const Case c{in.q.extent(0),
                 in.q.extent(1),
                 in.k.extent(1),
                 in.q.extent(2),
                 in.k.extent(2),
                 in.q.extent(3),
                 golden.number("causal") != 0};
    const auto r = results_of<T>(c, in, options_of(c));
    CHECK(difference(r.out, golden("y")) < tolerance);
    CHECK(difference(r.dq, golden("q.grad")) < tolerance);
    CHECK(difference(r.dk, golden("k.grad")) < tolerance);
    CHECK(difference(r.dv, golden("v.grad")) < tolerance);
  }
}

TEST_CASE("shapes and strides that do not fit are named") {
  Array<float> q({2, 5, 4, 3}), k({2, 6, 2, 3}), log_sums({2, 4, 5}), few_sums({2, 5, 4});
  const Array<float> wide({2, 6, 2, 7}), few({2, 5, 2, 3});
  AttentionOptions options;
  const auto sentence = [&](const View<const float>& keys, const View<const float>& values,
                            const View<float>& out, const View<float>& sums) {
    return std::string(
        support::error_of([&] { attention<float>(q, keys, values, options, out, sums); }).what());
  };
  CHECK(support::holds(sentence(wide, k, q.view(), log_sums.view()),
                       {"attention: k", "[2, *, *, 3]", "[2, 6, 2, 7]"}));
  CHECK(support::holds(sentence(k, few, q.view(), log_sums.view()),
                       {"attention: v", "[2, 6, 2, 3]", "[2, 5, 2, 3]"}));
  Array<float> three({2, 6, 3, 3}), none({2, 0, 2, 3});
  CHECK(support::holds(sentence(three, three, q.view(), log_sums.view()),
                       {"heads", "[2, 5, 4, 3]", "[2, 6, 3, 3]"}));
  CHECK(support::holds(sentence(none, none, q.view(), log_sums.view()),
                       {"at least one key", "[2, 0, 2, 3]"}));
  CHECK(support::holds(sentence(k, k, k.view(), log_sums.view()),
                       {"attention: out", "[2, 5, 4, 3]", "[2, 6, 2, 3]"}));
  CHECK(support::holds(sentence(k, k, q.view(), few_sums.view()),
                       {"attention: log_sums", "[2, 4, 5]", "[2, 5, 4]"}));
  Array<float> turned({2, 6, 3, 2});
  CHECK(support::holds(sentence(turned.view().transposed(2, 3), k, q.view(), log_sums.view()),
                       {"contiguous last dimension", "[2, 6, 2, 3]", "stride 2"}));
  options.causal = true;
  CHECK(support::holds(sentence(k, k, q.view(), log_sums.view()),
                       {"causal", "[2, 5, 4, 3]", "[2, 6, 2, 3]"}));
  options = {};
  options.dropout = {0.5, {}, {{2, 4}}};
  CHECK(support::holds(sentence(k, k, q.view(), log_sums.view()),
                       {"dropout", "[*, *, *, *]", "[2, 4]"}));
  options = {};
  CHECK(support::holds(support::error_of([&] {
                         attention_backward<float>(k, q, k, k, q, log_sums, options, q.view(),
                                                   k.view(), k.view());
                       }).what(),
                       {"attention_backward: dout", "[2, 5, 4, 3]", "[2, 6, 2, 3]"}));
}
