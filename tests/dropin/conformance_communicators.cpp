#include <algorithm>
#include <numeric>

#include "conformance.hpp"

// Collectives on communicators made in every way MPI has, and on many of them.

namespace dropin {

namespace {

/// Ranks of MPI_COMM_WORLD that are in a communicator, in its order.
std::vector<int> members(MPI_Comm communicator) {
  std::vector<int> own(size_of(communicator)), world(own.size());
  std::iota(own.begin(), own.end(), 0);
  MPI_Group mine, all;
  MPI_Comm_group(communicator, &mine);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_translate_ranks(mine, static_cast<int>(own.size()), own.data(), all, world.data());
  MPI_Group_free(&mine);
  MPI_Group_free(&all);
  return world;
}

int total(const std::vector<int>& values) {
  return std::accumulate(values.begin(), values.end(), 0);
}

void all_reduce(Results& results, MPI_Comm communicator, const std::string& what) {
  int mine = rank_in(MPI_COMM_WORLD) + 1, sum = -1;
  results.succeeds(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, communicator), what);
  const auto ranks = members(communicator);
  results.expect(sum, total(ranks) + static_cast<int>(ranks.size()), what + " allreduce");
}

/// A few collectives of each kind.
void some_collectives(Results& results, MPI_Comm communicator, const std::string& what) {
  const auto ranks = members(communicator);
  const int size = static_cast<int>(ranks.size()), rank = rank_in(communicator);
  all_reduce(results, communicator, what);

  int word = rank == size - 1 ? 4242 : -1;
  results.succeeds(MPI_Bcast(&word, 1, MPI_INT, size - 1, communicator), what);
  results.expect(word, 4242, what + " bcast");

  Buffer<int> gathered(size), from_all(size), to_all(size), expected(size);
  MPI_Request requests[3];
  for (int peer = 0; peer < size; ++peer) to_all[peer] = 100 * rank + peer;
  int sum = -1;
  results.succeeds(MPI_Iallgather(&ranks[rank], 1, MPI_INT, gathered.data(), 1, MPI_INT,
                                  communicator, &requests[0]),
                   what);
  results.succeeds(MPI_Ialltoall(to_all.data(), 1, MPI_INT, from_all.data(), 1, MPI_INT,
                                 communicator, &requests[1]),
                   what);
  results.succeeds(MPI_Iscan(&ranks[rank], &sum, 1, MPI_INT, MPI_SUM, communicator, &requests[2]),
                   what);
  results.succeeds(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE), what);
  for (int peer = 0; peer < size; ++peer) expected[peer] = ranks[peer];
  results.expect(gathered, expected, what + " allgather");
  for (int peer = 0; peer < size; ++peer) expected[peer] = 100 * peer + rank;
  results.expect(from_all, expected, what + " alltoall");
  results.expect(sum, total({ranks.begin(), ranks.begin() + rank + 1}), what + " scan");
  results.succeeds(MPI_Barrier(communicator), what);
}

/// Makes a communicator of MPI_COMM_WORLD, or of part of it.
struct Maker {
  const char* name;
  MPI_Comm (*make)(int rank, int size);
};

MPI_Comm of_group(std::vector<int> ranks, bool only_by_members) {
  MPI_Group world, group;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &group);
  MPI_Comm made = MPI_COMM_NULL;
  const bool member = std::ranges::count(ranks, rank_in(MPI_COMM_WORLD)) > 0;
  if (!only_by_members)
    MPI_Comm_create(MPI_COMM_WORLD, group, &made);
  else if (member)
    MPI_Comm_create_group(MPI_COMM_WORLD, group, 77, &made);
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  return made;
}

/// Descending, every second one.
std::vector<int> some_ranks(int size) {
  std::vector<int> ranks;
  for (int rank = size - 1; rank >= 0; rank -= 2) ranks.push_back(rank);
  return ranks;
}

MPI_Comm grid(int size) {
  int sides[] = {0, 0}, periods[] = {1, 0};
  MPI_Dims_create(size, 2, sides);
  MPI_Comm made;
  MPI_Cart_create(MPI_COMM_WORLD, 2, sides, periods, 1, &made);
  return made;
}

MPI_Comm merged(int rank) {
  const int side = rank % 2;
  MPI_Comm half, both, made;
  MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 78, &both);
  MPI_Intercomm_merge(both, side == 0, &made);
  MPI_Comm_free(&both);
  MPI_Comm_free(&half);
  return made;
}

