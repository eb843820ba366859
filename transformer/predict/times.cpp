#include "times.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>

#include "../optimizer.hpp"

namespace baton::transformer {
namespace {

/// ns of a few repeats.
using Repeats = std::array<double, 5>;

double timed_ns(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

/// At least 1, so that speeds are finite.
double median(Repeats times) {
  std::ranges::sort(times);
  return std::max(times[times.size() / 2], 1.0);
}

template <std::size_t n>
double sum_of(const std::array<double, n>& operations) {
  double all = 0;
  for (const double its : operations) all += its;
  return all;
}

/// Divides `ns` by operations, so that the parts add up.
template <std::size_t n>
std::array<std::int64_t, n> divided(std::int64_t ns, const std::array<double, n>& operations) {
  const double whole = sum_of(operations);
  std::array<std::int64_t, n> parts{};
  double done = 0;
  std::int64_t spent = 0;
  for (std::size_t i = 0; i < n; ++i) {
    done += operations[i];
    const std::int64_t until = std::llround(static_cast<double>(ns) * (done / whole));
    parts[i] = until - spent;
    spent = until;
  }
  return parts;
}

double head_operations(const StepModel& model, const StepLayout& layout) {
  const StepShare share = share_of(model, layout);
  return 2.0 * static_cast<double>(share.samples * share.positions) *
         static_cast<double>(model.gpt2.d_model) * static_cast<double>(model.gpt2.vocabulary) /
         layout.tp;
}

}  // namespace

bool by_weights(BlockBackward work) {
  using enum BlockBackward;
  return work == fc2_weight || work == fc1_weight || work == o_weight || work == q_weight ||
         work == k_weight || work == v_weight;
}

std::array<double, block_forward_count> forward_operations(const StepModel& model,
                                                           const StepLayout& layout) {
  const StepShare share = share_of(model, layout);
  const auto d = static_cast<double>(model.gpt2.d_model);
  const double tokens = static_cast<double>(share.samples * share.positions) / layout.tp;
  const double square = 2 * tokens * d * d;
  const double attention = 2 * tokens * static_cast<double>(model.seq) * d;  // half of it is masked
  return {0, square, square, square, attention, square, 0, 4 * square, 4 * square, 0};
}

std::array<double, block_backward_count> backward_operations(const StepModel& model,
                                                             const StepLayout& layout) {
  const auto forward = forward_operations(model, layout);
  const double square = forward[1], attention = 2 * forward[4];
  return {0,         4 * square, 4 * square, 4 * square, 4 * square, 0,      square, square,
          attention, square,     square,     square,     square,     square, square, 0};
}

ComputeTimes times_at(const StepModel& model, const StepLayout& layout, const ComputeRate& rate) {
  const double head = head_operations(model, layout);
  ComputeTimes times;
  times.block_forward = std::llround(sum_of(forward_operations(model, layout)) / rate.forward);
  times.block_backward = std::llround(sum_of(backward_operations(model, layout)) / rate.backward);
  times.head_forward = std::llround(head / rate.forward);
  times.head_backward = std::llround(2 * head / rate.backward);
  times.optimizer_ns = rate.optimizer_ns;
  return times;
}

PartTimes parts_of(const StepModel& model, const StepLayout& layout, const ComputeTimes& times) {
  if (times.parts) return *times.parts;
  PartTimes parts;
  parts.block_forward = divided(times.block_forward, forward_operations(model, layout));
  parts.block_backward = divided(times.block_backward, backward_operations(model, layout));
  parts.head_forward = times.head_forward;
  parts.head_input = times.head_backward / 2;
  parts.head_weight = times.head_backward - parts.head_input;
  return parts;
}

ComputeRate measured_rate(const StepModel& model) {
  StepModel small = model;
  small.batch = 1;
  small.seq = std::min<std::int64_t>(model.seq, 256);
  const Random random{1};
  small.gpt2.dropout = 0;  // as predictions have none
  TransformerBlock<float> block(small.gpt2.block(0), random);
  Array<float> x = Array<float>::uninitialized({1, small.seq, model.gpt2.d_model});
  std::fill_n(x.data(), x.size(), 0.5f);
  const double operations = sum_of(forward_operations(small, {}));
  Repeats forward{}, backward{}, optimizer{};
  for (std::size_t i = 0; i < forward.size(); ++i) {
    Context context;
    forward[i] = timed_ns([&] { static_cast<void>(block.forward(x, context)); });
    backward[i] = timed_ns([&] { static_cast<void>(block.backward(x, context)); });
  }
  AdamW<float> adamw(block.params());
  for (double& ns : optimizer) ns = timed_ns([&] { adamw.step(); });
  std::int64_t parameters = 0;
  for (const Param<float>* param : block.params()) parameters += param->value.size();
  ComputeRate rate;
  rate.forward = operations / median(forward);
  rate.backward = 2 * operations / median(backward);
  rate.optimizer_ns = median(optimizer) / static_cast<double>(parameters);
  return rate;
}

}  // namespace baton::transformer
