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

inline baton::transformer::ComputeTimes given_times() { return {1000, 2000, 300, 600, 0.5}; }

inline baton::transformer::StepPlan plan(const baton::transformer::StepModel& model,
                                         const baton::transformer::StepLayout& layout,
                                         const baton::Network& network = {},
                                         std::map<baton::Collective, std::string> names = {}) {
  return step_plan(model, layout, given_times(),
                   baton::transformer::CollectiveChoice(network, 4, std::move(names)));
}

}  // namespace support
