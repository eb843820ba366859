#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "conformance.hpp"

// Broadcast, gather, scatter, all-gather, all-to-all. Where MPI says that an argument is not
// significant, it is one that could not be used.

namespace dropin {

namespace {

constexpr int unused_count = -7;
int* const unused_buffer = nullptr;

int element(int source, int destination, int i) {
  return static_cast<int>(mixed(source, destination, i));
}

/// What `source` sends to `destination`, from `at` on.
void fill(Buffer<int>& buffer, int at, int source, int destination, int count) {
  for (int i = 0; i < count; ++i) buffer[at + i] = element(source, destination, i);
}

/// How much a rank sends in uneven collectives: often something else than `count`, now and then
/// nothing.
int uneven(int count, int source, int destination = 0) {
  const auto chance = mixed(source, destination, count);
  return chance % 4 == 0 ? 0 : static_cast<int>(chance / 4 % (count + 1));
}

/// Blocks in descending order of rank with gaps between them.
struct Layout {
  template <class Count>
  Layout(int size, Count count_of) : counts(size), at(size) {
    for (int rank = size - 1; rank >= 0; --rank) {
      counts[rank] = count_of(rank);
      at[rank] = end + 2;
      end = at[rank] + counts[rank];
    }
  }
  std::vector<int> counts, at;
  int end = 0;
};

void broadcasts(Results& results, const Call& call, int rank, int) {
  const auto [form, count, root, in_place] = call;
  const auto what = call.text();
  if (in_place) return;  // it always is
  Buffer<int> data(count), expected(count);
  if (rank == root) fill(data, 0, root, 0, count);
  fill(expected, 0, root, 0, count);
  results.succeeds(bcast(form, data.data(), count, MPI_INT, root, MPI_COMM_WORLD), what);
  results.expect(data, expected, what);
}

void gathers(Results& results, const Call& call, int rank, int size) {
  const auto [form, count, root, in_place] = call;
  const auto what = call.text();
  const bool at_root = rank == root;
  Buffer<int> mine(count), all(at_root ? count * size : 0), expected(all);
  fill(mine, 0, rank, 0, count);
  for (int peer = 0; at_root && peer < size; ++peer) fill(expected, peer * count, peer, 0, count);
  const void* in = mine.data();
  if (in_place && at_root) {
    fill(all, rank * count, rank, 0, count);
    in = MPI_IN_PLACE;
  }
  const bool unused = in == MPI_IN_PLACE;
  results.succeeds(
      gather(form, in, unused ? unused_count : count, unused ? MPI_DATATYPE_NULL : MPI_INT,
             at_root ? all.data() : unused_buffer, at_root ? count : unused_count,
             at_root ? MPI_INT : MPI_DATATYPE_NULL, root, MPI_COMM_WORLD),
      what);
  results.expect(all, expected, what);
}

void uneven_gathers(Results& results, const Call& call, int rank, int size) {
  const auto [form, count, root, in_place] = call;
  const auto what = call.text();
  const bool at_root = rank == root;
  const Layout layout(size, [&, count = count](int peer) { return uneven(count, peer); });
  Buffer<int> mine(layout.counts[rank]), all(at_root ? layout.end : 0), expected(all);
  fill(mine, 0, rank, 0, layout.counts[rank]);
  for (int peer = 0; at_root && peer < size; ++peer)
    fill(expected, layout.at[peer], peer, 0, layout.counts[peer]);
  const void* in = mine.data();
  if (in_place && at_root) {
    fill(all, layout.at[rank], rank, 0, layout.counts[rank]);
    in = MPI_IN_PLACE;
  }
  results.succeeds(
      gatherv(form, in, layout.counts[rank], MPI_INT, all.data(),
              at_root ? layout.counts.data() : nullptr, at_root ? layout.at.data() : nullptr,
              at_root ? MPI_INT : MPI_DATATYPE_NULL, root, MPI_COMM_WORLD),
      what);
  results.expect(all, expected, what);
}

void scatters(Results& results, const Call& call, int rank, int size) {
  const auto [form, count, root, in_place] = call;
  const auto what = call.text();
  const bool at_root = rank == root;
  Buffer<int> all(at_root ? count * size : 0), mine(count), expected(count);
  for (int peer = 0; at_root && peer < size; ++peer) fill(all, peer * count, root, peer, count);
  void* out = mine.data();
  if (in_place && at_root)
    out = MPI_IN_PLACE;
  else
    fill(expected, 0, root, rank, count);
  const bool unused = out == MPI_IN_PLACE;
  results.succeeds(
      scatter(form, at_root ? all.data() : unused_buffer, at_root ? count : unused_count,
              at_root ? MPI_INT : MPI_DATATYPE_NULL, out, unused ? unused_count : count,
              unused ? MPI_DATATYPE_NULL : MPI_INT, root, MPI_COMM_WORLD),
      what);
  results.expect(mine, expected, what);
}

void uneven_scatters(Results& results, const Call& call, int rank, int size) {
  const auto [form, count, root, in_place] = call;
  const auto what = call.text();
  const bool at_root = rank == root;
  const Layout layout(size, [&, count = count](int peer) { return uneven(count, peer); });
  Buffer<int> all(at_root ? layout.end : 0), mine(layout.counts[rank]), expected(mine);
  for (int peer = 0; at_root && peer < size; ++peer)
    fill(all, layout.at[peer], root, peer, layout.counts[peer]);
  void* out = mine.data();
  if (in_place && at_root)
    out = MPI_IN_PLACE;
  else
    fill(expected, 0, root, rank, layout.counts[rank]);
  results.succeeds(
      scatterv(form, all.data(), at_root ? layout.counts.data() : nullptr,
               at_root ? layout.at.data() : nullptr, at_root ? MPI_INT : MPI_DATATYPE_NULL, out,
               layout.counts[rank], MPI_INT, root, MPI_COMM_WORLD),
      what);
  results.expect(mine, expected, what);
}

void all_gathers(Results& results, const Call& call, int rank, int size) {
  const auto [form, count, root, in_place] = call;
  const auto what = call.text();
  Buffer<int> mine(count), all(count * size), expected(all);
  fill(in_place ? all : mine, in_place ? rank * count : 0, rank, 0, count);
  for (int peer = 0; peer < size; ++peer) fill(expected, peer * count, peer, 0, count);
  results.succeeds(
      allgather(form, in_place ? MPI_IN_PLACE : mine.data(), in_place ? unused_count : count,
                in_place ? MPI_DATATYPE_NULL : MPI_INT, all.data(), count, MPI_INT, MPI_COMM_WORLD),
      what);
  results.expect(all, expected, what);
}

void uneven_all_gathers(Results& results, const Call& call, int rank, int size) {
  const auto [form, count, root, in_place] = call;
  const auto what = call.text();
  const Layout layout(size, [&, count = count](int peer) { return uneven(count, peer); });
  Buffer<int> mine(layout.counts[rank]), all(layout.end), expected(all);
  fill(in_place ? all : mine, in_place ? layout.at[rank] : 0, rank, 0, layout.counts[rank]);
  for (int peer = 0; peer < size; ++peer)
    fill(expected, layout.at[peer], peer, 0, layout.counts[peer]);
  results.succeeds(
      allgatherv(form, in_place ? MPI_IN_PLACE : mine.data(), layout.counts[rank], MPI_INT,
                 all.data(), layout.counts.data(), layout.at.data(), MPI_INT, MPI_COMM_WORLD),
      what);
  results.expect(all, expected, what);
}

void all_to_alls(Results& results, const Call& call, int rank, int size) {
  const auto [form, count, root, in_place] = call;
  const auto what = call.text();
  Buffer<int> mine(in_place ? 0 : count * size), all(count * size), expected(all);
  for (int peer = 0; peer < size; ++peer) {
    fill(in_place ? all : mine, peer * count, rank, peer, count);
    fill(expected, peer * count, peer, rank, count);
  }
  results.succeeds(
      alltoall(form, in_place ? MPI_IN_PLACE : mine.data(), in_place ? unused_count : count,
               in_place ? MPI_DATATYPE_NULL : MPI_INT, all.data(), count, MPI_INT, MPI_COMM_WORLD),
      what);
  results.expect(all, expected, what);
}

void uneven_all_to_alls(Results& results, const Call& call, int rank, int size) {
  const auto [form, count, root, in_place] = call;
  const auto what = call.text();
  const Layout to(size, [&, count = count](int peer) { return uneven(count, rank, peer); });
  // In place, what goes to a peer and what comes from it must be equally much.
  const Layout from(size, [&, count = count, in_place = in_place](int peer) {
    return in_place ? uneven(count, std::min(rank, peer), std::max(rank, peer))
                    : uneven(count, peer, rank);
  });
  Buffer<int> mine(in_place ? 0 : to.end), all(from.end), expected(all);
  for (int peer = 0; peer < size; ++peer) {
    const Layout& sent = in_place ? from : to;
    fill(in_place ? all : mine, sent.at[peer], rank, peer, sent.counts[peer]);
    fill(expected, from.at[peer], peer, rank, from.counts[peer]);
  }
  results.succeeds(alltoallv(form, in_place ? MPI_IN_PLACE : mine.data(), to.counts.data(),
                             to.at.data(), in_place ? MPI_DATATYPE_NULL : MPI_INT, all.data(),
                             from.counts.data(), from.at.data(), MPI_INT, MPI_COMM_WORLD),
                   what);
  results.expect(all, expected, what);
}

/// Blocks of one array: those sent and those received take turns, a gap behind each.
struct Turns {
  Turns(int size, int count)
      : step(count + 1), end(2 * size * step), counts(size, count), at(size) {
    for (int peer = 0; peer < size; ++peer) at[peer] = 2 * peer * step;
  }
  Buffer<int> array() const { return Buffer<int>(end); }
  int* sent(Buffer<int>& array, int peer = 0) const { return array.data() + at[peer]; }
  int* received(Buffer<int>& array, int peer = 0) const { return sent(array, peer) + step; }
  void send(Buffer<int>& array, int source, int destination, int block) const {
    fill(array, at[block], source, destination, counts[block]);
  }
  void receive(Buffer<int>& array, int source, int destination, int block) const {
    fill(array, at[block] + step, source, destination, counts[block]);
  }
  int step, end;
  std::vector<int> counts, at;
};

void interleaved(Results& results, const Call& call, int rank, int size) {
  const auto [form, count, root, in_place] = call;
  const auto what = call.text();
  if (in_place) return;
  Turns turns(size, count);
  Buffer<int> exchanged = turns.array();
  for (int peer = 0; peer < size; ++peer) turns.send(exchanged, rank, peer, peer);
  Buffer<int> expected(exchanged);
  for (int peer = 0; peer < size; ++peer) turns.receive(expected, peer, rank, peer);
  results.succeeds(alltoallv(form, turns.sent(exchanged), turns.counts.data(), turns.at.data(),
                             MPI_INT, turns.received(exchanged), turns.counts.data(),
                             turns.at.data(), MPI_INT, MPI_COMM_WORLD),
                   "alltoallv " + what);
  results.expect(exchanged, expected, "alltoallv " + what);

  // Then the last rank sends nothing, from inside the block of rank 0.
  for (const int last : {count, 0}) {
    turns.counts[size - 1] = last;
    Buffer<int> gathered = turns.array();
    turns.send(gathered, rank, 0, rank);
    expected = gathered;
    for (int peer = 0; peer < size; ++peer) turns.receive(expected, peer, 0, peer);
    const bool inside = turns.counts[rank] < count;
    results.succeeds(
        allgatherv(form,
                   inside ? turns.received(gathered) + count / 2 + 1 : turns.sent(gathered, rank),
                   turns.counts[rank], MPI_INT, turns.received(gathered), turns.counts.data(),
                   turns.at.data(), MPI_INT, MPI_COMM_WORLD),
        "allgatherv " + what);
    results.expect(gathered, expected, "allgatherv " + what);
  }
}

/// One array, of which both lists of displacements count from the start.
void interleaved_at_one_address(Results& results, const Call& call, int rank, int size) {
  const auto [form, count, root, in_place] = call;
  const auto what = call.text();
  if (in_place) return;
  const Turns turns(size, count);
  std::vector<int> behind(turns.at);
  for (int& at : behind) at += turns.step;
  Buffer<int> array = turns.array();
  for (int peer = 0; peer < size; ++peer) turns.send(array, rank, peer, peer);
  Buffer<int> expected(array);
  for (int peer = 0; peer < size; ++peer) turns.receive(expected, peer, rank, peer);
  results.succeeds(
      alltoallv(form, array.data(), turns.counts.data(), turns.at.data(), MPI_INT, array.data(),
                turns.counts.data(), behind.data(), MPI_INT, MPI_COMM_WORLD),
      what);
  results.expect(array, expected, what);
}

/// The same of collectives with a root, whose array it is.
void interleaved_at_root(Results& results, const Call& call, int rank, int size) {
  const auto [form, count, root, in_place] = call;
  const auto what = call.text();
  if (in_place) return;
  const Turns turns(size, count);
  const bool at_root = rank == root;
  Buffer<int> gathered = turns.array();
  turns.send(gathered, rank, 0, rank);
  Buffer<int> expected(gathered);
  for (int peer = 0; at_root && peer < size; ++peer) turns.receive(expected, peer, 0, peer);
  results.succeeds(
      gatherv(form, turns.sent(gathered, rank), count, MPI_INT, turns.received(gathered),
              turns.counts.data(), turns.at.data(), MPI_INT, root, MPI_COMM_WORLD),
      "gatherv " + what);
  results.expect(gathered, expected, "gatherv " + what);

  Buffer<int> scattered = turns.array();
  for (int peer = 0; at_root && peer < size; ++peer) turns.send(scattered, root, peer, peer);
  expected = scattered;
  turns.receive(expected, root, rank, rank);
  results.succeeds(
      scatterv(form, turns.sent(scattered), turns.counts.data(), turns.at.data(), MPI_INT,
               turns.received(scattered, rank), count, MPI_INT, root, MPI_COMM_WORLD),
      "scatterv " + what);
  results.expect(scattered, expected, "scatterv " + what);
}

/// As uneven_all_to_alls(), with a datatype for each peer: ints, every second int, or all ints as
/// one element. What is sent as one kind may be received as another.
void all_to_alls_of_datatypes(Results& results, const Call& call, int rank, int size) {
  const auto [form, count, root, in_place] = call;
  const auto what = call.text();
  const auto amount = [&, count = count, in_place = in_place](int source, int destination) {
    return in_place ? uneven(count, std::min(source, destination), std::max(source, destination))
                    : uneven(count, source, destination);
  };
  MPI_Datatype spread;
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread);
  MPI_Type_commit(&spread);
  /// Blocks at displacements in bytes; the numbers of their ints in memory.
  struct Blocks {
    std::vector<int> counts, at, displs, ints;
    std::vector<MPI_Datatype> types;
    std::vector<bool> own, spread;
    int end = 0;
  };
  const auto blocks = [&](int shift, const auto& ints_of) {
    Blocks all;
    for (int peer = 0; peer < size; ++peer) {
      const int ints = ints_of(peer), kind = (rank + 2 * peer + shift) % 3;
      MPI_Datatype type = kind == 1 ? spread : MPI_INT;
      if (kind == 2) {
        MPI_Type_contiguous(ints, MPI_INT, &type);
        MPI_Type_commit(&type);
      }
      all.own.push_back(kind == 2);
      all.spread.push_back(kind == 1);
      all.types.push_back(type);
      all.counts.push_back(kind == 2 ? 1 : ints);
      all.ints.push_back(ints);
      all.at.push_back(all.end + 1);
      all.displs.push_back(all.at.back() * static_cast<int>(sizeof(int)));
      all.end = all.at.back() + (kind == 1 ? 2 * ints : ints);
    }
    return all;
  };
  const auto put = [&](Buffer<int>& buffer, const Blocks& of, int peer, int source,
                       int destination) {
    for (int i = 0; i < of.ints[peer]; ++i)
      buffer[of.at[peer] + (of.spread[peer] ? 2 * i : i)] = element(source, destination, i);
  };
  Blocks from = blocks(0, [&](int peer) { return amount(peer, rank); });
  Blocks to = blocks(1, [&](int peer) { return amount(rank, peer); });
  Buffer<int> mine(in_place ? 0 : to.end), all(from.end), expected(all);
  for (int peer = 0; peer < size; ++peer) {
    put(in_place ? all : mine, in_place ? from : to, peer, rank, peer);
    put(expected, from, peer, peer, rank);
  }
  results.succeeds(
      alltoallw(form, in_place ? MPI_IN_PLACE : mine.data(), in_place ? nullptr : to.counts.data(),
                in_place ? nullptr : to.displs.data(), in_place ? nullptr : to.types.data(),
                all.data(), from.counts.data(), from.displs.data(), from.types.data(),
                MPI_COMM_WORLD),
      what);
  results.expect(all, expected, what);
  for (Blocks* each : {&from, &to})
    for (int peer = 0; peer < size; ++peer)
      if (each->own[peer]) MPI_Type_free(&each->types[peer]);
  MPI_Type_free(&spread);
}

/// Nobody leaves before everybody has come: each rank writes the number of the barrier it comes to
/// into memory that all can read.
void barriers(Results& results, int rank, int size) {
  MPI_Win window;
  std::atomic<int>* arrived;
  MPI_Win_allocate_shared(rank == 0 ? size * sizeof *arrived : 0, sizeof *arrived, MPI_INFO_NULL,
                          MPI_COMM_WORLD, &arrived, &window);
  MPI_Aint bytes;
  int unit;
  MPI_Win_shared_query(window, 0, &bytes, &unit, &arrived);
  arrived[rank] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  int number = 0;
  for (Form form : forms)
    for (int late = 0; late < size; ++late) {
      if (rank == late) usleep(1000);
      arrived[rank] = ++number;
      results.succeeds(barrier(form, MPI_COMM_WORLD), "barrier");
      for (int peer = 0; peer < size; ++peer)
        results.expect(arrived[peer] >= number, true,
                       "rank " + std::to_string(peer) + " was at the barrier");
    }
  MPI_Win_free(&window);
}

}  // namespace

