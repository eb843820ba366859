// Run under mpirun, by a main() that has initialised MPI.

#include <doctest/doctest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

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

TEST_CASE("BATON_TRANSPORT chooses how the launcher's processes are connected") {
  const int rank = launcher_rank();
  const auto with = [](const char* value, const std::function<void()>& call) {
    setenv("BATON_TRANSPORT", value, 1);
    call();
    unsetenv("BATON_TRANSPORT");
  };
  for (const std::string choice : {"shm", "mpi", "", "ucx"})  // the last is one without MPI
    with(choice.c_str(), [&] {
      const bool memory = choice == "shm" || (choice != "mpi" && launcher_ranks() > 1);
      const auto launch = start();
      launch->run(1, [&](std::unique_ptr<Transport> transport) {
        CHECK(launch->transport().starts_with("shared memory, ") == memory);
        CHECK(transport->capabilities().name == (memory ? "shm" : "mpi"));
        CHECK(transport->rank() == rank);
        Communicator own(std::move(transport), support::test_options());
        int sum = own.rank();
        own.all_reduce(Data(&sum, 1, Datatype::i32), baton::sum);
        CHECK(sum == own.size() * (own.size() - 1) / 2);
      });
    });
  const auto says = [](const std::function<void()>& call, ErrorCode code, const std::string& text) {
    const Error error = support::error_of(call);
    CHECK(error.code == code);
    CHECK(std::string(error.what()) == text);
  };
  with("tcp", [&] {
    says([] { start()->run(1, [](std::unique_ptr<Transport>) {}); }, ErrorCode::invalid_argument,
         "BATON_TRANSPORT: expected mpi or shm, found 'tcp' on rank 0");
  });
  if (launcher_ranks() == 1) return;
  with(rank == 1 ? "shm" : "", [&] {
    says([] { start()->run(1, [](std::unique_ptr<Transport>) {}); }, ErrorCode::mismatch,
         "BATON_TRANSPORT: expected the same on all ranks, found none on rank 0 and shm on rank 1");
  });
}
