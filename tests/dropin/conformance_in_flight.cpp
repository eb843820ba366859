#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <string>
#include <thread>
#include <type_traits>

#include "conformance.hpp"

// Nonblocking collectives that advance while the program waits for something else, many of them,
// and such that use what the program frees.

namespace dropin {

namespace {

constexpr int late_tag = 32;
constexpr int large = 60000;  // ints that no library sends before their receiver is there

/// An all-reduce that has data enough to need its ranks' help until the end.
struct LargeSum {
  std::vector<int> in, out;
  MPI_Request request = MPI_REQUEST_NULL;

  void start(Results& results, int rank, MPI_Comm comm = MPI_COMM_WORLD) {
    in.assign(large, rank + 1);
    out.assign(large, 0);
    results.succeeds(MPI_Iallreduce(in.data(), out.data(), large, MPI_INT, MPI_SUM, comm, &request),
                     "Iallreduce");
  }
  void finish(Results& results, int size) {
    results.succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE), "Wait");
    const int sum = size * (size + 1) / 2;
    results.expect(std::ranges::count(out, sum), large, "Iallreduce under way");
  }
};

/// Rank 0 starts a collective and blocks in `wait`, which ends when the others have completed that
/// collective and done `release`.
struct Blocked {
  const char* name;
  void (*wait)(Results& results, int size, MPI_Comm other);
  void (*release)(Results& results, int rank, MPI_Comm other);
};

void send_late(Results& results, int rank, MPI_Comm) {
  results.succeeds(MPI_Send(&rank, 1, MPI_INT, 0, late_tag, MPI_COMM_WORLD), "Send");
}

/// Makes `wait` for a message of each of the others.
template <class Wait>
void for_each_peer(int size, const Wait& wait) {
  for (int peer = 1; peer < size; ++peer) wait(peer);
}

