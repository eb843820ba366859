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

/// Compares a call among all ranks before it runs: rank 0 gathers every rank's description and
/// broadcasts its verdict. All ranks throw the same sentence.
class Comparison {
 public:
  /// `wrong`: this rank's own error, null if its call is valid.
  Comparison(const Context& context, Planner& planner, Runs& runs, const Arguments& arguments,
             const Choice& choice, const Error* wrong);
  ~Comparison();

  /// Sends this rank's description; `tag` is the operation's.
  void start(int tag);
  /// Advances the comparison; true if it is finished and all calls are equal. Throws
  /// Error(invalid_argument) if all ranks' calls are wrong in the same way, Error(mismatch) if the
  /// calls differ.
  bool step();
  void abandon() noexcept;
  const execute::Run& current() const { return *(telling_ ? broadcast_ : gather_).run; }
  bool telling() const { return telling_; }

 private:
  void judge();
  void conclude() const;

  const Context& context_;
  Runs& runs_;
  std::vector<std::byte> records_;  // this rank's; on rank 0, all others' behind it
  std::vector<std::byte> verdict_;
  Execution gather_, broadcast_;
  int tag_ = 0;
  bool telling_ = false;
};

}  // namespace baton::communicator
