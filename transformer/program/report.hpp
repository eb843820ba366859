#pragma once

#include <optional>
#include <string>

#include "cores.hpp"
#include "run.hpp"

namespace baton::transformer::program {

/// Prints a line for each epoch, or JSON at the end; and, where standard error is a terminal, how
/// far training is. Nothing before the first step is done: some refusals come with its calls.
class Report final : public Listener {
 public:
  Report(const TrainOptions& options, std::string transport);
  ~Report() override { clear(); }
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  /// Before the first step, where ranks have cores.
  void pinned(const Pinning& pinning) { pinning_ = pinning; }
  void step(const Progress& progress) override;
  void epoch(const Outcome& outcome) override;
  /// Prints the end of the report. Returns whether all results are within tolerance.
  bool finish(const Outcome& outcome);

 private:
  void head();
  void json(const Outcome& outcome) const;
  void clear();
  const TrainOptions& options_;
  std::string transport_;
  std::optional<Pinning> pinning_;
  bool terminal_, shown_ = false, headed_ = false;
};

}  // namespace baton::transformer::program