void receive(Results& results, int peer) {
  int word = -1;
  results.succeeds(MPI_Recv(&word, 1, MPI_INT, peer, late_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                   "Recv");
  results.expect(word, peer, "received");
}

void replace_nothing(Results& results, int peer) {
  int word = 7;
  results.succeeds(MPI_Sendrecv_replace(&word, 0, MPI_INT, peer, late_tag, peer, late_tag,
                                        MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                   "Sendrecv_replace of nothing");
  results.expect(word, 7, "not replaced");
}

/// By a datatype of absolute addresses.
template <auto replace>
void replace_at_address(Results& results, int peer) {
  int word = 10 * rank_in(MPI_COMM_WORLD);
  const int one = 1;
  MPI_Aint at;
  MPI_Datatype there;
  MPI_Get_address(&word, &at);
  MPI_Type_create_hindexed(1, &one, &at, MPI_INT, &there);
  MPI_Type_commit(&there);
  results.succeeds(replace(MPI_BOTTOM, 1, there, peer, late_tag, peer, late_tag, MPI_COMM_WORLD,
                           MPI_STATUS_IGNORE),
                   "Sendrecv_replace at an address");
  results.expect(word, 10 * peer, "replaced");
  MPI_Type_free(&there);
}

/// Each rank writes its number at its place, all together, and reads that of the next.
void exchange_in_file(Results& results, MPI_File file, MPI_Comm other) {
  const Unprofiled reading_and_writing;
  int rank, size, word = -1;
  MPI_Comm_rank(other, &rank);
  MPI_Comm_size(other, &size);
  const MPI_Offset own = rank * sizeof(int), next = (rank + 1) % size * sizeof(int);
  results.succeeds(MPI_File_write_at_all(file, own, &rank, 1, MPI_INT, MPI_STATUS_IGNORE),
                   "File_write_at_all");
  results.succeeds(MPI_File_sync(file), "File_sync");
  MPI_Barrier(other);
  results.succeeds(MPI_File_read_at_all(file, next, &word, 1, MPI_INT, MPI_STATUS_IGNORE),
                   "File_read_at_all");
  results.expect(word, (rank + 1) % size, "read");
}

MPI_File shared_file;  // of all ranks of the communicator that `wait` and `release` are given

/// A file of all ranks, deleted when it is closed. They must see the same folder.
MPI_File open_file(Results& results, MPI_Comm other) {
  const Unprofiled opening;
  int name = getpid();
  MPI_Bcast(&name, 1, MPI_INT, 0, other);
  const char* const folder = std::getenv("TMPDIR");
  const std::string path =
      std::string(folder ? folder : "/tmp") + "/baton_in_flight_" + std::to_string(name);
  MPI_File file;
  results.succeeds(
      MPI_File_open(other, path.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                    MPI_INFO_NULL, &file),
      "File_open");
  return file;
}

// Calls on the file that all ranks make together, each the first that may wait in its case. The
// shared pointer is at the begin of the file before and after each.

void to_begin(Results& results, MPI_File file) {
  results.succeeds(MPI_File_seek_shared(file, 0, MPI_SEEK_SET), "File_seek_shared");
}
void set_info(Results& results, MPI_File file) {
  MPI_Info info;
  MPI_Info_create(&info);
  results.succeeds(MPI_File_set_info(file, info), "File_set_info");
  MPI_Info_free(&info);
}
void set_atomicity(Results& results, MPI_File file) {
  for (int atomic : {1, 0})
    results.succeeds(MPI_File_set_atomicity(file, atomic), "File_set_atomicity");
}

using EndOfRead = int (*)(MPI_File, void*, MPI_Status*);

/// One number in or out by a split collective, `begin` of which is called with it.
template <auto end, class Begin>
void in_two_parts(Results& results, MPI_File file, const Begin& begin) {
  const int rank = rank_in(MPI_COMM_WORLD);
  int word = std::is_same_v<decltype(end), const EndOfRead> ? -1 : rank;
  results.succeeds(begin(rank * sizeof(int), &word), "the begin of a split collective");
  results.succeeds(end(file, &word, MPI_STATUS_IGNORE), "the end of a split collective");
  results.expect(word, rank, "number in the file");
}
template <auto begin, auto end>
void at_all(Results& results, MPI_File file) {
  in_two_parts<end>(results, file, [&](MPI_Offset place, int* word) {
    return begin(file, place, word, 1, MPI_INT);
  });
}
template <auto begin, auto end>
void all(Results& results, MPI_File file) {
  in_two_parts<end>(results, file, [&](MPI_Offset place, int* word) {
    MPI_File_seek(file, place, MPI_SEEK_SET);
    return begin(file, word, 1, MPI_INT);
  });
}
template <auto begin, auto end>
void ordered(Results& results, MPI_File file) {
  in_two_parts<end>(results, file,
                    [&](MPI_Offset, int* word) { return begin(file, word, 1, MPI_INT); });
  to_begin(results, file);
}

/// Ranks of even and of odd number, with communicators that a drop-in passes on.
struct Halves {
  Halves(int rank, int size) : odd(rank % 2 == 1), first(rank / 2 == 0) {
    MPI_Comm_split(MPI_COMM_WORLD, odd ? 1 : 0, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, odd ? 0 : 1, 79, &between);
    const int from = (rank + size - 1) % size, to = (rank + 1) % size;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, MPI_UNWEIGHTED, 1, &to, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &ring);
  }
  ~Halves() {
    MPI_Comm_free(&half);
    MPI_Comm_free(&between);
    MPI_Comm_free(&ring);
  }
  Halves(const Halves&) = delete;
  Halves& operator=(const Halves&) = delete;
  bool odd, first;
  MPI_Comm half, between, ring;
};
const Halves* halves;

/// From rank 1 to the even ranks. The other odd ones have nothing to say, and say so by a count.
void bcast_between(Results& results) {
  const Unprofiled passed_on;
  const bool has = !halves->odd || halves->first;
  int word = halves->odd ? 4711 : -1;
  const int root = !halves->odd ? 0 : halves->first ? MPI_ROOT : MPI_PROC_NULL;
  results.succeeds(MPI_Bcast(has ? &word : nullptr, has ? 1 : 0, MPI_INT, root, halves->between),
                   "Bcast between groups");
  if (has) results.expect(word, 4711, "Bcast between groups");
}

/// One rank after the other completes a sum of its half before a barrier between the halves, to
/// which all others came at once. MPI's own barrier there would not wait for a rank's own half.
void late_to_barrier_between(Results& results, int rank, int size) {
  for (int late = 0; late < size; ++late) {
    LargeSum sum;
    sum.start(results, rank_in(halves->half), halves->half);
    const auto finish = [&] { sum.finish(results, size_of(halves->half)); };
    if (rank == late) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      finish();
    }
    {
      const Unprofiled passed_on;
      results.succeeds(MPI_Barrier(halves->between), "Barrier between groups");
    }
    if (rank != late) finish();
  }
}

