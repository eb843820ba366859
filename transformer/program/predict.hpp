#pragma once

namespace baton::transformer::program {

/// `baton-train --predict`: prints the time and memory of a step on any number of ranks, or
/// compares layouts, where `speaks`. Returns the exit code. Throws what the command line has wrong.
int predict(int argc, char** argv, bool speaks);

}  // namespace baton::transformer::program
