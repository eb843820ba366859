#include "conformance.hpp"

// Nonblocking collectives, completed in all of MPI's ways among the program's own requests.

namespace dropin {

namespace {

constexpr int tag = 31;

int next_of(int rank, int size) { return (rank + 1) % size; }
int previous_of(int rank, int size) { return (rank + size - 1) % size; }

/// Completes all of `requests`; false if one was reported twice or one that was null.
struct Completion {
  const char* name;
  bool (*complete)(std::vector<MPI_Request>& requests, MPI_Status& of_receive, int receive);
};

bool once(std::vector<bool>& done, int index) {
  if (index < 0 || index >= static_cast<int>(done.size()) || done[index]) return false;
  return done[index] = true;
}

/// Notes those that MPI_Waitsome or Testsome reported.
bool note(std::vector<bool>& done, const std::vector<int>& indices,
          const std::vector<MPI_Status>& statuses, int count, MPI_Status& of_receive, int receive) {
  for (int i = 0; i < count; ++i) {
    if (!once(done, indices[i])) return false;
    if (indices[i] == receive) of_receive = statuses[i];
  }
  return true;
}

using Statuses = std::vector<MPI_Status>;
constexpr Completion ways[] = {
    {"wait",
     [](std::vector<MPI_Request>& requests, MPI_Status& of_receive, int receive) {
       MPI_Status status;
       for (int i = static_cast<int>(requests.size()) - 1; i >= 0; --i)
         MPI_Wait(&requests[i], i == receive ? &of_receive : &status);
       return true;
     }},
    {"waitall",
     [](std::vector<MPI_Request>& requests, MPI_Status& of_receive, int receive) {
       Statuses statuses(requests.size());
       MPI_Waitall(static_cast<int>(requests.size()), requests.data(), statuses.data());
       of_receive = statuses[receive];
       return true;
     }},
    {"waitany",
     [](std::vector<MPI_Request>& requests, MPI_Status& of_receive, int receive) {
       std::vector<bool> done(requests.size());
       for (;;) {
         int index;
         MPI_Status status;
         MPI_Waitany(static_cast<int>(requests.size()), requests.data(), &index, &status);
         if (index == MPI_UNDEFINED) return true;
         if (!once(done, index)) return false;
         if (index == receive) of_receive = status;
       }
     }},
    {"waitsome",
     [](std::vector<MPI_Request>& requests, MPI_Status& of_receive, int receive) {
       std::vector<bool> done(requests.size());
       std::vector<int> indices(requests.size());
       Statuses statuses(requests.size());
       for (;;) {
         int count;
         MPI_Waitsome(static_cast<int>(requests.size()), requests.data(), &count, indices.data(),
                      statuses.data());
         if (count == MPI_UNDEFINED) return true;
         if (count < 1 || !note(done, indices, statuses, count, of_receive, receive)) return false;
       }
     }},
    {"test",
     [](std::vector<MPI_Request>& requests, MPI_Status& of_receive, int receive) {
       for (bool all = false; !all;) {
         all = true;
         for (int i = 0; i < static_cast<int>(requests.size()); ++i) {
           MPI_Status status;
           int flag = 0;
           const bool active = requests[i] != MPI_REQUEST_NULL;
           MPI_Test(&requests[i], &flag, &status);
           if (flag && active && i == receive) of_receive = status;
           all = all && flag;
         }
       }
       return true;
     }},
    {"testall",
     [](std::vector<MPI_Request>& requests, MPI_Status& of_receive, int receive) {
       Statuses statuses(requests.size());
       for (int flag = 0; !flag;)
         MPI_Testall(static_cast<int>(requests.size()), requests.data(), &flag, statuses.data());
       of_receive = statuses[receive];
       return true;
     }},
    {"testany",
     [](std::vector<MPI_Request>& requests, MPI_Status& of_receive, int receive) {
       std::vector<bool> done(requests.size());
       for (;;) {
         int index, flag;
         MPI_Status status;
         MPI_Testany(static_cast<int>(requests.size()), requests.data(), &index, &flag, &status);
         if (!flag) continue;
         if (index == MPI_UNDEFINED) return true;
         if (!once(done, index)) return false;
         if (index == receive) of_receive = status;
       }
     }},
    {"testsome",
     [](std::vector<MPI_Request>& requests, MPI_Status& of_receive, int receive) {
       std::vector<bool> done(requests.size());
       std::vector<int> indices(requests.size());
       Statuses statuses(requests.size());
       for (;;) {
         int count;
         MPI_Testsome(static_cast<int>(requests.size()), requests.data(), &count, indices.data(),
                      statuses.data());
         if (count == MPI_UNDEFINED) return true;
         if (!note(done, indices, statuses, count, of_receive, receive)) return false;
       }
     }},
    {"get_status",
     [](std::vector<MPI_Request>& requests, MPI_Status& of_receive, int receive) {
       for (MPI_Request& request : requests) {
         MPI_Status status;
         for (int flag = 0; !flag;) MPI_Request_get_status(request, &flag, &status);
         if (&request == &requests[receive]) of_receive = status;
         MPI_Wait(&request, MPI_STATUS_IGNORE);
       }
       return true;
     }},
};

/// Collectives, messages, a persistent receive and null requests, in one array.
void mixed_requests(Results& results, const Completion& how, int rank, int size) {
  constexpr int receive = 2, persistent = 4;
  const int next = next_of(rank, size), previous = previous_of(rank, size);
  int word = rank == 0 ? 77 : -1, mine = rank + 1, sum = -1, prefix = -1;
  int received[] = {-1, -1}, again = -1;
  const int sent[] = {rank, 10 * rank};
  std::vector<int> gathered(size, -1);
  std::vector<MPI_Request> requests(9, MPI_REQUEST_NULL);
  MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
  MPI_Irecv(received, 2, MPI_INT, previous, tag, MPI_COMM_WORLD, &requests[receive]);
  MPI_Ibcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[3]);
  MPI_Recv_init(&again, 1, MPI_INT, previous, tag + 10, MPI_COMM_WORLD, &requests[persistent]);
  MPI_Start(&requests[persistent]);
  MPI_Request to_free = requests[persistent];
  MPI_Isend(sent, 2, MPI_INT, next, tag, MPI_COMM_WORLD, &requests[5]);
  MPI_Iallgather(&mine, 1, MPI_INT, gathered.data(), 1, MPI_INT, MPI_COMM_WORLD, &requests[6]);
  MPI_Isend(&rank, 1, MPI_INT, next, tag + 10, MPI_COMM_WORLD, &requests[7]);
  MPI_Iscan(&mine, &prefix, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[8]);