void pass_round(Results& results) {
  const Unprofiled passed_on;
  const int rank = rank_in(halves->ring), size = size_of(halves->ring);
  int word = -1;
  results.succeeds(MPI_Neighbor_allgather(&rank, 1, MPI_INT, &word, 1, MPI_INT, halves->ring),
                   "Neighbor_allgather");
  results.expect(word, (rank + size - 1) % size, "Neighbor_allgather");
}

#if MPI_VERSION >= 4
void read_large(Results& results, MPI_File file) {
  const Unprofiled reading;
  const int rank = rank_in(MPI_COMM_WORLD);
  int word = -1;
  results.succeeds(MPI_File_write_at_all_c(file, (100 + rank) * sizeof(int), &rank, 1, MPI_INT,
                                           MPI_STATUS_IGNORE),
                   "File_write_at_all_c");
  results.succeeds(MPI_File_read_at_all_c(file, (100 + rank) * sizeof(int), &word, 1, MPI_INT,
                                          MPI_STATUS_IGNORE),
                   "File_read_at_all_c");
  results.expect(word, rank, "read");
}
#endif

template <auto replace>
constexpr Blocked replaced_at_address(const char* name) {
  return {name,
          [](Results& results, int size, MPI_Comm) {
            for_each_peer(size, [&](int peer) { replace_at_address<replace>(results, peer); });
          },
          [](Results& results, int, MPI_Comm) { replace_at_address<replace>(results, 0); }};
}

template <void (*call)(Results& results, MPI_File file)>
constexpr Blocked in_file(const char* name) {
  const auto made = [](Results& results, int, MPI_Comm) {
    const Unprofiled together;
    call(results, shared_file);
  };
  return {name, made, made};
}

