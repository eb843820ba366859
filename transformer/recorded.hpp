#pragma once
/// What training computes, in recordings (BATON_TRACE, Communicator::start_recording()).

#include <chrono>
#include <cstdint>
#include <optional>

#include "baton/record.hpp"
#include "module.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// A computation that lasts as long as this lives. Costs a comparison where nothing is recorded.
class RecordedWork {
 public:
  /// `name()` is called where something is recorded.
  template <class Name>
  RecordedWork(ComputationKind kind, const Name& name) {
    if (!records_computations()) return;
    what_ = Computation{name(), kind, 0};
    begin_ = now();
  }
  ~RecordedWork() {
    if (what_) record_computation(*what_, begin_, now());
  }
  RecordedWork(const RecordedWork&) = delete;
  RecordedWork& operator=(const RecordedWork&) = delete;

  /// Nanoseconds of the clock of recordings.
  static std::int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

 private:
  std::optional<Computation> what_;
  std::int64_t begin_ = 0;
};

/// Records each use of a unit by this micro-batch's context, if something is recorded: "2F0" is the
/// forward pass of unit 2 with micro-batch 0, "2B0" its backward pass. Without the time until the
/// unit's parameters are there.
void record_units(Context& context, int micro_batch);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
