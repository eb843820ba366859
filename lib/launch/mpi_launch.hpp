#pragma once

#include <memory>

#include "baton/launch.hpp"

namespace baton::launching {

/// The processes of MPI. Initialises MPI if needed. Null in a build without MPI.
std::unique_ptr<Launch> mpi_launch(int& argc, char**& argv, const LaunchOptions& options);

}  // namespace baton::launching
