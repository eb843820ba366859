#include "transformer/optimizer.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "transformer/training/batch.hpp"
#include "worlds.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

namespace {

Param<double> param(const std::string& name, const Shape& shape, std::uint64_t seed) {
  const Batch<double> drawn = create_batch<double>(seed, shape, shape);
  Param<double> made(name, drawn.x);
  assign<double>(drawn.target, made.grad.view());
  return made;
}

}  // namespace

TEST_CASE("Sgd: a step against the gradient") {
  Param<double> w = param("w", {3, 4}, 1);
  const Array<double> before = w.value.copy(), gradient = w.grad.copy();
  Sgd<double>({&w}, 0.25).step();
  for (std::int64_t i = 0; i < 12; ++i)
    CHECK(w.value.data()[i] == before.data()[i] - 0.25 * gradient.data()[i]);
  CHECK(equal(w.grad, gradient, 0));
}

TEST_CASE("Sgd with momentum and decay: ten steps by the formula; only matrices decay") {
  for (const double momentum : {0.0, 0.9}) {
    for (const double decay : {0.0, 0.3}) {
      CAPTURE(momentum);
      CAPTURE(decay);
      Param<double> w = param("w", {3, 4}, 1), b = param("b", {5}, 2);
      Sgd<double> sgd({&w, &b},
                      {.learning_rate = 0.05, .momentum = momentum, .weight_decay = decay});
      std::vector<long double> value, velocity(17);
      for (const Param<double>* p : {&w, &b})
        for (const double x : p->value.span()) value.push_back(x);
      for (int t = 1; t <= 10; ++t) {
        const Batch<double> gradients = create_batch<double>(100 + t, {3, 4}, {5});
        assign<double>(gradients.x, w.grad.view());
        assign<double>(gradients.target, b.grad.view());
        if (t == 6) sgd.set_learning_rate(0.02);
        sgd.step();
        for (std::size_t i = 0; i < 17; ++i) {
          const long double g = i < 12 ? gradients.x.data()[i] : gradients.target.data()[i - 12];
          velocity[i] = momentum * velocity[i] + g + (i < 12 ? decay * value[i] : 0);
          value[i] -= (t < 6 ? 0.05L : 0.02L) * velocity[i];
        }
      }
      for (std::size_t i = 0; i < 17; ++i) {
        const double found = i < 12 ? w.value.data()[i] : b.value.data()[i - 12];
        CHECK(found == doctest::Approx(static_cast<double>(value[i])).epsilon(1e-13));
      }
    }
  }
}

// Algorithm 2 of Loshchilov and Hutter as it is printed: corrected means, then one subtraction.
TEST_CASE("AdamW: ten steps by the paper's formula; only matrices decay") {
  Param<double> w = param("w", {3, 4}, 1), b = param("b", {5}, 2);
  CHECK(w.decays);
  CHECK_FALSE(b.decays);
  const AdamWOptions options{
      .learning_rate = 0.05, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.1};
  AdamW<double> adamw({&w, &b}, options);
  std::vector<long double> value, m(17), v(17);
  for (const Param<double>* p : {&w, &b})
    for (const double x : p->value.span()) value.push_back(x);
  for (int t = 1; t <= 10; ++t) {
    const Batch<double> gradients = create_batch<double>(100 + t, {3, 4}, {5});
    assign<double>(gradients.x, w.grad.view());
    assign<double>(gradients.target, b.grad.view());
    adamw.step();
    for (std::size_t i = 0; i < 17; ++i) {
      const long double g = i < 12 ? gradients.x.data()[i] : gradients.target.data()[i - 12];
      m[i] = 0.8L * m[i] + 0.2L * g;
      v[i] = 0.95L * v[i] + 0.05L * g * g;
      const long double mean = m[i] / (1 - std::pow(0.8L, t)),
                        square = v[i] / (1 - std::pow(0.95L, t));
      const long double decay = i < 12 ? 0.1L * value[i] : 0;
      value[i] -= 0.05L * (mean / (std::sqrt(square) + 1e-6L) + decay);
    }
  }
  for (std::size_t i = 0; i < 17; ++i) {
    const double found = i < 12 ? w.value.data()[i] : b.value.data()[i - 12];
    CHECK(found == doctest::Approx(static_cast<double>(value[i])).epsilon(1e-13));
  }
}

TEST_CASE("an optimizer refuses parameters that were cut after it was made") {
  Param<double> w = param("fc.weight", {3, 4}, 1);
  Sgd<double> sgd({&w}, 0.1);
  AdamW<double> adamw({&w});
  w.value = Array<double>({3, 2});
  const auto sentence = "optimizer: fc.weight: expected shape [3, 4], found [3, 2]";
  CHECK(error_of([&] { sgd.step(); }).what() == std::string(sentence));
  CHECK(error_of([&] { adamw.step(); }).what() == std::string(sentence));
}

