#pragma once

#include <memory>

#include "baton/launch.hpp"

namespace baton::launching {

/// The processes of MPI, which it initialises. Null in a build without MPI.
std::unique_ptr<Launch> mpi_launch(int& argc, char**& argv, const LaunchOptions& options);

}  // namespace baton::launching
