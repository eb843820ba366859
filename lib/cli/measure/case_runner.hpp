#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "cli/common/case.hpp"
#include "cli/common/world.hpp"
#include "reference.hpp"

namespace baton::cli::measure {

/// One rank's buffers of a case, which must outlive it.
class CaseBuffers {
 public:
  /// `in_place`: input and output are one buffer, where the case is of flat data.
  CaseBuffers(int rank, const Case& subject, bool in_place);

  std::byte* input() { return input_.data(); }
  std::byte* output() { return output_.data(); }  ///< room for a result out of place
  std::byte* result() { return result_; }         ///< where run() leaves it
  std::size_t result_bytes() const { return bytes_of(subject_.output_count(rank_)); }
  bool aliased() const { return aliased_; }  ///< in place, on this rank

  void fill(const Values& values);
  /// Buffers as before a first run: inputs in place, outputs stale.
  void reset();

  static constexpr std::byte stale{0xa5};  ///< what no run has written

 protected:
  std::size_t bytes_of(std::int64_t elements) const {
    return static_cast<std::size_t>(elements) * bytes_;
  }
  bool is_aliased(bool in_place) const;

  const Case& subject_;
  int rank_;
  std::size_t bytes_;  // of an element
  bool aliased_;       // input and output are one buffer, `output_`
  std::vector<std::byte> input_, output_;
  std::byte* source_ = nullptr;  // where the call's input is, and its result
  std::byte* result_ = nullptr;
};

/// The library's runs on them. The communicator, too, must outlive it.
class CaseRunner : public CaseBuffers {
 public:
  CaseRunner(Communicator& communicator, const Case& subject, bool in_place);

  void run(const Choice& choice);
  Choice chosen(const Choice& choice);

 private:
  Communicator& communicator_;
  ConstData in_;  // as the call takes them
  Data out_;
  std::uint8_t token_ = 0;
};

/// The result of checks, known to all ranks.
struct CheckResult {
  std::int64_t checks = 0;  ///< results that were checked, over all ranks
  std::int64_t wrong = 0;   ///< elements, over all ranks; and ranks that differ from rank 0 in bits
  std::uint64_t hash = 0;   ///< of this rank's last result
};

/// Checks results in a case's buffers, whoever computed them. All functions but fills() are
/// collective.
class Checker {
 public:
  Checker(World& world, const Case& subject, CaseBuffers& buffers)
      : world_(world), subject_(subject), buffers_(buffers) {}

  /// The inputs to check with: exact ones first, then, where the reduction rounds, random ones.
  std::vector<Fill> fills() const;
  /// Fills the input; the result that it must lead to, by the transport's own collective where it
  /// has one and `by_built_in` allows it.
  Reference reference(Fill fill, bool by_built_in = true);
  /// Runs once on fresh buffers and compares every rank's result. A barrier is checked by clocks,
  /// where ranks share one.
  void check(CheckResult& found, const std::function<void()>& run, const Reference& reference);
  /// The result still has the bits of the last check.
  void recheck(CheckResult& found);

 private:
  void check_barrier(CheckResult& found, const std::function<void()>& run);

  World& world_;
  const Case& subject_;
  CaseBuffers& buffers_;
};

}  // namespace baton::cli::measure
