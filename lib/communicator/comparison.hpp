#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "baton/error.hpp"
#include "planner.hpp"
#include "runs.hpp"

namespace baton::communicator {

/// The comparison of a call among all ranks before it runs: rank 0 gathers every rank's description
/// of its call and broadcasts its verdict, so that all raise the same sentence.
class Comparison {
 public:
  /// `wrong`: this rank's own error, if its call is wrong.
  Comparison(const Context& context, Planner& planner, Runs& runs, const Arguments& arguments,
             const Choice& choice, const Error* wrong);
  ~Comparison();

  /// Starts to send; `tag` is the operation's.
  void start(int tag);
  /// Advances it; whether it is finished and all ranks make the same call. Throws the verdict, as
  /// Error(invalid_argument) where all ranks' calls are wrong alike, else as Error(mismatch).
  bool step();
  void abandon() noexcept;
  const execute::Run& current() const { return *(telling_ ? broadcast_ : gather_).run; }
  bool telling() const { return telling_; }

 private:
  void judge();
  void conclude() const;

  const Context& context_;
  Runs& runs_;
  std::vector<std::byte> records_;  // this rank's; on rank 0 everybody's behind it
  std::vector<std::byte> verdict_;
  Execution gather_, broadcast_;
  int tag_ = 0;
  bool telling_ = false;
};

}  // namespace baton::communicator
