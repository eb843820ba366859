#pragma once

namespace baton::transformer::program {

/// `baton-train plot KIND NAME=RANKS,... -o FILE`: becomes the program that draws runs that were
/// kept. Returns the exit code of --help; throws CLI::Error and Error(invalid_argument).
int plot(int argc, char** argv);

}  // namespace baton::transformer::program
