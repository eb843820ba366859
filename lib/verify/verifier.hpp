#pragma once

#include <memory>
#include <span>

#include "baton/verify.hpp"

namespace baton::proving {

/// verify(), with memory kept between calls. One thread at a time.
class Verifier {
 public:
  Verifier();
  Verifier(Verifier&&) noexcept;
  Verifier& operator=(Verifier&&) noexcept;
  ~Verifier();

  Proof verify(std::span<const Schedule> schedules, std::span<const Problem> problems,
               const VerifyOptions& options = {});
  Proof verify(const Algorithm& algorithm, std::span<const Problem> problems, std::int64_t segment);
  /// The same for generated schedules. `segmented`: they have been cut.
  Proof verify(const Algorithm& algorithm, std::span<const Schedule> schedules,
               std::span<const Problem> problems, bool segmented);
  Proof verify_fused(std::span<const Schedule> schedules, std::span<const Problem> problems);
  /// The same, also against the algorithm's cost in elements.
  Proof verify_fused(const Algorithm& algorithm, std::span<const Schedule> schedules,
                     std::span<const Problem> problems);

 private:
  struct Workspace;
  std::unique_ptr<Workspace> workspace_;
};

}  // namespace baton::proving