constexpr Blocked blocked[] = {
    {"recv",
     [](Results& results, int size, MPI_Comm) {
       for_each_peer(size, [&](int peer) { receive(results, peer); });
     },
     send_late},
    {"probe",
     [](Results& results, int size, MPI_Comm) {
       for_each_peer(size, [&](int peer) {
         MPI_Status status;
         MPI_Probe(peer, late_tag, MPI_COMM_WORLD, &status);
         results.expect(status.MPI_SOURCE, peer, "probed source");
         receive(results, peer);
       });
     },
     send_late},
    {"mprobe",
     [](Results& results, int size, MPI_Comm) {
       for_each_peer(size, [&](int peer) {
         MPI_Message message;
         MPI_Mprobe(peer, late_tag, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
         int word = -1;
         MPI_Mrecv(&word, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
         results.expect(word, peer, "received");
       });
     },
     send_late},
    {"iprobe",
     [](Results& results, int size, MPI_Comm) {
       for_each_peer(size, [&](int peer) {
         for (int found = 0; !found;)
           MPI_Iprobe(peer, late_tag, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
         receive(results, peer);
       });
     },
     send_late},
    {"waits",
     [](Results& results, int size, MPI_Comm) {
       std::vector<int> words(size, -1);
       std::vector<MPI_Request> requests(size, MPI_REQUEST_NULL);
       for_each_peer(size, [&](int peer) {
         MPI_Irecv(&words[peer], 1, MPI_INT, peer, late_tag, MPI_COMM_WORLD, &requests[peer]);
       });
       int index;
       MPI_Waitany(size, requests.data(), &index, MPI_STATUS_IGNORE);
       results.expect(words[index] == index, true, "received");
       MPI_Waitall(size, requests.data(), MPI_STATUSES_IGNORE);
       for_each_peer(size, [&](int peer) { results.expect(words[peer], peer, "received"); });
     },
     [](Results& results, int rank, MPI_Comm) { send_late(results, rank, MPI_COMM_WORLD); }},
    {"ssend",
     [](Results& results, int size, MPI_Comm) {
       for_each_peer(size, [&](int peer) {
         results.succeeds(MPI_Ssend(&peer, 1, MPI_INT, peer, late_tag, MPI_COMM_WORLD), "Ssend");
       });
     },
     [](Results& results, int rank, MPI_Comm) {
       int word = -1;
       MPI_Recv(&word, 1, MPI_INT, 0, late_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
       results.expect(word, rank, "received");
     }},
    {"sendrecv",
     [](Results& results, int size, MPI_Comm) {
       for_each_peer(size, [&](int peer) {
         int word = -1;
         MPI_Sendrecv(&peer, 1, MPI_INT, peer, late_tag, &word, 1, MPI_INT, peer, late_tag,
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE);
         results.expect(word, 10 * peer, "received");
         MPI_Sendrecv_replace(&word, 1, MPI_INT, peer, late_tag, peer, late_tag, MPI_COMM_WORLD,
                              MPI_STATUS_IGNORE);
         results.expect(word, 10 * peer + 1, "replaced");
       });
     },
     [](Results& results, int rank, MPI_Comm) {
       int sent = 10 * rank, word = -1;
       MPI_Sendrecv(&sent, 1, MPI_INT, 0, late_tag, &word, 1, MPI_INT, 0, late_tag, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE);
       results.expect(word, rank, "received");
       word = 10 * rank + 1;
       MPI_Sendrecv_replace(&word, 1, MPI_INT, 0, late_tag, 0, late_tag, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE);
       results.expect(word, 10 * rank, "replaced");
     }},
    {"sendrecv_replace_of_nothing",
     [](Results& results, int size, MPI_Comm) {
       for_each_peer(size, [&](int peer) { replace_nothing(results, peer); });
     },
     [](Results& results, int, MPI_Comm) { replace_nothing(results, 0); }},
    replaced_at_address<MPI_Sendrecv_replace>("sendrecv_replace_at_address"),
    {"collective",
     [](Results& results, int, MPI_Comm other) { results.succeeds(MPI_Barrier(other), "Barrier"); },
     [](Results& results, int, MPI_Comm other) {
       results.succeeds(MPI_Barrier(other), "Barrier");
     }},
    {"intercommunicator", [](Results& results, int, MPI_Comm) { bcast_between(results); },
     [](Results& results, int, MPI_Comm) { bcast_between(results); }},
    {"neighbours", [](Results& results, int, MPI_Comm) { pass_round(results); },
     [](Results& results, int, MPI_Comm) { pass_round(results); }},
    {"file",
     [](Results& results, int, MPI_Comm other) { exchange_in_file(results, shared_file, other); },
     [](Results& results, int, MPI_Comm other) { exchange_in_file(results, shared_file, other); }},
    in_file<to_begin>("file_seek_shared"),
    in_file<set_info>("file_set_info"),
    in_file<set_atomicity>("file_set_atomicity"),
    in_file<all<MPI_File_write_all_begin, MPI_File_write_all_end>>("file_write_all_begin"),
    in_file<all<MPI_File_read_all_begin, MPI_File_read_all_end>>("file_read_all_begin"),
    in_file<at_all<MPI_File_write_at_all_begin, MPI_File_write_at_all_end>>(
        "file_write_at_all_begin"),
    in_file<at_all<MPI_File_read_at_all_begin, MPI_File_read_at_all_end>>("file_read_at_all_begin"),
    in_file<ordered<MPI_File_write_ordered_begin, MPI_File_write_ordered_end>>(
        "file_write_ordered_begin"),
    in_file<ordered<MPI_File_read_ordered_begin, MPI_File_read_ordered_end>>(
        "file_read_ordered_begin"),
#if MPI_VERSION >= 4
    in_file<all<MPI_File_write_all_begin_c, MPI_File_write_all_end>>("large_file_write_all_begin"),
    in_file<all<MPI_File_read_all_begin_c, MPI_File_read_all_end>>("large_file_read_all_begin"),
    in_file<at_all<MPI_File_write_at_all_begin_c, MPI_File_write_at_all_end>>(
        "large_file_write_at_all_begin"),
    in_file<at_all<MPI_File_read_at_all_begin_c, MPI_File_read_at_all_end>>(
        "large_file_read_at_all_begin"),
    in_file<ordered<MPI_File_write_ordered_begin_c, MPI_File_write_ordered_end>>(
        "large_file_write_ordered_begin"),
    in_file<ordered<MPI_File_read_ordered_begin_c, MPI_File_read_ordered_end>>(
        "large_file_read_ordered_begin"),
    {"large_file", [](Results& results, int, MPI_Comm) { read_large(results, shared_file); },
     [](Results& results, int, MPI_Comm) { read_large(results, shared_file); }},
    replaced_at_address<MPI_Sendrecv_replace_c>("large_sendrecv_replace_at_address"),
    {"large_recv",
     [](Results& results, int size, MPI_Comm) {
       for_each_peer(size, [&](int peer) {
         int word = -1;
         MPI_Recv_c(&word, 1, MPI_INT, peer, late_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
         results.expect(word, peer, "received");
         MPI_Sendrecv_c(&peer, 1, MPI_INT, peer, late_tag, &word, 1, MPI_INT, peer, late_tag,
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE);
         results.expect(word, 10 * peer, "exchanged");
         MPI_Ssend_c(&word, 1, MPI_INT, peer, late_tag, MPI_COMM_WORLD);
       });
     },
     [](Results& results, int rank, MPI_Comm) {
       MPI_Send_c(&rank, 1, MPI_INT, 0, late_tag, MPI_COMM_WORLD);
       int sent = 10 * rank, word = -1;
       MPI_Sendrecv_c(&sent, 1, MPI_INT, 0, late_tag, &word, 1, MPI_INT, 0, late_tag,
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE);
       results.expect(word, rank, "exchanged");
       MPI_Recv_c(&word, 1, MPI_INT, 0, late_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
       results.expect(word, 10 * rank, "received");
     }},
#endif
    {"comm_dup",
     [](Results&, int, MPI_Comm other) {
       const Unprofiled making;
       MPI_Comm made;
       MPI_Comm_dup(other, &made);
       MPI_Comm_free(&made);
     },
     [](Results&, int, MPI_Comm other) {
       const Unprofiled making;
       MPI_Comm made;
       MPI_Comm_dup(other, &made);
       MPI_Comm_free(&made);
     }},
};

void advance_while_blocked(Results& results, const Blocked& how, int rank, int size,
                           MPI_Comm other) {
  LargeSum sum;
  MPI_Request barrier;
  results.succeeds(MPI_Ibarrier(MPI_COMM_WORLD, &barrier), "Ibarrier");
  sum.start(results, rank);
  if (rank == 0) how.wait(results, size, other);
  results.succeeds(MPI_Wait(&barrier, MPI_STATUS_IGNORE), "Wait");
  sum.finish(results, size);
  if (rank != 0) how.release(results, rank, other);
}

/// More than there are slots of anything, waited for in another order on each rank, blocking ones
/// between them.
void many(Results& results, int rank, int size, MPI_Comm other) {
  constexpr int number = 64;
  const MPI_Comm comms[] = {MPI_COMM_WORLD, other, MPI_COMM_SELF};
  std::vector<int> in(number), out(number, -1);
  std::vector<MPI_Request> requests(number);
  for (int i = 0; i < number; ++i) {
    in[i] = rank + i;
    MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_SUM, comms[i % 3], &requests[i]);
    if (i % 16 == 5) {
      int sum = -1;
      MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comms[i % 2]);
      results.expect(sum, size * (size - 1) / 2, "Allreduce among nonblocking ones");
    }
  }
  std::vector<int> order(number);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int i) { return mixed(i, rank); });
  for (int i : order) {
    MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    const bool alone = comms[i % 3] == MPI_COMM_SELF;
    results.expect(out[i], alone ? rank + i : size * (size - 1) / 2 + size * i,
                   "sum " + std::to_string(i));
  }
}

void sum_of_two(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < 2 * *count; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

int free_another(MPI_Datatype, int, void* another, void*) {
  return MPI_Type_free(static_cast<MPI_Datatype*>(another));
}

/// Handles may be freed while an operation that uses them is under way.
void freed(Results& results, int rank, int size, bool and_communicator) {
  MPI_Comm comm;
  {
    const Unprofiled making;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  }
  MPI_Datatype pair;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  MPI_Datatype another;  // freed by the end of `pair`
  MPI_Type_contiguous(3, MPI_INT, &another);
  int keyval;
  MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, free_another, &keyval, nullptr);
  MPI_Type_set_attr(pair, keyval, &another);
  MPI_Type_free_keyval(&keyval);
  MPI_Op op;
  MPI_Op_create(sum_of_two, 1, &op);
  const int in[] = {rank, rank + 1};
  int out[] = {-1, -1}, word[] = {rank == 0 ? 5 : -1, rank == 0 ? 6 : -1};
  MPI_Request requests[2];
  MPI_Iallreduce(in, out, 1, pair, op, comm, &requests[0]);
  MPI_Ibcast(word, 1, pair, 0, comm, &requests[1]);
  MPI_Op_free(&op);
  MPI_Type_free(&pair);
  results.expect(op == MPI_OP_NULL && pair == MPI_DATATYPE_NULL, true, "handles are null");
  if (and_communicator) MPI_Comm_free(&comm);
  results.succeeds(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), "Waitall");
  results.expect(another == MPI_DATATYPE_NULL, true, "the attribute of a datatype is deleted");
  results.expect(out[0], size * (size - 1) / 2, "sum");
  results.expect(out[1], size * (size + 1) / 2, "sum");
  results.expect(word[0] * 10 + word[1], 56, "bcast");
  if (!and_communicator) MPI_Comm_free(&comm);
}

}  // namespace