void movement(Suite& suite) {
  // Open MPI 4.1 does not end where some of the counts are zero.
  constexpr auto openmpi_does_not_end = [](const Call& call) {
    return mpi_library == MpiLibrary::openmpi && call.form == Form::nonblocking && call.in_place;
  };
  constexpr Check checks[] = {
      {"bcast", true, broadcasts},
      {"gather", true, gathers},
      {"gatherv", true, uneven_gathers},
      {"scatter", true, scatters},
      {"scatterv", true, uneven_scatters},
      {"allgather", false, all_gathers},
      {"allgatherv", false, uneven_all_gathers},
      {"alltoall", false, all_to_alls},
      {"alltoallv", false, uneven_all_to_alls, openmpi_does_not_end},
      {"interleaved", false, interleaved},
      // Open MPI 4.1 takes it for a call in place, MPICH refuses it.
      {"interleaved_at_one_address", false, interleaved_at_one_address,
       [](const Call&) { return true; }},
      {"interleaved_at_root", true, interleaved_at_root},
      // Nor here; MPICH 4.0 mixes up data of two layouts.
      {"alltoallw", false, all_to_alls_of_datatypes,
       [](const Call& call) { return !blocks(call.form) && call.in_place; }},
  };
  for (const Check& check : checks) run_calls(suite, "movement", check);
  suite.run("movement/barrier",
            [&](Results& results) { barriers(results, suite.rank(), suite.size()); });
}

}  // namespace dropin
