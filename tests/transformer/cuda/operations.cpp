#include "operations.hpp"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "samples.hpp"
#include "support/ranks.hpp"
#include "transformer/ops/ops.hpp"

namespace accelerator_cases {

using namespace baton;
using namespace baton::transformer;
using samples::widened;

namespace {

/// Results by name; computed on the host and on an accelerator by the same text.
template <class T>
using Results = std::map<std::string, Array<T>>;

/// Where Arrays lie now.
template <class T>
Array<T> numbers(const Shape& shape, std::uint64_t stream, float scale = 1) {
  Array<T> here;
  {
    const AcceleratorScope host(nullptr);
    here = samples::as<T>(samples::numbers(shape, stream, scale));
  }
  return from_host<T>(here);
}
Array<std::int32_t> ids(std::int64_t count, std::uint32_t below) {
  Array<std::int32_t> here;
  {
    const AcceleratorScope host(nullptr);
    here = Array<std::int32_t>({count});
    for (std::int64_t i = 0; i < count; ++i)
      here.data()[i] =
          static_cast<std::int32_t>(Random{4}.word(static_cast<std::uint64_t>(i)) % below);
  }
  return from_host<std::int32_t>(here);
}

template <class T>
Results<T> layers(std::int64_t rows, std::int64_t in, std::int64_t out) {
  const auto x = numbers<T>({2, rows, in}, 1), dy = numbers<T>({2, rows, out}, 2);
  const auto weight = numbers<T>({out, in}, 3), bias = numbers<T>({out}, 4);
  auto plain = numbers<T>({2, rows, out}, 9), biased = plain.copy();
  linear<T>(x, weight, {}, plain.view());
  linear<T>(x, weight, bias, biased.view());
  auto dx = numbers<T>(x.shape(), 5), dx_added = dx.copy();
  linear_backward_input<T>(dy, weight, dx.view());
  linear_backward_input<T>(dy, weight, dx_added.view(), true);
  auto dweight = numbers<T>({out, in}, 6), dbias = numbers<T>({out}, 7);
  linear_backward_weight<T>(x, dy, dweight.view(), dbias.view());
  auto more = plain.copy();
  add_to_rows<T>(bias, more.view());
  Results<T> results{{"y", plain},           {"y biased", biased}, {"dx", dx},
                     {"dx added", dx_added}, {"dweight", dweight}, {"dbias", dbias},
                     {"rows", more}};
  for (const auto f : activations)
    for (const bool with_bias : {false, true}) {
      auto pre = numbers<T>(dy.shape(), 10), active = pre.copy(), in_place = pre.copy();
      const View<const T> added = with_bias ? bias.view() : View<const T>();
      linear_activate<T>(f, x, weight, added, pre.view(), active.view());
      linear_activate<T>(f, x, weight, added, in_place.view(), in_place.view());
      const std::string name =
          fmt::format("{}{}", baton::transformer::name(f), with_bias ? ", biased" : "");
      results[name + ", pre"] = pre;
      results[name] = active;
      results[name + ", in place"] = in_place;
    }
  return results;
}

template <class T>
Results<T> norms(std::int64_t rows) {
  const Shape shape{3, rows, 300}, row{300};
  const auto x = numbers<T>(shape, 1, 3), dy = numbers<T>(shape, 2);
  const auto weight = numbers<T>(row, 3), bias = numbers<T>(row, 4);
  auto y = Array<T>(shape), dx = Array<T>(shape);
  auto stats = Array<Wide<T>>({3 * rows, 2});
  auto dweight = numbers<T>(row, 5), dbias = numbers<T>(row, 6);
  layer_norm<T>(x, weight, bias, 1e-5, y.view(), stats.view());
  layer_norm_backward<T>(dy, x, weight, stats, dx.view(), dweight.view(), dbias.view());
  return {{"y", y}, {"dx", dx}, {"dweight", dweight}, {"dbias", dbias}};
}

template <class T>
Results<T> elements(std::int64_t rows) {
  const Shape shape{7, rows, 130};
  const auto x = numbers<T>(shape, 1, 3), dy = numbers<T>(shape, 2);
  Results<T> results;
  for (const auto f : activations) {
    auto y = Array<T>(shape), dx = dy.copy();
    activate<T>(f, x, y.view());
    activate_backward<T>(f, dx, x, dx.view());
    results[std::string(name(f))] = y;
    results[std::string(name(f)) + " backward"] = dx;
  }
  auto sum = dy.copy(), strided = dy.copy(), turned = Array<T>({rows, 7, 130});
  add<T>(x, sum.view());
  add<T>(x.view().slice(2, 1, 130), strided.view().slice(2, 0, 129));
  assign<T>(x.view().transposed(0, 1), turned.view());
  auto dropped = x.copy();
  Dropout{0.3, {5, 6}, {{20, 12, 130}, {3, 6, 0}}}.apply(dropped.view());
  results.insert({{"sum", sum}, {"strided", strided}, {"turned", turned}, {"dropped", dropped}});
  return results;
}

template <class T>
Results<T> attentions(const Shape& q_shape, const Shape& k_shape, bool causal, double drop) {
  const auto q = numbers<T>(q_shape, 1, 3), k = numbers<T>(k_shape, 2), v = numbers<T>(k_shape, 3);
  const auto dout = numbers<T>(q_shape, 4);
  AttentionOptions options;
  options.causal = causal;
  options.dropout = {drop, {7, 8}, {{4, 9, q_shape[1] + 3, k_shape[1]}, {1, 2, 3, 0}}};
  auto out = Array<T>(q_shape), dq = Array<T>(q_shape), dk = Array<T>(k_shape),
       dv = Array<T>(k_shape);
  auto log_sums = Array<Wide<T>>({q_shape[0], q_shape[2], q_shape[1]});
  attention<T>(q, k, v, options, out.view(), log_sums.view());
  attention_backward<T>(dout, q, k, v, out, log_sums, options, dq.view(), dk.view(), dv.view());
  return {{"out", out}, {"dq", dq}, {"dk", dk}, {"dv", dv}};
}

template <class T>
Results<T> words(std::int64_t n) {
  constexpr std::int64_t rows = 50, d = 260;
  const auto which = ids(n, 80);
  const auto table = numbers<T>({rows, d}, 1), dy = numbers<T>({n, d}, 2);
  auto y = numbers<T>({n, d}, 3), dtable = numbers<T>({rows, d}, 4);
  embedding<T>(which, table, 20, y.view());
  embedding_backward<T>(which, dy, 20, dtable.view());
  return {{"y", y}, {"dtable", dtable}};
}

/// Gradients; and the losses.
template <class T>
std::pair<Results<T>, std::vector<double>> losses(std::int64_t rows) {
  const Shape shape{rows, 1000};
  const auto x = numbers<T>(shape, 1, 5), target = numbers<T>(shape, 2);
  auto dmse = Array<T>(shape), dentropy = Array<T>(shape);
  const auto targets = ids(rows, 1000);
  const std::vector<double> sums{mse<T>(x.view(), target, 70, dmse.view()),
                                 mse<T>(x.view(), target, 70, {}),
                                 cross_entropy<T>(x.view(), targets, 70, dentropy.view()),
                                 cross_entropy<T>(x.view(), targets, 70, {})};
  return {{{"mse", dmse}, {"cross-entropy", dentropy}}, sums};
}

template <class T>
void check_same(Accelerator& accelerator, const std::string& what,
                const std::function<Results<T>()>& compute) {
  CAPTURE(what);
  const Results<T> expected = compute();
  Results<T> found[2];
  for (Results<T>& run : found) {
    const AcceleratorScope scope(&accelerator);
    for (const auto& [name, result] : compute()) run[name] = to_host<T>(result);
  }
  for (const auto& one : expected) {
    const auto& name = one.first;
    const auto& result = one.second;
    CAPTURE(name);
    const auto& once = found[0].at(name);
    // Sums of results that were rounded to bf16 differ by their roundings.
    CHECK(support::difference(widened(once), widened(result)) < 2 * samples::rounding<T>);
    const auto twice = std::as_bytes(found[1].at(name).span());
    CHECK(std::ranges::equal(std::as_bytes(once.span()), twice));
  }
}

}  // namespace

template <class T>
void operations(const TestDevice& test_device) {
  const auto accelerator = test_device.make();
  const auto check = [&](const std::string& what, const std::function<Results<T>()>& compute) {
    check_same<T>(*accelerator, what, compute);
  };
  check("linear", [] { return layers<T>(65, 72, 40); });
  check("layer norm", [] { return norms<T>(100); });
  check("elements", [] { return elements<T>(6); });
  check("embedding", [] { return words<T>(300); });
  check("causal attention", [] {
    return attentions<T>({2, 150, 4, 64}, {2, 150, 2, 64}, true, 0.2);
  });
  check("wide attention", [] {
    return attentions<T>({1, 70, 2, 128}, {1, 140, 2, 128}, false, 0);
  });
  // Without dropout, of several tiles: those that TMA brings where there is one.
  check("causal attention of whole rows", [] {
    return attentions<T>({1, 200, 2, 64}, {1, 200, 1, 64}, true, 0);
  });
  check("wide causal attention", [] {
    return attentions<T>({1, 200, 1, 128}, {1, 200, 1, 128}, true, 0);
  });
  check("attention of rows of 72", [] {
    return attentions<T>({1, 130, 1, 72}, {1, 200, 1, 72}, false, 0);
  });
  check("wide attention with dropout", [] {
    return attentions<T>({1, 70, 1, 128}, {1, 70, 1, 128}, false, 0.3);
  });
  check("narrow attention", [] { return attentions<T>({2, 5, 3, 7}, {2, 70, 1, 7}, false, 0.3); });
  check("losses", [] { return losses<T>(70).first; });
  const auto expected = losses<T>(70).second;
  const AcceleratorScope scope(accelerator.get());
  const auto found = losses<T>(70).second;
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(std::abs(found[i] - expected[i]) <= 1e-5 * std::abs(expected[i]));
}

template <class T>
void without_elements(const TestDevice& test_device) {
  const auto accelerator = test_device.make();
  const auto check = [&](const std::string& what, const std::function<Results<T>()>& compute) {
    check_same<T>(*accelerator, what, compute);
  };
  check("linear, no rows", [] { return layers<T>(0, 72, 40); });
  check("linear, nothing in", [] { return layers<T>(65, 0, 40); });
  check("linear, nothing out", [] { return layers<T>(65, 72, 0); });
  check("layer norm", [] { return norms<T>(0); });
  check("elements", [] { return elements<T>(0); });
  check("embedding", [] { return words<T>(0); });
  check("attention, no samples", [] {
    return attentions<T>({0, 5, 2, 8}, {0, 5, 2, 8}, true, 0.2);
  });
  check("attention, no queries", [] {
    return attentions<T>({2, 0, 2, 8}, {2, 70, 1, 8}, false, 0.2);
  });
  check("losses", [] { return losses<T>(0).first; });
  const AcceleratorScope scope(accelerator.get());
  for (const double loss : losses<T>(0).second) CHECK(loss == 0);
}

void refusals(const TestDevice& test_device) {
  const auto accelerator = test_device.make();
  const AcceleratorScope scope(accelerator.get());
  const auto refused = [](ErrorCode code, const std::vector<std::string>& parts, auto call) {
    const Error error = support::error_of(call);
    CHECK(error.code == code);
    CHECK_MESSAGE(support::holds(error.what(), parts), error.what());
  };
  Array<float> logits({3, 5});
  const auto targets = ids(3, 1000);
  refused(ErrorCode::invalid_argument, {"target within [0, 5)", "at"},
          [&] { cross_entropy<float>(logits.view(), targets, 3, {}); });
  Array<double> f64({2});
  refused(ErrorCode::unsupported, {"f32 or bf16", "found f64"},
          [&] { activate<double>(Activation::relu, f64, f64.view()); });
  Array<float> wide({1, 2, 1, 129}), sums({1, 1, 2});
  refused(ErrorCode::unsupported, {"at most 128 elements", "[1, 2, 1, 129]"},
          [&] { attention<float>(wide, wide, wide, {}, wide.view(), sums.view()); });
}

template void operations<float>(const TestDevice&);
template void operations<bf16>(const TestDevice&);
template void without_elements<float>(const TestDevice&);
template void without_elements<bf16>(const TestDevice&);

}  // namespace accelerator_cases
