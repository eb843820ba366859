#include <mpi.h>

#include "collectives.hpp"
#include "support.hpp"

using namespace c_support;

namespace {

baton_communicator* over(MPI_Comm communicator, const Settings& settings = {}) {
  baton_transport* transport = nullptr;
  OK(baton_mpi_transport(MPI_Comm_c2f(communicator), &transport));
  baton_communicator* world = nullptr;
  OK(baton_communicator_create(transport, Options(settings), &world));
  return world;
}

}  // namespace

TEST_CASE("every collective in every form, over MPI") {
  baton_communicator* world = over(MPI_COMM_WORLD);
  int rank = -1, size = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(baton_rank(world) == rank);
  CHECK(baton_size(world) == size);
  for (const long long count : {0, 1, size + 1, 1009}) every_collective(world, count);
  baton_communicator_destroy(world);
}

TEST_CASE("an MPI communicator of some ranks, with checks and large messages") {
  int rank = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  baton_communicator* world = over(half, {{"BATON_CHECK", "1"}});
  MPI_Comm_free(&half);  // it has a duplicate
  every_collective(world, 20'011, "ring:16K");
  baton_communicator_destroy(world);
}

TEST_CASE("no communicator of MPI is refused") {
  auto* transport = reinterpret_cast<baton_transport*>(1);
  FAILS(baton_mpi_transport(MPI_Comm_c2f(MPI_COMM_NULL), &transport), BATON_INVALID_ARGUMENT,
        {"MPI_COMM_NULL"});
  CHECK(transport == nullptr);
}

TEST_CASE("where MPI is initialised, a launch runs its processes and leaves MPI running") {
  int size = -1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto body = [](baton_communicator* world, void* context) {
    int x = 1;
    const int status = baton_all_reduce(world, &x, &x, 1, BATON_I32, BATON_SUM, nullptr);
    if (x == *static_cast<int*>(context)) *static_cast<int*>(context) = -1;
    return status;
  };
  for (int again = 0; again < 2; ++again) {
    int expected = size;
    OK(baton_launch(size + 3, Options(), body, &expected));
    CHECK(expected == -1);
  }
  int finalized = 1;
  MPI_Finalized(&finalized);
  CHECK(finalized == 0);
}
