#pragma once

namespace baton::transformer::program {

/// `baton-train --analyze`: prints the bytes that a rank holds and sends in a step of training, by
/// formulas, where `speaks`. Returns the exit code. Throws what the command line has wrong.
int analyze(int argc, char** argv, bool speaks);

}  // namespace baton::transformer::program
