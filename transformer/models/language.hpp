#pragma once
/// Training, evaluation and use of a language model.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "../data/partition.hpp"
#include "../optimizer.hpp"
#include "../training/data_parallel.hpp"
#include "../training/step.hpp"
#include "gpt2.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// This rank's part of a batch of sequences.
struct TokenShare {
  TokenBatch batch;               ///< this rank's samples and positions
  std::int64_t first_sample = 0;  ///< index in the whole batch
  double tokens = 0;              ///< of the whole batch
};
/// That of step `step` of an epoch (partition_dataset()).
TokenShare share_of_step(const Sequences& data, const RankData& own, std::int64_t step,
                         const Mesh& mesh);

/// Makes one step with the mean cross-entropy of all tokens as the loss. Every rank makes
/// options.micro_batches, of near-equal slices of its samples. Collective over the mesh. Throws
/// Error(invalid_argument) if there are fewer samples than micro-batches.
template <class T>
StepLoss train_step(Gpt2<T>& model, DataParallel<T>& replicas, const TokenShare& share,
                    Optimizer<T>& optimizer, const Mesh& mesh, const StepOptions& options = {});

/// The mean cross-entropy of the first `samples` sequences, `batch` at once, without dropout; the
/// same on every rank. Collective over the mesh. Throws Error(invalid_argument) unless there are so
/// many sequences, and at least one.
template <class T>
double evaluate(Gpt2<T>& model, DataParallel<T>& replicas, const Sequences& data,
                std::int64_t samples, std::int64_t batch, const Mesh& mesh);

/// The same of a model of which `loss` computes this rank's share on a rank's part of a batch;
/// shares are added along `others`.
double evaluate(const std::function<double(const TokenShare& share)>& loss, const Sequences& data,
                std::int64_t samples, std::int64_t batch, const Mesh& mesh, Axes others);

/// How the next token is chosen.
struct Sampling {
  double temperature = 1;  ///< logits are divided by it; 0: the most probable token
  int top = 0;             ///< only so many of the most probable tokens; 0: all
  Random random = {};
};
/// `count` tokens that the model writes after `prompt`, each drawn from the probabilities that the
/// model gives to it after those before. The model sees the last tokens that its context holds. The
/// same on every rank. Collective over the mesh. Throws Error(invalid_argument) if the prompt is
/// empty or the temperature is negative.
template <class T>
std::vector<std::int32_t> generate(Gpt2<T>& model, DataParallel<T>& replicas,
                                   std::span<const std::int32_t> prompt, std::int64_t count,
                                   const Sampling& sampling = {});
/// The same of a model whose context has `context` tokens, and of which `logits` computes [1, s,
/// vocabulary] for ids [1, s].
template <class T>
std::vector<std::int32_t> generate(
    const std::function<Array<T>(View<const std::int32_t> ids)>& logits, std::int64_t context,
    std::span<const std::int32_t> prompt, std::int64_t count, const Sampling& sampling = {});

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
