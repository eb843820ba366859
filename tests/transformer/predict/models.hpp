#pragma once
/// Small models and given times for predictions.

#include "transformer/predict/predict.hpp"

namespace support {

/// Four blocks of 8 elements, 4 heads, 8 positions, a vocabulary of 16.
inline baton::transformer::StepModel small_model(std::int64_t batch) {
  baton::transformer::StepModel model;
  model.gpt2 = {.vocabulary = 16, .context = 8, .layers = 4, .heads = 4, .d_model = 8};
  model.batch = batch;
  model.seq = 8;
  return model;
}

inline baton::transformer::ComputeTimes given_times() {
  baton::transformer::ComputeTimes times;
  times.block_forward = 1000, times.block_backward = 2000;
  times.head_forward = 300, times.head_backward = 600;
  times.optimizer_ns = 0.5;
  return times;
}

inline baton::transformer::StepPlan plan(const baton::transformer::StepModel& model,
                                         const baton::transformer::StepLayout& layout,
                                         const baton::Network& network = {},
                                         std::map<baton::Collective, std::string> names = {}) {
  return step_plan(model, layout, given_times(),
                   baton::transformer::CollectiveChoice(
                       network, 4, baton::transformer::ChoiceRule::network, std::move(names)));
}

}  // namespace support
