// Run under mpirun, by a main() that has initialised MPI.

#include <doctest/doctest.h>

#include "baton/launch.hpp"
#include "mpi/communicators.hpp"

using namespace baton;

namespace {

std::unique_ptr<Launch> start(const LaunchOptions& options = {}) {
  int argc = 0;
  char** argv = nullptr;
  return Launch::start(argc, argv, options);
}

}  // namespace

TEST_CASE("ranks are the processes of the launcher, and MPI stays its owner's") {
  const Communicator world = support::world();
  for (int round = 0; round < 2; ++round) {
    const auto launch = start();
    CHECK(launcher_rank() == world.rank());
    CHECK(launcher_ranks() == world.size());
    CHECK(launch->rank() == world.rank());
    CHECK(launch->processes() == world.size());
    CHECK(launch->transport().find(' ') != std::string::npos);
    int calls = 0;
    launch->run(99, [&](std::unique_ptr<Transport> transport) {
      ++calls;
      Communicator own(std::move(transport), support::test_options());
      int sum = own.rank();
      own.all_reduce(Data(&sum, 1, Datatype::i32), baton::sum);
      CHECK(sum == own.size() * (own.size() - 1) / 2);
    });
    CHECK(calls == 1);
  }
  int finalized = 1;
  CHECK(MPI_Finalized(&finalized) == MPI_SUCCESS);
  CHECK(finalized == 0);
}

TEST_CASE("MPI that allows one thread is refused to those who need several") {
  const Error error = support::error_of([] { start({.concurrent = true}); });
  CHECK(error.code == ErrorCode::unsupported);
  CHECK(support::holds(error.what(),
                       {"expected MPI with MPI_THREAD_MULTIPLE, found ", " with less"}));
}
