#include "conformance.hpp"

// The program's own messages beside collectives: receives of any source and tag, posted before or
// left over, take none of a collective's and lose none of their own.

namespace dropin {

namespace {

constexpr int count = 20000;

/// Runs a case between barriers: its receives of any source may take no message of another case.
void run_alone(Suite& suite, const std::string& name,
               void (*body)(Results& results, int rank, int size)) {
  suite.run(name, [&](Results& results) {
    MPI_Barrier(MPI_COMM_WORLD);
    body(results, suite.rank(), suite.size());
    MPI_Barrier(MPI_COMM_WORLD);
  });
}

std::vector<MPI_Request> collectives(Results& results, int size, std::vector<int>& sums) {
  static const std::vector<int> ones(count, 1);
  sums.assign(count, 0);
  std::vector<MPI_Request> requests(2);
  results.succeeds(MPI_Iallreduce(ones.data(), sums.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                                  &requests[0]),
                   "Iallreduce");
  results.succeeds(MPI_Ibarrier(MPI_COMM_WORLD, &requests[1]), "Ibarrier");
  int word = 3;
  results.succeeds(MPI_Bcast(&word, 1, MPI_INT, size - 1, MPI_COMM_WORLD), "Bcast");
  return requests;
}

void posted_before(Results& results, int rank, int size) {
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  int word = -1;
  MPI_Request receive;
  MPI_Irecv(&word, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &receive);
  std::vector<int> sums;
  auto requests = collectives(results, size, sums);
  MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
  int flag = -1;
  MPI_Test(&receive, &flag, MPI_STATUS_IGNORE);
  results.expect(flag, false, "a receive takes a message of a collective");
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Send(&rank, 1, MPI_INT, next, 5, MPI_COMM_WORLD);
  MPI_Status status;
  MPI_Wait(&receive, &status);
  results.expect(word, previous, "received");
  results.expect(status.MPI_TAG, 5, "tag");
  results.expect(sums[count - 1], size, "sum");
}

void left_over(Results& results, int rank, int size) {
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  int* limit = nullptr;
  int known = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &known);
  const int tags[] = {0, 1, 1024, 32767, *limit};
  std::vector<int> words(std::size(tags), rank);
  std::vector<MPI_Request> sends;
  for (int i = 0; i < static_cast<int>(std::size(tags)); ++i)
    MPI_Isend(&words[i], 1, MPI_INT, next, tags[i], MPI_COMM_WORLD, &sends.emplace_back());
  std::vector<int> sums;
  auto requests = collectives(results, size, sums);
  MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
  for (int i = static_cast<int>(std::size(tags)) - 1; i >= 0; --i) {
    int word = -1;
    MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, tags[i], MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    results.expect(word, previous, "received");
  }
  MPI_Waitall(static_cast<int>(sends.size()), sends.data(), MPI_STATUSES_IGNORE);
  results.expect(sums[0], size, "sum");
}

/// While collectives are under way there is nothing to probe.
void not_seen(Results& results, int, int size) {
  std::vector<int> sums;
  auto requests = collectives(results, size, sums);
  for (int over = 0; !over;) {
    int found = -1;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    if (found) results.expect(found, 0, "probed a message of a collective");
    MPI_Testall(2, requests.data(), &over, MPI_STATUSES_IGNORE);
  }
  results.expect(sums[0], size, "sum");
}

}  // namespace

void messages(Suite& suite) {
  run_alone(suite, "messages/posted_before", posted_before);
  run_alone(suite, "messages/left_over", left_over);
  run_alone(suite, "messages/not_seen", not_seen);
}

}  // namespace dropin
