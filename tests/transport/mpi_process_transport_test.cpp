/// The transport of MPI's processes that sends through shared memory on one host, which all tests
/// run on.

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "baton/mpi.hpp"
#include "cases.hpp"
#include "contract.hpp"
#include "support/ranks.hpp"
#include "without_ptrace.hpp"

using namespace baton;
using contract::Bytes;

namespace {

MPI_Comm split(int color) {
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, color, 0, &part);
  return part;
}

}  // namespace

TEST_CASE("mpi process transport: keeps the contract, through shared memory") {
  const auto t = mpi_process_transport(MPI_COMM_WORLD);
  CHECK(t->capabilities().name == (t->size() > 1 ? "shm" : "mpi"));
  contract::everything(*t, t->size() > 1);
  contract::traffic(*t, 40, 3);
  contract::traffic(*t, 6, 4, 3 << 20);
}

TEST_CASE("mpi process transport: without reading in others' memory, by MPI unless chosen") {
  setenv("BATON_SINGLE_COPY", "0", 1);
  const auto by_default = mpi_process_transport(MPI_COMM_WORLD);
  CHECK(by_default->capabilities().name == "mpi");
  setenv("BATON_TRANSPORT", "shm", 1);
  const auto chosen = mpi_process_transport(MPI_COMM_WORLD);
  CHECK(chosen->capabilities().name == "shm");
  for (const char* name : {"BATON_TRANSPORT", "BATON_SINGLE_COPY"}) unsetenv(name);
  for (Transport* const t : {by_default.get(), chosen.get()}) contract::order(*t);
}

TEST_CASE("mpi process transport: where one process hides its memory, all fall back to MPI") {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (const int hidden : {0, size - 1}) {
    const WithoutPtrace without(rank == hidden);
    MPI_Barrier(MPI_COMM_WORLD);  // all have no right
    const auto t = mpi_process_transport(MPI_COMM_WORLD);
    CHECK(t->capabilities().name == "mpi");
    contract::traffic(*t, 40, 3, longest_unread);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("mpi process transport: collectives") {
  Communicator c(mpi_process_transport(MPI_COMM_WORLD), support::test_options());
  cases::collectives(c);
  cases::long_collectives(c);
}

TEST_CASE("mpi process transport: groups of its ranks, by both ways, do not meet") {
  const auto whole = mpi_process_transport(MPI_COMM_WORLD);
  std::vector<std::unique_ptr<Transport>> groups;
  for (const int number : {0, 0, 32767})
    groups.push_back(mpi_process_transport_within(*whole, split(whole->rank() % 2), number));
  groups.push_back(mpi_process_transport_within(*groups.back(), split(whole->rank() % 2), 1));
  for (const auto& group : groups) CHECK(group->capabilities().name == whole->capabilities().name);
  groups.push_back(mpi_transport_within(*whole, split(whole->rank() % 2)));
  CHECK(groups.back()->capabilities().name == "mpi");
  for (int round = 0; round < 3; ++round) {
    contract::order(*whole);
    for (const auto& group : groups) contract::order(*group);
  }
}

TEST_CASE("mpi process transport: messages of the program advance while a rank waits") {
  const auto t = mpi_process_transport(MPI_COMM_WORLD);
  if (t->size() == 1) return;
  const int last = t->size() - 1;
  // The last rank comes only once rank 0's MPI library has answered its message.
  const auto meet = [&](const std::function<void()>& at_rank_0, const std::function<void()>& rest) {
    std::vector<char> data(4 << 20);
    const auto bytes = static_cast<int>(data.size());
    if (t->rank() == 0) {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Irecv(data.data(), bytes, MPI_CHAR, last, 0, MPI_COMM_WORLD, &request);
      at_rank_0();
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      CHECK(data.back() == 'x');
    } else {
      if (t->rank() == last) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        data.assign(data.size(), 'x');
        MPI_Ssend(data.data(), bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
      }
      rest();
    }
  };
  meet([&] { contract::recv(*t, last, 1, 8); },
       [&] {
         if (t->rank() == last) contract::send(*t, 0, 1, contract::pattern(8, 1));
       });
  meet(
      [&] {
        Message word;
        Bytes bytes(8);
        std::size_t length = 0;
        for (t->irecv(last, 2, bytes.data(), 8, word); !t->test(word, length);) t->progress();
      },
      [&] {
        if (t->rank() == last) contract::send(*t, 0, 2, contract::pattern(8, 1));
      });
  const auto split = [&] { CHECK(t->split(0, 0)->size() == t->size()); };
  meet(split, split);
  std::vector<int> all(static_cast<std::size_t>(t->size()));
  std::iota(all.begin(), all.end(), 0);
  const auto subgroup = [&] { CHECK(t->subgroup(all, 1)->size() == t->size()); };
  meet(subgroup, subgroup);
}
