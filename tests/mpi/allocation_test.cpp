#include "support/allocations.hpp"

#include <doctest/doctest.h>

#include <functional>

#include "communicators.hpp"

using namespace baton;
using namespace support;

namespace {

/// Of many calls, after some that may allocate. MPI keeps pools of its own that grow by the way, so
/// the least of several attempts counts.
std::size_t repeated(const std::function<void()>& call) {
  for (int i = 0; i < 50; ++i) call();
  std::size_t least = 1'000'000;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const AllocationCount allocations;
    for (int i = 0; i < 100; ++i) call();
    least = std::min(least, allocations.count());
  }
  return least;
}

/// The plainest exchange with the other rank.
std::size_t by_hand(std::size_t n) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<float> in(n), out(n);
  return repeated([&] {
    MPI_Request requests[2];
    const int count = static_cast<int>(n);
    MPI_Irecv(out.data(), count, MPI_FLOAT, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(in.data(), count, MPI_FLOAT, 1 - rank, 0, MPI_COMM_WORLD, &requests[1]);
    for (int complete = 0; complete == 0;) MPI_Testall(2, requests, &complete, MPI_STATUSES_IGNORE);
  });
}

}  // namespace

TEST_CASE("a repeated call allocates no more than the exchanges that it is made of") {
  Communicator c = world();
  REQUIRE(c.size() == 2);
  for (const std::size_t n : {2u, 500u, 5000u}) {
    REQUIRE(by_hand(n) == 0);  // else MPI itself allocates, and this test says nothing
    std::vector<float> in(n), out(n), all(2 * n), wide(2 * n);
    PersistentCall persistent = c.plan(calls::all_reduce(in, out, sum));
    const auto check = [&](const char* what, const std::function<void()>& call) {
      const std::size_t found = repeated(call);
      CHECK_MESSAGE(found == 0, std::string(what), " of ", n, ": ", found);
    };
    check("all_reduce", [&] { c.all_reduce(in, out, sum); });
    check("all_reduce in place", [&] { c.all_reduce(in, sum); });
    check("broadcast and barrier", [&] {
      c.broadcast(in, 0);
      c.barrier();
    });
    check("all_gather", [&] { c.all_gather(in, all); });
    check("reduce_scatter", [&] { c.reduce_scatter(all, out, sum); });
    check("all_to_all", [&] { c.all_to_all(all, wide); });
    check("start and wait", [&] { c.start_all_reduce(in, out, sum).wait(); });
    check("persistent", [&] { persistent.run(); });
  }
}
