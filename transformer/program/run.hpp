#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "../held.hpp"
#include "baton/communicator.hpp"
#include "baton/error.hpp"
#include "check.hpp"
#include "options.hpp"
#include "task.hpp"

namespace baton::transformer::program {

/// Seconds of an epoch's steps, averaged over ranks.
struct EpochSeconds {
  double all = 0;
  double communication = 0;  ///< starting, advancing and awaiting messages
  double optimizer = 0;
  double computation() const { return all - communication - optimizer; }
};

struct Outcome {
  int first_epoch = 1;                   ///< of those that follow
  std::vector<double> losses;            ///< of each epoch: mean over its samples, before each step
  std::vector<double> reference_losses;  ///< on one rank; where it is checked, on rank 0
  std::vector<double> validation;        ///< loss after each epoch, on data that is not trained on
  std::vector<double> accuracy;          ///< likewise, of models that classify
  std::vector<EpochSeconds> epochs;      ///< of steps, without the reference's
  std::vector<double> step_seconds;      ///< of each step on this rank
  std::vector<std::int64_t> items;       ///< samples or tokens of each epoch, on all ranks
  Traffic sent;                          ///< in the last step, by the rank that sent the most bytes
  Differences differences;               ///< of what is checked, on rank 0
  std::string stopped;                   ///< why training ended early
  std::string written;                   ///< text that the model wrote at the end
  /// Bytes of arrays by purpose; the last is of all together. Of the rank with the largest `most`.
  std::array<Held, purpose_count + 1> held{};

  StageLayers stages;  ///< of pipelines

  /// Of pipelines: the part of the time of forward and backward in which ranks did not compute.
  std::optional<double> bubble;

  double seconds() const;
  /// Of items on all ranks, without the first epoch if there are more.
  double items_per_second() const;
};

/// How far training is.
struct Progress {
  std::int64_t done = 0, of = 0;  ///< steps
  int epoch = 0;
  double loss = 0;              ///< of the last step
  double items_per_second = 0;  ///< so far
  double seconds_left = 0;
};

/// Hears how training goes, on rank 0.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void step(const Progress& progress) = 0;
  virtual void epoch(const Outcome& outcome) = 0;
};

/// An error that every rank throws, with the same sentence.
class Refusal : public Error {
 public:
  explicit Refusal(const Error& error) : Error(error) {}
};

/// The result of act(), whose Error(invalid_argument) every rank throws, or none: it becomes a
/// Refusal. Others, of a message or of memory, may be this rank's alone, and pass.
template <class Act>
auto agreed(const Act& act) {
  try {
    return act();
  } catch (const Error& error) {
    if (error.code == ErrorCode::invalid_argument) throw Refusal(error);
    throw;
  }
}

/// Trains as `options`, which are settled, say. Collective; `sent` is what this rank has sent so
/// far, at any time; `listener` may be null. Data and weights depend on the seed only, not on the
/// ranks. Ends early where a loss or a gradient is no finite number. Throws Refusal where data
/// cannot be read, or model and data do not fit.
template <class T>
Outcome train(Communicator& world, const Traffic& sent, const TrainOptions& options,
              Listener* listener);

}  // namespace baton::transformer::program