  MPI_Status status;
  results.expect(how.complete(requests, status, receive), true, "each completed once");
  for (int i = 0; i < static_cast<int>(requests.size()); ++i)
    results.expect(requests[i] == (i == persistent ? to_free : MPI_REQUEST_NULL), true,
                   "request " + std::to_string(i) + " is null unless persistent");
  MPI_Request_free(&to_free);
  int count = -1;
  MPI_Get_count(&status, MPI_INT, &count);
  results.expect(count, 2, "count of the receive's status");
  results.expect(status.MPI_SOURCE, previous, "source of the receive's status");
  results.expect(status.MPI_TAG, tag, "tag of the receive's status");
  results.expect(sum, size * (size + 1) / 2, "Iallreduce");
  results.expect(word, 77, "Ibcast");
  results.expect(received[1], 10 * previous, "Irecv");
  results.expect(again, previous, "persistent receive");
  results.expect(prefix, (rank + 1) * (rank + 2) / 2, "Iscan");
  for (int peer = 0; peer < size; ++peer) results.expect(gathered[peer], peer + 1, "Iallgather");
}

}  // namespace

void completions(Suite& suite) {
  const int rank = suite.rank(), size = suite.size();
  for (const Completion& how : ways)
    suite.run(std::string("completions/") + how.name,
              [&](Results& results) { mixed_requests(results, how, rank, size); });
}

}  // namespace dropin
