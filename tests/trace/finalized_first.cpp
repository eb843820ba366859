// A program of MPI whose communicator lives longer than MPI: usage `finalized_first FILE`.

#include <mpi.h>

#include <optional>
#include <vector>

#include "baton/communicator.hpp"
#include "baton/mpi.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  baton::Options options = baton::Options::from_environment();
  options.trace = argv[1];
  std::optional<baton::Communicator> world(std::in_place, baton::mpi_transport(MPI_COMM_WORLD),
                                           options);
  std::vector<float> data(100, 1);
  world->all_reduce(data, baton::sum);
  MPI_Finalize();
  world.reset();
}
