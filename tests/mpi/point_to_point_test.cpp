#include <dlfcn.h>
#include <doctest/doctest.h>

#include "communicators.hpp"
#include "interposed.hpp"
#include "support/conformance.hpp"

using namespace baton;
using namespace support;

TEST_CASE("interposition sees every call, by either name") {
  const std::int64_t before = interposed::collective_calls();
  int one = 1, all = 0;
  REQUIRE(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
  CHECK(interposed::collective_calls() == before + 1);
  CHECK(interposed::last_collective() == "MPI_Allreduce");
  REQUIRE(PMPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
  CHECK(interposed::collective_calls() == before + 2);
  CHECK(interposed::last_collective() == "PMPI_Barrier");
  // Shared objects of this program find the interposed functions, too.
  for (const char* name :
       {"MPI_Bcast", "PMPI_Bcast", "MPI_Alltoallw", "PMPI_Ireduce_scatter", "MPI_Isend"}) {
    Dl_info of{}, own{};
    REQUIRE(dladdr(dlsym(RTLD_DEFAULT, name), &of) != 0);
    REQUIRE(dladdr(reinterpret_cast<void*>(&interposed::collective_calls), &own) != 0);
    CHECK(of.dli_fbase == own.dli_fbase);
  }
}

TEST_CASE("our collectives call none of MPI's") {
  Communicator c = world();
  Communicator half = c.split(c.rank() % 2);
  const std::int64_t before = interposed::collective_calls(), sends = interposed::send_calls();
  Scope scope = brief(c.size());
  scope.counts = {1, 67};
  conformance::rooted(c, scope);
  conformance::reductions(c, scope);
  conformance::exchanges(c, scope);
  conformance::barriers(c);
  conformance::reductions(half, scope);
  std::vector<float> x(100'000, 1);
  c.start_all_reduce(x, sum).wait();
  c.progress();
  CHECK_MESSAGE(interposed::collective_calls() == before, interposed::last_collective());
  if (c.size() > 1) CHECK(interposed::send_calls() > sends + 100);
}
