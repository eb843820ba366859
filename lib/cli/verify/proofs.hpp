#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "baton/verify.hpp"
#include "cli/common/text.hpp"
#include "verify/sweep.hpp"

namespace baton::cli::verify {

/// The algorithms of these collectives that have the name, or all if it is empty. Throws
/// Error(invalid_argument) that lists those that exist.
std::vector<const Algorithm*> algorithms_named(const Registry& registry,
                                               const std::vector<Collective>& collectives,
                                               const std::string& name);

/// One algorithm, proved for one number of ranks.
struct ProofTask {
  const Algorithm* algorithm = nullptr;
  int ranks = 1;
};

/// Proofs for 1 … max_ranks, or for `ranks` alone if it is not 0; the largest first.
std::vector<ProofTask> proof_tasks(const std::vector<const Algorithm*>& algorithms, int max_ranks,
                                   int ranks = 0);

/// Does the tasks on `threads` threads: results[i] is that of tasks[i]. `done(n, task)` is called
/// by one thread at a time, after n of them.
std::vector<proving::SweepResult> prove(
    const std::vector<ProofTask>& tasks, int threads,
    const std::function<void(std::int64_t, const ProofTask&)>& done,
    proving::Form form = proving::Form::plain);

/// What is wrong with schedules, as a list of objects.
Json json_of(const std::vector<Finding>& findings);
/// "all_reduce ring, 7 ranks, count 8: hazard on rank 2, step 3: …"
std::string text_of(const proving::SweepFinding& finding);

}  // namespace baton::cli::verify
