#include "conformance.hpp"
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

// Collectives that a drop-in leaves to the MPI library: on intercommunicators, among neighbours,
// persistent ones; also while others are under way. MPI_Alltoallw beside another.

// Persistent collectives came with MPI 4, and are an extension of Open MPI 4.
#if MPI_VERSION >= 4
#define PERSISTENT(name) MPI_##name##_init
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define PERSISTENT(name) MPIX_##name##_init
#endif

namespace dropin {

namespace {

void between_groups(Results& results, int rank, int size) {
  const int side = rank % 2;
  MPI_Comm half, both;
  {
    const Unprofiled making;
    MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 78, &both);
  }
  const int mine = rank + 1, place = rank_in(half);
  int theirs = 0;
  for (int peer = 1 - side; peer < size; peer += 2) theirs += peer + 1;

  MPI_Request pending;
  int total = -1;
  MPI_Iallreduce(&mine, &total, 1, MPI_INT, MPI_SUM, half, &pending);

  int sum = -1;
  results.succeeds(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, both), "Allreduce");
  results.expect(sum, theirs, "Allreduce gives the sum of the other group");

  int word = side == 0 && place == 0 ? 4711 : -1;
  const int root = side == 1 ? 0 : place == 0 ? MPI_ROOT : MPI_PROC_NULL;
  // Ranks that take no part may give any count; Open MPI's MPI_Ibcast does not end with 0.
  for (const int idle_count : {1, 0}) {
    const int count = root == MPI_PROC_NULL ? idle_count : 1;
    results.succeeds(MPI_Bcast(&word, count, MPI_INT, root, both), "Bcast");
    if (side == 1) results.expect(word, 4711, "Bcast");
  }

  int remote = 0;
  MPI_Comm_remote_size(both, &remote);
  Buffer<int> all(remote);
  MPI_Request request;
  results.succeeds(MPI_Iallgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, both, &request),
                   "Iallgather");
  results.succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE), "Wait");
  for (int i = 0; i < remote; ++i) results.expect(all[i], 2 * i + 1 - side + 1, "Iallgather");
  results.succeeds(MPI_Barrier(both), "Barrier");
  MPI_Wait(&pending, MPI_STATUS_IGNORE);
  int ours = 0;
  for (int peer = side; peer < size; peer += 2) ours += peer + 1;
  results.expect(total, ours, "Iallreduce under way");
  const Unprofiled freeing;
  MPI_Comm_free(&both);
  MPI_Comm_free(&half);
}

void among_neighbours(Results& results, int rank, int size) {
  const int from = (rank + size - 1) % size, to = (rank + 1) % size;
  MPI_Comm ring;
  {
    const Unprofiled making;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, MPI_UNWEIGHTED, 1, &to, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &ring);
  }
  int word = -1, exchanged = -1;
  results.succeeds(MPI_Neighbor_allgather(&rank, 1, MPI_INT, &word, 1, MPI_INT, ring),
                   "Neighbor_allgather");
  results.expect(word, from, "Neighbor_allgather");
  MPI_Request request;
  results.succeeds(
      MPI_Ineighbor_alltoall(&rank, 1, MPI_INT, &exchanged, 1, MPI_INT, ring, &request),
      "Ineighbor_alltoall");
  results.succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE), "Wait");
  results.expect(exchanged, from, "Ineighbor_alltoall");
  int sum = -1;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, ring);
  results.expect(sum, size * (size - 1) / 2, "Allreduce");
  const Unprofiled freeing;
  MPI_Comm_free(&ring);
}

void of_many_datatypes(Results& results, int rank, int size) {
  std::vector<int> counts(size, 1), at(size), in(size), out(size, -1), again(size, -1);
  const std::vector<MPI_Datatype> types(size, MPI_INT);
  for (int peer = 0; peer < size; ++peer) {
    at[peer] = peer * static_cast<int>(sizeof(int));
    in[peer] = 100 * rank + peer;
  }
  MPI_Request requests[2];
  int mine = 1, sum = 0;
  MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
  MPI_Ialltoallw(in.data(), counts.data(), at.data(), types.data(), again.data(), counts.data(),
                 at.data(), types.data(), MPI_COMM_WORLD, &requests[1]);
  results.succeeds(MPI_Alltoallw(in.data(), counts.data(), at.data(), types.data(), out.data(),
                                 counts.data(), at.data(), types.data(), MPI_COMM_WORLD),
                   "Alltoallw");
  results.succeeds(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), "Waitall");
  results.expect(sum, size, "Iallreduce");
  for (int peer = 0; peer < size; ++peer) {
    results.expect(out[peer], 100 * peer + rank, "Alltoallw");
    results.expect(again[peer], 100 * peer + rank, "Ialltoallw");
  }
}

#ifdef PERSISTENT
void persistent(Results& results, int rank, int size) {
  constexpr int count = 1000;
  std::vector<int> in(count), sums(count), from(size), all(size);
  MPI_Request requests[3], pending;
  results.succeeds(PERSISTENT(Allreduce)(in.data(), sums.data(), count, MPI_INT, MPI_SUM,
                                         MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]),
                   "Allreduce_init");
  results.succeeds(PERSISTENT(Alltoall)(from.data(), 1, MPI_INT, all.data(), 1, MPI_INT,
                                        MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]),
                   "Alltoall_init");
  results.succeeds(PERSISTENT(Barrier)(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]),
                   "Barrier_init");
  for (int turn = 0; turn < 3; ++turn) {
    for (int& word : in) word = rank + turn;
    for (int peer = 0; peer < size; ++peer) from[peer] = 100 * rank + peer + turn;
    int mine = rank, sum = -1;
    MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &pending);
    results.succeeds(MPI_Startall(3, requests), "Startall");
    results.succeeds(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE), "Waitall");
    MPI_Wait(&pending, MPI_STATUS_IGNORE);
    results.expect(sum, size * (size - 1) / 2, "Iallreduce under way");
    for (int word : sums) results.expect(word, size * (size - 1) / 2 + size * turn, "Allreduce");
    for (int peer = 0; peer < size; ++peer)
      results.expect(all[peer], 100 * peer + rank + turn, "Alltoall");
  }
  for (MPI_Request& request : requests) MPI_Request_free(&request);
}
#endif

}  // namespace

void passed_on(Suite& suite) {
  const int rank = suite.rank(), size = suite.size();
  suite.run("passed_on/intercommunicators", [&](Results& r) { between_groups(r, rank, size); });
  suite.run("passed_on/neighbours", [&](Results& r) { among_neighbours(r, rank, size); });
#ifdef PERSISTENT
  suite.run("passed_on/persistent", [&](Results& r) { persistent(r, rank, size); });
#endif
  suite.run("passed_on/alltoallw", [&](Results& r) { of_many_datatypes(r, rank, size); });
}

}  // namespace dropin
