#include "transformer/models/gpt2.hpp"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "transformer/compare.hpp"
#include "transformer/golden.hpp"
#include "transformer/language_cases.hpp"
#include "transformer/worlds.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

namespace {

/// The loss over all ranks.
double summed(double loss, const Mesh& mesh) {
  if (Communicator* const others = mesh.along(Axis::dp | Axis::sp))
    others->all_reduce(std::span(&loss, 1), sum);
  return loss;
}

/// Relative to the largest element. What is added to all keys does not change attention, so the
/// gradient of k_proj's bias is nothing but rounding, and is compared beside 1.
bool equal_gradients(const std::string& name, const Array<double>& found,
                     const Array<double>& expected, double tolerance = 1e-12) {
  if (name.find("k_proj_bias") == std::string::npos) return equal(found, expected, tolerance);
  return difference(found, expected) <= tolerance;
}

/// PyTorch's name of a parameter.
std::string torch_name(std::string name) {
  name = std::regex_replace(name, std::regex("_shard$"), "");
  name = std::regex_replace(name, std::regex("^block(\\d+)\\."), "blocks.$1.");
  if (std::regex_search(name, std::regex("_(weight|bias)$")))
    return std::regex_replace(name, std::regex("_(weight|bias)$"), ".$1");
  return name + ".weight";
}

Gpt2Config small() {
  return {.vocabulary = 48, .context = 48, .layers = 2, .heads = 24, .d_model = 48, .dropout = 0.2};
}

}  // namespace

TEST_CASE("GPT-2's loss, logits and gradients are PyTorch's, on every mesh") {
  const Golden golden("gpt2");
  const auto number = [&](const char* name) { return std::int64_t(golden.number(name)); };
  Gpt2Config config{number("vocabulary"), number("context"), number("layers"),
                    number("heads"),      number("d_model"), 0};
  const Array<double> tokens = golden("ids");
  TokenBatch whole;
  whole.shape = {tokens.extent(0), tokens.extent(1) - 1};
  for (std::int64_t b = 0; b < whole.shape[0]; ++b) {
    for (std::int64_t s = 0; s < whole.shape[1]; ++s) {
      whole.ids.push_back(static_cast<std::int32_t>(tokens.view()(b, s)));
      whole.targets.push_back(static_cast<std::int32_t>(tokens.view()(b, s + 1)));
    }
  }
  on_worlds([&](Communicator& world) {
    for (const Cut& cut : cuts_of(world.size())) {
      if (2 % cut.dp != 0 || 4 % (cut.tp * cut.sp) != 0) continue;
      CAPTURE(cut.text());
      const Mesh mesh = cut.mesh(world);
      Gpt2<double> model(config, {1}, mesh, cut.sequence_parallel);
      for (Param<double>* param : model.params()) {
        const Array<double> value = golden(torch_name(param->name));
        param->value = part_of<double>(value, param->placement, mesh);
      }
      const TokenBatch own = share_of(whole, mesh);
      Context context;
      const double loss = model.forward(own, double(whole.shape.elements()), context);
      CHECK(equal(summed(loss, mesh), golden.number("loss"), 1e-12));
      model.backward(context);
      CHECK(context.kept() == 0);
      sync_grads(model.params(), mesh);
      for (const Param<double>* param : model.params()) {
        CAPTURE(param->name);
        CHECK(equal_gradients(param->name, whole_grad(*param, mesh),
                              golden(torch_name(param->name) + ".grad")));
      }
      const Array<double> logits = golden("logits");
      const Range range = slice_of(whole.shape[0], cut.dp, mesh.rank(Axis::dp));
      for (const std::int64_t positions : {4, 3, 1}) {  // also where ranks cannot have equally many
        TokenBatch first;
        first.shape = {range.size(), positions};
        for (std::int64_t b = range.begin; b < range.end; ++b)
          for (std::int64_t s = 0; s < positions; ++s) first.ids.push_back(whole.ids_view()(b, s));
        const auto expected = logits.view().slice(0, range.begin, range.end).slice(1, 0, positions);
        CHECK(equal(model.logits(first.ids_view()), Array<double>::copy_of(expected)));
      }
    }
  });
}

