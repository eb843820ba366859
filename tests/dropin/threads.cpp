// Usage: threads
//
// MPI_THREAD_MULTIPLE: threads make collectives of both forms and messages, each on a communicator
// of its own, at the same time; one more makes communicators. All use a new datatype for the first
// time at once. Prints a line of case and digest.

#include <barrier>
#include <thread>

#include "suite.hpp"

namespace dropin {

namespace {

constexpr int threads = 3, repetitions = 40;

void work(Results& results, MPI_Comm comm, int thread) {
  const int rank = rank_in(comm), size = size_of(comm);
  for (int i = 0; i < repetitions; ++i) {
    const int count = i % 5 == 0 ? 20000 : 1 + i;
    const int root = i % size, next = (rank + 1) % size, previous = (rank + size - 1) % size;
    Buffer<int> in(count, rank + i), sum(count), expected(count);
    for (int j = 0; j < count; ++j) expected[j] = size * (size - 1) / 2 + size * i;
    MPI_Request requests[4];
    int word = rank == root ? 1000 * thread + i : -1, received = -1;
    std::vector<int> all(size, -1);
    MPI_Iallreduce(in.data(), sum.data(), count, MPI_INT, MPI_SUM, comm, &requests[0]);
    MPI_Irecv(&received, 1, MPI_INT, previous, thread, comm, &requests[1]);
    MPI_Isend(&rank, 1, MPI_INT, next, thread, comm, &requests[2]);
    MPI_Ibcast(&word, 1, MPI_INT, root, comm, &requests[3]);
    results.succeeds(MPI_Allgather(&i, 1, MPI_INT, all.data(), 1, MPI_INT, comm), "Allgather");
    results.succeeds(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE), "Waitall");
    results.expect(sum, expected, "Iallreduce");
    results.expect(received, previous, "Irecv");
    results.expect(word, 1000 * thread + i, "Ibcast");
    for (int other : all) results.expect(other, i, "Allgather");
    results.succeeds(MPI_Reduce(in.data(), sum.data(), count, MPI_INT, MPI_SUM, root, comm),
                     "Reduce");
    results.expect(sum, expected, "Reduce on the root, or the all-reduce before");
    results.succeeds(MPI_Barrier(comm), "Barrier");
  }
}

void make(Results& results, MPI_Comm comm) {
  const int rank = rank_in(comm), size = size_of(comm);
  for (int i = 0; i < 10; ++i) {
    MPI_Comm made;
    results.succeeds(i % 2 == 0 ? MPI_Comm_dup(comm, &made) : MPI_Comm_split(comm, 0, -rank, &made),
                     "making");
    int sum = -1;
    results.succeeds(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, made), "Allreduce");
    results.expect(sum, size * (size - 1) / 2, "Allreduce");
    results.succeeds(MPI_Comm_free(&made), "free");
  }
}

constexpr int members = 64;

/// Pairs of ints in descending order.
MPI_Datatype descending() {
  MPI_Datatype pair, type;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  const std::vector<int> lengths(members, 1);
  const std::vector<MPI_Datatype> types(members, pair);
  std::vector<MPI_Aint> at(members);
  for (int i = 0; i < members; ++i) at[i] = (members - 1 - i) * 2 * sizeof(int);
  MPI_Type_create_struct(members, lengths.data(), at.data(), types.data(), &type);
  MPI_Type_free(&pair);
  MPI_Type_commit(&type);
  return type;
}

/// All threads use a new datatype for the first time at once.
void first_use(Results& results, MPI_Datatype type, MPI_Comm alone) {
  Buffer<int> in(2 * members), out(2 * members), expected(2 * members);
  for (int i = 0; i < members; ++i)
    for (int k = 0; k < 2; ++k) expected[2 * i + k] = in[2 * (members - 1 - i) + k] = 2 * i + k;
  results.succeeds(MPI_Allgather(in.data(), 1, type, out.data(), 2 * members, MPI_INT, alone),
                   "Allgather");
  results.expect(out, expected, "Allgather");
}

}  // namespace

}  // namespace dropin

int main(int argc, char** argv) {
  using namespace dropin;
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  Suite suite(60);
  suite.run("threads/level", [&](Results& results) {
    results.expect(level, MPI_THREAD_MULTIPLE, "the level of thread support");
  });
  suite.run("threads/own_communicators", [](Results& results) {
    std::vector<MPI_Comm> comms(threads + 1);
    for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    std::vector<Results> of_threads(threads + 1);
    std::vector<std::thread> running;
    for (int thread = 0; thread < threads; ++thread)
      running.emplace_back([&, thread] { work(of_threads[thread], comms[thread], thread); });
    running.emplace_back([&] { make(of_threads[threads], comms[threads]); });
    for (std::thread& thread : running) thread.join();
    for (const Results& one : of_threads) results.add(one);
    for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  });
  suite.run("threads/one_datatype", [](Results& results) {
    MPI_Comm comms[threads];
    for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Datatype type = MPI_DATATYPE_NULL;
    std::barrier together(threads);
    std::vector<Results> of_threads(threads);
    std::vector<std::thread> running;
    for (int thread = 0; thread < threads; ++thread)
      running.emplace_back([&, thread] {
        for (int i = 0; i < 500; ++i) {
          if (thread == 0) type = descending();
          together.arrive_and_wait();
          first_use(of_threads[thread], type, comms[thread]);
          together.arrive_and_wait();
          if (thread == 0) MPI_Type_free(&type);
        }
      });
    for (std::thread& thread : running) thread.join();
    for (const Results& one : of_threads) results.add(one);
    for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  });
  MPI_Finalize();
  return suite.exit_code();
}
