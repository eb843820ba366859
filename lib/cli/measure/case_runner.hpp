#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cli/common/case.hpp"
#include "values.hpp"

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
  bool output_within_input() const;
  std::int64_t output_room() const;
  void place();

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
  void run_schedule();

  Communicator& communicator_;
  ConstData in_;  // as the call takes them
  Data out_;
  std::uint8_t token_ = 0;
};

}  // namespace baton::cli::measure