TEST_CASE("values of bf16 follow a master: steps that each would be rounded away add up") {
  const auto param = [] {
    auto ones = Array<bf16>::uninitialized({4, 4});
    std::fill_n(ones.data(), ones.size(), to_bf16(1));
    Param<bf16> made("w", ones);
    std::fill_n(made.grad.data(), made.grad.size(), to_bf16(1));
    return made;
  };
  Param<bf16> w = param(), v = param();
  Sgd<bf16> sgd({&w}, 0x1p-10);
  AdamW<bf16> adamw({&v}, {.learning_rate = 0x1p-10, .weight_decay = 0});
  for (int step = 0; step < 256; ++step) {
    CHECK(w.value.data()[0] == to_bf16(1 - static_cast<float>(step) * 0x1p-10f));
    sgd.step();
    adamw.step();  // with equal gradients, by its learning rate
  }
  for (std::int64_t i = 0; i < 16; ++i) {
    CHECK(w.value.data()[i] == to_bf16(0.75f));
    CHECK(v.value.data()[i] == to_bf16(0.75f));
  }
}

TEST_CASE_TEMPLATE("what optimizers keep is counted as theirs", T, float, double, bf16) {
  Param<T> w("w", Array<T>({3, 4})), b("b", Array<T>({5}));
  const MemoryCount count;
  const CountingScope scope(count);
  constexpr std::int64_t wide = 17 * sizeof(Wide<T>);
  constexpr std::int64_t masters = std::is_same_v<T, Wide<T>> ? 0 : wide;
  {
    const Sgd<T> plain({&w, &b}, 0.1);
    CHECK(count.held().now == masters);
    CHECK(count.held(Purpose::optimizer).now == masters);
  }
  {
    const Sgd<T> with_momentum({&w, &b}, {.learning_rate = 0.1, .momentum = 0.9});
    CHECK(count.held().now == wide + masters);
    CHECK(count.held(Purpose::optimizer).now == wide + masters);
  }
  {
    const AdamW<T> adamw({&w, &b});
    CHECK(count.held(Purpose::optimizer).now == 2 * wide + masters);
  }
  CHECK(count.held().now == 0);
}

TEST_CASE("a learning rate that is set is that of the next step") {
  Param<double> a = param("a", {3, 4}, 1), b = param("b", {3, 4}, 1), c = param("c", {3, 4}, 1);
  Sgd<double> sgd({&a}, 0.25);
  CHECK(sgd.learning_rate() == 0.25);
  sgd.set_learning_rate(0.5);
  const Array<double> before = a.value.copy();
  sgd.step();
  CHECK(a.value.data()[7] == before.data()[7] - 0.5 * a.grad.data()[7]);

  AdamW<double> changed({&b}, {.learning_rate = 0.1}), made({&c}, {.learning_rate = 0.3});
  changed.set_learning_rate(0.3);
  changed.step(), made.step();
  CHECK(equal(b.value, c.value, 0));
}

TEST_CASE("CosineSchedule: a linear rise, half a cosine, then the least") {
  const CosineSchedule rate{.peak = 0.8, .least = 0.2, .warmup = 4, .steps = 12};
  for (int step = 0; step < 4; ++step) CHECK(rate.at(step) == doctest::Approx(0.2 * (step + 1)));
  CHECK(rate.at(4) == 0.8);
  CHECK(rate.at(8) == doctest::Approx(0.5));
  CHECK(rate.at(6) == doctest::Approx(0.5 + 0.3 * std::sqrt(0.5)));
  CHECK(rate.at(12) == 0.2);
  CHECK(rate.at(1000) == 0.2);
  CHECK(CosineSchedule{.peak = 3, .least = 1, .warmup = 0, .steps = 10}.at(0) == 3);
  CHECK(CosineSchedule{.peak = 3, .least = 1, .warmup = 10, .steps = 10}.at(9) == 3);
  CHECK(CosineSchedule{.peak = 3, .least = 1, .warmup = 10, .steps = 10}.at(10) == 1);
  const auto sentence = [](const CosineSchedule& rate, std::int64_t step) {
    return std::string(error_of([&] { static_cast<void>(rate.at(step)); }).what());
  };
  CHECK(holds(sentence(rate, -1), {"step of at least 0", "-1"}));
  CHECK(holds(sentence({.warmup = 5, .steps = 4}, 0), {"0 to 4", "5"}));
}