void in_flight(Suite& suite) {
  const int rank = suite.rank(), size = suite.size();
  MPI_Comm other;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &other);
  suite.run("in_flight/file_open",
            [&](Results& results) { shared_file = open_file(results, other); });
  {
    const Halves made(rank, size);
    halves = &made;
    for (const Blocked& how : blocked)
      suite.run(std::string("in_flight/while_in_") + how.name,
                [&](Results& results) { advance_while_blocked(results, how, rank, size, other); });
    suite.run("in_flight/late_to_barrier_between",
              [&](Results& results) { late_to_barrier_between(results, rank, size); });
  }
  suite.run("in_flight/many", [&](Results& results) { many(results, rank, size, other); });
  suite.run("in_flight/freed", [&](Results& results) { freed(results, rank, size, false); });
  const auto all_freed = [&](Results& results) { freed(results, rank, size, true); };
  // Open MPI 4.1 uses the communicator when it is no more.
  if constexpr (mpi_library == MpiLibrary::openmpi)
    suite.run_beyond_library("in_flight/communicator_freed", all_freed);
  else
    suite.run("in_flight/communicator_freed", all_freed);
  suite.run("in_flight/file_close", [&](Results& results) {
    LargeSum sum;
    sum.start(results, rank);
    {
      const Unprofiled closing;
      results.succeeds(MPI_File_close(&shared_file), "File_close");
    }
    sum.finish(results, size);
  });
  MPI_Comm_free(&other);
}

}  // namespace dropin
