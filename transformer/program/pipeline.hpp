#pragma once
/// `baton-train pipeline`: pipeline schedules, proved and explained.

namespace baton::transformer::program {

/// Answers a command line whose first argument is "pipeline"; prints if `speaks`. Returns the exit
/// code: 0, 1 if a schedule is wrong. Throws Error(invalid_argument) and CLI::Error.
int pipeline(int argc, char** argv, bool speaks);

}  // namespace baton::transformer::program
