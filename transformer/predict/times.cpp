#include "times.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>

#include "../optimizer.hpp"

namespace baton::transformer {
namespace {

double median_ns(const std::function<void()>& work) {
  std::array<double, 5> times{};
  for (double& ns : times) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

}  // namespace

BlockOperations block_operations(const StepModel& model, const StepLayout& layout) {
  const StepShare share = share_of(model, layout);
  const auto d = static_cast<double>(model.gpt2.d_model);
  const auto tokens = static_cast<double>(share.samples * share.positions) / layout.tp;
  BlockOperations operations;
  operations.qkv = 6 * tokens * d * d;
  operations.attention = 2 * tokens * static_cast<double>(model.seq) * d;  // half of it is masked
  operations.projection = 2 * tokens * d * d;
  operations.feed_forward = 16 * tokens * d * d;
  return operations;
}

ComputeTimes times_at(const StepModel& model, const StepLayout& layout, const ComputeRate& rate) {
  const StepShare share = share_of(model, layout);
  const double block = block_operations(model, layout).total();
  const double head = 2.0 * static_cast<double>(share.samples * share.positions) *
                      static_cast<double>(model.gpt2.d_model) *
                      static_cast<double>(model.gpt2.vocabulary) / layout.tp;
  ComputeTimes times;
  times.block_forward = std::llround(block / rate.forward);
  times.block_backward = std::llround(2 * block / rate.backward);
  times.head_forward = std::llround(head / rate.forward);
  times.head_backward = std::llround(2 * head / rate.backward);
  times.optimizer_ns = rate.optimizer_ns;
  return times;
}

ComputeRate measured_rate(const StepModel& model) {
  StepModel small = model;
  small.batch = 1;
  small.seq = std::min<std::int64_t>(model.seq, 256);
  const Random random{1};
  TransformerBlock<float> block(model.gpt2.block(0), random);
  Array<float> x = Array<float>::uninitialized({1, small.seq, model.gpt2.d_model});
  std::fill_n(x.data(), x.size(), 0.5f);
  const double operations = block_operations(small, {}).total();
  double backward = 0;
  const double both = median_ns([&] {
    Context context;
    static_cast<void>(block.forward(x, context));
    const auto begin = std::chrono::steady_clock::now();
    static_cast<void>(block.backward(x, context));
    backward =
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
  });
  AdamW<float> adamw(block.params());
  std::int64_t parameters = 0;
  for (const Param<float>* param : block.params()) parameters += param->value.size();
  ComputeRate rate;
  rate.forward = operations / std::max(both - backward, 1.0);
  rate.backward = 2 * operations / backward;
  rate.optimizer_ns = median_ns([&] { adamw.step(); }) / static_cast<double>(parameters);
  return rate;
}

}  // namespace baton::transformer