TEST_CASE(
    "GPT-2 with dropout is the same on every mesh, and every gradient that is not summed is "
    "noticed") {
  on_worlds([](Communicator& world) {
    for (const Cut& cut : cuts_of(world.size())) {
      CAPTURE(cut.text());
      const Gpt2Config config = small();
      const TokenBatch batch = random_batch(config.vocabulary, {2 * cut.dp, 3 * cut.sp * cut.tp});
      const double elements = double(batch.shape.elements());
      const Mesh alone;
      Gpt2<double> reference(config, {3}, alone);
      Context context;
      context.random = Random{5};
      const double expected = reference.forward(batch, elements, context);
      reference.backward(context);

      const Mesh mesh = cut.mesh(world);
      Gpt2<double> model(config, {3}, mesh, cut.sequence_parallel);
      Context own;
      own.random = Random{5};
      own.first_sample = mesh.rank(Axis::dp) * 2;
      std::vector<const ParamInfo*> completed;
      own.completed = [&](const ParamInfo& param) { completed.push_back(&param); };
      const double loss = model.forward(share_of(batch, mesh), elements, own);
      CHECK(equal(summed(loss, mesh), expected, 1e-12));
      model.backward(own);

      const Params<double> params = model.params(), references = reference.params();
      REQUIRE(params.size() == references.size());
      CHECK(completed == std::vector<const ParamInfo*>(params.begin(), params.end()));
      for (std::size_t p = 0; p < params.size(); ++p) {
        CAPTURE(params[p]->name);
        CHECK(equal(whole_value(*params[p], mesh), references[p]->value));
        const bool partial = mesh.size(params[p]->partial) > 1;
        const bool keys = params[p]->name.find("k_proj_bias") != std::string::npos;
        if (keys && cut.sp == 1) continue;  // 0 without a sum, too
        CHECK(equal(whole_grad(*params[p], mesh), references[p]->grad, 1e-6) == !(partial || keys));
      }
      sync_grads(params, mesh);
      for (std::size_t p = 0; p < params.size(); ++p) {
        CAPTURE(params[p]->name);
        CHECK(equal_gradients(references[p]->name, whole_grad(*params[p], mesh),
                              references[p]->grad));
      }
    }
  });
}

#ifndef BATON_TEST_MPI

TEST_CASE("GPT-2's logits fill its context, also where ranks cannot have equally many positions") {
  const Gpt2Config config{
      .vocabulary = 12, .context = 8, .layers = 1, .heads = 3, .d_model = 6, .dropout = 0};
  const TokenBatch batch = random_batch(config.vocabulary, {2, 9});
  const auto first = [&](std::int64_t positions) {
    TokenBatch some;
    some.shape = {2, positions};
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t s = 0; s < positions; ++s) some.ids.push_back(batch.ids_view()(b, s));
    return some;
  };
  const Mesh alone;
  Gpt2<double> whole(config, {3}, alone);
  on_ranks(3, [&](Communicator& world) {
    for (const Axis axis : {Axis::sp, Axis::tp}) {
      const Mesh mesh(world, {{axis, 3}});
      Gpt2<double> model(config, {3}, mesh, true);
      for (const std::int64_t positions : {6, 7, 8}) {
        const TokenBatch some = first(positions);
        CHECK(equal(model.logits(some.ids_view()), whole.logits(some.ids_view())));
        const TokenBatch own = model.own_positions(some.ids_view());
        CHECK(own.padding == (9 - positions) % 3);
        CHECK(samples_of(own, {0, 1}).padding == own.padding);
      }
      const Error error = error_of([&] { model.logits(batch.ids_view()); });
      CHECK_MESSAGE(holds(error.what(), {"at most 8 positions", "found 9"}),
                    std::string(error.what()));
    }
  });
}