constexpr Maker makers[] = {
    {"dup",
     [](int, int) {
       MPI_Comm made;
       MPI_Comm_dup(MPI_COMM_WORLD, &made);
       return made;
     }},
    {"dup_with_info",
     [](int, int) {
       MPI_Comm made;
       MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &made);
       return made;
     }},
    {"idup",
     [](int, int) {
       // Not to be used before it is complete; meanwhile the old one may be.
       MPI_Comm made;
       MPI_Request request;
       MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
       int word = 1;
       MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
       MPI_Wait(&request, MPI_STATUS_IGNORE);
       return made;
     }},
    {"split",
     [](int rank, int) {
       MPI_Comm made;
       MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &made);
       return made;
     }},
    {"split_of_some",
     [](int rank, int) {
       MPI_Comm made;
       MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 3, rank, &made);
       return made;
     }},
    {"split_type",
     [](int rank, int) {
       MPI_Comm made;
       MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &made);
       return made;
     }},
    {"create", [](int, int size) { return of_group(some_ranks(size), false); }},
    {"create_group", [](int, int size) { return of_group(some_ranks(size), true); }},
    {"cart_create", [](int, int size) { return grid(size); }},
    {"cart_sub",
     [](int, int size) {
       MPI_Comm whole = grid(size), made;
       const int kept[] = {1, 0};
       MPI_Cart_sub(whole, kept, &made);
       MPI_Comm_free(&whole);
       return made;
     }},
    {"graph_create",
     [](int, int size) {
       std::vector<int> index(size), edges(size);
       for (int i = 0; i < size; ++i) {
         index[i] = i + 1;
         edges[i] = size - 1 - i;
       }
       MPI_Comm made;
       MPI_Graph_create(MPI_COMM_WORLD, size, index.data(), edges.data(), 0, &made);
       return made;
     }},
    {"dist_graph_create",
     [](int rank, int size) {
       const int degree = 1, to = (rank + 1) % size;
       MPI_Comm made;
       MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &degree, &to, MPI_UNWEIGHTED, MPI_INFO_NULL,
                             0, &made);
       return made;
     }},
    {"dist_graph_create_adjacent",
     [](int rank, int size) {
       const int from = (rank + size - 1) % size, to = (rank + 1) % size;
       MPI_Comm made;
       MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, MPI_UNWEIGHTED, 1, &to,
                                      MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
       return made;
     }},
    {"intercomm_merge", [](int rank, int) { return merged(rank); }},
};

/// By dup, or by a split that orders ranks by `key`.
MPI_Comm duplicate(MPI_Comm of, bool by_dup, int key) {
  const Unprofiled making;
  MPI_Comm made = MPI_COMM_NULL;
  if (by_dup)
    MPI_Comm_dup(of, &made);
  else
    MPI_Comm_split(of, 0, key, &made);
  return made;
}

/// More in sequence than MPI libraries have contexts for at once.
void in_sequence(Results& results, MPI_Comm of, int number) {
  for (int i = 0; i < number; ++i) {
    MPI_Comm made = duplicate(of, i % 2 == 0, rank_in(of));
    all_reduce(results, made, "communicator " + std::to_string(i));
    MPI_Comm_free(&made);
    results.expect(made == MPI_COMM_NULL, true, "a freed communicator is null");
  }
}

void at_once(Results& results, MPI_Comm of, int number) {
  std::vector<MPI_Comm> alive(number);
  for (auto& made : alive) made = duplicate(of, true, 0);
  for (int i = 0; i < number; i += 7)
    all_reduce(results, alive[i], "communicator " + std::to_string(i));
  some_collectives(results, alive.back(), "last communicator");
  for (auto& made : alive) MPI_Comm_free(&made);
}

/// A communicator of a communicator, each freed before what was made of it.
void of_each_other(Results& results, int rank) {
  MPI_Comm parent = MPI_COMM_WORLD;
  for (int depth = 0; depth < 5; ++depth) {
    const MPI_Comm made = duplicate(parent, depth % 2 == 0, -rank);
    if (depth > 0) MPI_Comm_free(&parent);
    some_collectives(results, made, "depth " + std::to_string(depth));
    parent = made;
  }
  MPI_Comm_free(&parent);
}

}  // namespace

void communicators(Suite& suite) {
  const int rank = suite.rank(), size = suite.size();
  suite.run("communicators/world",
            [](Results& r) { some_collectives(r, MPI_COMM_WORLD, "world"); });
  suite.run("communicators/self", [](Results& r) { some_collectives(r, MPI_COMM_SELF, "self"); });
  for (const auto& [name, make] : makers)
    suite.run(std::string("communicators/") + name, [&, make = make, name = name](Results& r) {
      MPI_Comm made = MPI_COMM_NULL;
      {
        const Unprofiled making;
        made = make(rank, size);
      }
      r.add(made == MPI_COMM_NULL);
      if (made == MPI_COMM_NULL) return;
      some_collectives(r, made, name);
      MPI_Comm_free(&made);
    });
  suite.run("communicators/of_each_other", [&](Results& r) { of_each_other(r, rank); });
  // Making one takes all its ranks, so where they share processors few must do.
  const bool few = size <= 2;
  suite.run("communicators/in_sequence", [&](Results& r) {
    in_sequence(r, MPI_COMM_SELF, 3300);
    in_sequence(r, MPI_COMM_WORLD, few ? 3300 : size <= 4 ? 30 : 10);
  });
  suite.run("communicators/at_once", [&](Results& r) {
    at_once(r, MPI_COMM_SELF, 500);
    at_once(r, MPI_COMM_WORLD, few ? 500 : size <= 4 ? 15 : 5);
  });
}

}  // namespace dropin
