/// Losses against their definitions, finite differences and PyTorch.

#include <doctest/doctest.h>

#include "support/ranks.hpp"
#include "transformer/compare.hpp"
#include "transformer/golden.hpp"
#include "transformer/ops/ops.hpp"

using namespace baton::transformer;
using support::converted;
using support::difference;
using support::random_array;

namespace {

Array<std::int32_t> targets_of(std::int64_t n, std::int64_t classes) {
  auto targets = Array<std::int32_t>::uninitialized({n});
  for (std::int64_t i = 0; i < n; ++i)
    targets.data()[i] = static_cast<std::int32_t>((7 * i + 3) % classes);
  return targets;
}

/// The definition, without regard for large logits.
double reference(const Array<double>& logits, const Array<std::int32_t>& targets) {
  double loss = 0;
  for (std::int64_t i = 0; i < logits.extent(0); ++i) {
    double sum = 0;
    for (std::int64_t c = 0; c < logits.extent(1); ++c) sum += std::exp(logits.view()(i, c));
    loss -= std::log(std::exp(logits.view()(i, targets.data()[i])) / sum);
  }
  return loss;
}

}  // namespace

TEST_CASE("mean squared error and its gradient") {
  auto y = random_array<double>({3, 7}, 1);
  const auto target = random_array<double>({3, 7}, 2);
  Array<double> dy({3, 7});
  double expected = 0;
  for (int i = 0; i < 21; ++i) expected += std::pow(y.data()[i] - target.data()[i], 2) / 50;
  CHECK(mse<double>(y, target, 50, dy.view()) == doctest::Approx(expected).epsilon(1e-14));
  const auto loss = [&] { return mse<double>(y, target, 50, {}); };
  CHECK(difference(dy, support::finite_differences(y, loss)) < 1e-9);

  const auto y32 = converted<float>(y), target32 = converted<float>(target);
  Array<float> dy32({3, 7});
  CHECK(mse<float>(y32, target32, 50, dy32.view()) == doctest::Approx(expected).epsilon(1e-6));
  CHECK(difference(dy32, dy) < 1e-6);
}

TEST_CASE("cross-entropy and its gradient") {
  for (const auto& size : {std::pair(1, 1), {3, 2}, {4, 17}, {2, 64}, {5, 131}}) {
    const int n = size.first, classes = size.second;
    CAPTURE(classes);
    auto logits = random_array<double>({n, classes}, 1);
    for (double& value : logits.span()) value *= 5;
    const auto targets = targets_of(n, classes);
    Array<double> dlogits({n, classes});
    const double loss = cross_entropy<double>(logits, targets, 10, dlogits.view());
    CHECK(loss == doctest::Approx(reference(logits, targets) / 10).epsilon(1e-13));
    const auto alone = [&] { return cross_entropy<double>(logits, targets, 10, {}); };
    CHECK(alone() == loss);
    CHECK(difference(dlogits, support::finite_differences(logits, alone)) < 1e-8);

    const auto logits32 = converted<float>(logits);
    Array<float> dlogits32({n, classes});
    CHECK(cross_entropy<float>(logits32, targets, 10, dlogits32.view()) ==
          doctest::Approx(loss).epsilon(1e-6));
    CHECK(difference(dlogits32, dlogits) < 1e-6);
  }
}

TEST_CASE("large logits overflow nothing; what is not a number stays so") {
  Array<float> logits({1, 20}), dlogits({1, 20});
  const auto targets = targets_of(1, 20);
  std::fill_n(logits.data(), 20, 3e38f);
  CHECK(cross_entropy<float>(logits, targets, 1, dlogits.view()) ==
        doctest::Approx(std::log(20.0)));
  for (const int at : {0, 11, 19}) {
    auto broken = logits.copy();
    broken.data()[at] = NAN;
    CHECK(std::isnan(cross_entropy<float>(broken, targets, 1, {})));
  }
}

TEST_CASE_TEMPLATE("cross-entropy as PyTorch", T, float, double) {
  const support::Golden golden("cross_entropy");
  const double tolerance = sizeof(T) == 4 ? 1e-6 : 1e-14;
  const auto logits = golden.operator()<T>("logits");
  const auto targets = golden.operator()<std::int32_t>("targets");
  Array<T> dlogits(logits.shape());
  const auto n = static_cast<double>(logits.extent(0));
  CHECK(cross_entropy<T>(logits, targets, n, dlogits.view()) ==
        doctest::Approx(golden.number("loss")).epsilon(tolerance));
  CHECK(difference(dlogits, golden("logits.grad")) < tolerance);
}

TEST_CASE("targets and shapes that do not fit are named") {
  Array<float> logits({2, 3}), turned({3, 2});
  auto targets = targets_of(2, 3);
  const auto three = targets_of(3, 3);
  const auto sentence = [](const auto& call) {
    return std::string(support::error_of(call).what());
  };
  CHECK(support::holds(sentence([&] { mse<float>(logits, turned, 1, {}); }),
                       {"mse: target", "[2, 3]", "[3, 2]"}));
  CHECK(support::holds(sentence([&] { cross_entropy<float>(logits, three, 1, {}); }),
                       {"cross_entropy: targets", "[2]", "[3]"}));
  CHECK(support::holds(sentence([&] { cross_entropy<float>(logits, targets, 1, turned.view()); }),
                       {"cross_entropy: dlogits", "[2, 3]", "[3, 2]"}));
  targets.data()[1] = 3;
  CHECK(support::holds(sentence([&] { cross_entropy<float>(logits, targets, 1, {}); }),
                       {"[0, 3)", "found 3 at 1"}));
  targets.data()[1] = -1;
  CHECK(support::holds(sentence([&] { cross_entropy<float>(logits, targets, 1, {}); }),
                       {"[0, 3)", "found -1 at 1"}));
}