TEST_CASE("GPT-2 in bf16 sums the gradients of positions over many samples as f32") {
  const Gpt2Config config{
      .vocabulary = 12, .context = 4, .layers = 1, .heads = 1, .d_model = 4, .dropout = 0};
  TokenBatch batch = random_batch(config.vocabulary, {1, 4});
  constexpr std::int64_t samples = 512;
  batch.shape = {samples, 4};
  for (auto* numbers : {&batch.ids, &batch.targets}) {
    const std::vector<std::int32_t> one = *numbers;
    for (std::int64_t s = 1; s < samples; ++s)
      numbers->insert(numbers->end(), one.begin(), one.end());
  }
  const auto gradient = [&]<class T>(T) {
    const Mesh mesh;
    Gpt2<T> model(config, {3}, mesh);
    Context context;
    model.forward(batch, double(batch.shape.elements()), context);
    model.backward(context);
    std::vector<double> values;
    for (const Param<T>* param : model.params())
      if (param->name == "positions")
        for (const T g : param->grad.span()) values.push_back(widen(g));
    return values;
  };
  const auto found = gradient(bf16()), expected = gradient(float());
  REQUIRE(found.size() == 16);
  const double largest = std::ranges::max(expected, {}, [](double g) { return std::abs(g); });
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(std::abs(found[i] - expected[i]) <= 0.03 * std::abs(largest));
}

TEST_CASE("GPT-2's gradients are those of finite differences") {
  const Gpt2Config config{
      .vocabulary = 7, .context = 5, .layers = 1, .heads = 2, .d_model = 4, .dropout = 0.2};
  const Mesh mesh;
  Gpt2<double> model(config, {3}, mesh);
  for (Param<double>* param : model.params())  // larger, so that nothing is nearly 0
    for (double& value : param->value.span()) value = 10 * value + 0.1;
  const TokenBatch batch = random_batch(config.vocabulary, {2, 4});
  const auto loss = [&] {
    Context context;
    context.keeps = false;
    return model.forward(batch, 8, context);
  };
  Context context;
  model.forward(batch, 8, context);
  model.backward(context);
  for (Param<double>* param : model.params()) {
    CAPTURE(param->name);
    CHECK(difference(param->grad, finite_differences(param->value, loss)) <= 1e-7);
  }
}

TEST_CASE("GPT-2's sizes and beginnings are as published") {
  CHECK(Gpt2Config{}.parameters() == 124'439'808);
  CHECK(gpt2_preset("small").parameters() == 124'439'808);
  const Gpt2Config config = gpt2_preset("tiny");
  const Mesh mesh;
  Gpt2<float> model(config, {2}, mesh);
  std::int64_t elements = 0;
  for (const Param<float>* param : model.params()) {
    CAPTURE(param->name);
    elements += param->value.size();
    double square = 0;
    for (const float value : param->value.span()) square += double(value) * value;
    const double deviation = std::sqrt(square / double(param->value.size()));
    const auto is = [&](const char* name) { return param->name.find(name) != std::string::npos; };
    if (is("bias")) {
      CHECK(deviation == 0);
    } else if (is("norm")) {
      CHECK(deviation == 1);
    } else {
      const double expected = is("o_proj") || is("fc2") ? 0.02 / 2 : 0.02;
      CHECK(std::abs(deviation / expected - 1) < 0.05);
    }
  }
  CHECK(elements == config.parameters());
  // As good as nothing is known: all tokens are equally likely.
  Context context;
  const TokenBatch batch = random_batch(config.vocabulary, {2, 16});
  CHECK(std::abs(model.forward(batch, 32, context) - std::log(double(config.vocabulary))) < 0.1);
}

TEST_CASE("GPT-2 refuses wrong ids, lengths and names before anything is sent") {
  const auto refused = [](const auto& call, const std::vector<std::string>& parts) {
    const Error error = error_of(call);
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK_MESSAGE(holds(error.what(), parts), std::string(error.what()));
  };
  refused([] { gpt2_preset("huge"); }, {"tiny, mini or small", "\"huge\""});
  on_ranks(2, [&](Communicator& world) {
    const Gpt2Config config = small();
    const Mesh sp(world, {{Axis::sp, 2}}), tp(world, {{Axis::tp, 2}});
    Gpt2<float> model(config, {1}, sp);
    Context context;
    refused(
        [&] {
          model.forward(random_batch(48, {1, 25}), 50, context);
        },
        {"at most 48 positions", "50"});
    TokenBatch wrong = random_batch(48, {1, 4});
    wrong.ids[2] = 48;
    refused([&] { model.forward(wrong, 8, context); }, {"ids from 0 to 47", "48 at position 2"});
    Gpt2Config odd = config;
    odd.vocabulary = 49;
    refused([&] { Gpt2<float>(odd, {1}, tp); }, {"vocabulary", "multiple of 2", "tp", "49"});
  });
}

#endif
