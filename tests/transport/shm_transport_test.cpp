/// The shared memory transport between processes, bootstrapped by MPI.

#include <doctest/doctest.h>

#include <memory>

#include "baton/mpi.hpp"
#include "baton/shm.hpp"
#include "cases.hpp"
#include "contract.hpp"
#include "support/ranks.hpp"

using namespace baton;

namespace {

std::unique_ptr<Transport> world(const ShmOptions& options = {}) {
  const auto bootstrap = mpi_transport(MPI_COMM_WORLD);
  return shm_transport(*bootstrap, options);
}

}  // namespace

TEST_CASE("shm transport between processes: keeps the contract") {
  const auto t = world();
  contract::everything(*t, true);
  contract::traffic(*t, 40, 3);
  contract::traffic(*t, 6, 4, 3 << 20);
}

TEST_CASE("shm transport between processes: several worlds and groups do not meet") {
  const auto a = world(), b = world();
  const auto c = a->split(0, 0);
  for (int round = 0; round < 3; ++round)
    for (Transport* const t : {a.get(), b.get(), c.get()}) contract::order(*t);
}

TEST_CASE("shm transport between processes: collectives") {
  Communicator c(world(), support::test_options());
  cases::collectives(c);
  cases::long_collectives(c);
  cases::probes(c);
}

TEST_CASE("shm transport between processes: who leaves early loses nothing") {
  for (int round = 0; round < 20; ++round) {
    auto t = world();
    if (t->rank() != 0) {
      contract::send(*t, 0, 1, contract::pattern(5000, static_cast<std::uint64_t>(t->rank())));
      contract::send(*t, 0, 2, {});
      t.reset();
    } else {
      for (int from = t->size() - 1; from > 0; --from) {
        CHECK(contract::recv(*t, from, 1, 5000) ==
              contract::pattern(5000, static_cast<std::uint64_t>(from)));
        contract::recv(*t, from, 2, 0);
      }
    }
  }
}
