#include <numeric>

#include "conformance.hpp"

// Reduce, all-reduce, both reduce-scatters and both scans, as a sum of 32-bit integers that wraps
// around. Every operation and datatype is tried in conformance_datatypes.cpp.

namespace dropin {

namespace {

using Element = std::uint32_t;

constexpr int unused_count = -7;

Element element(int rank, int i) { return static_cast<Element>(mixed(rank, i)); }

/// The sum of elements [at, at + count) over the ranks before `end`.
void fill_sum(Buffer<Element>& buffer, int at, int count, int end) {
  for (int i = 0; i < count; ++i) {
    buffer[i] = 0;
    for (int rank = 0; rank < end; ++rank) buffer[i] += element(rank, at + i);
  }
}

Buffer<Element> input(int rank, int count) {
  Buffer<Element> buffer(count);
  for (int i = 0; i < count; ++i) buffer[i] = element(rank, i);
  return buffer;
}

void reduces(Results& results, const Call& call, int rank, int size) {
  const auto [form, count, root, in_place] = call;
  const auto what = call.text();
  const bool at_root = rank == root;
  Buffer<Element> in = input(rank, count), out(at_root ? count : 0), expected(out);
  if (at_root) fill_sum(expected, 0, count, size);
  const bool here = in_place && at_root;
  results.succeeds(reduce(form, here ? MPI_IN_PLACE : in.data(),
                          here      ? in.data()
                          : at_root ? out.data()
                                    : nullptr,
                          count, MPI_UINT32_T, MPI_SUM, root, MPI_COMM_WORLD),
                   what);
  results.expect(here ? in : out, expected, what);
}

void all_reduces(Results& results, const Call& call, int rank, int size) {
  const auto [form, count, root, in_place] = call;
  const auto what = call.text();
  Buffer<Element> in = input(rank, count), out(count), expected(count);
  fill_sum(expected, 0, count, size);
  results.succeeds(
      allreduce(form, in_place ? MPI_IN_PLACE : in.data(), in_place ? in.data() : out.data(), count,
                MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD),
      what);
  results.expect(in_place ? in : out, expected, what);
  if (!in_place) results.expect(in, input(rank, count), what + ", input");
}

/// The result. In place, the data behind it stays `before`: both MPI libraries leave it as it was.
void expect_scattered(Results& results, const Buffer<Element>& found, Buffer<Element>& result,
                      Buffer<Element> before, bool in_place, const std::string& what) {
  if (!in_place) return results.expect(found, result, what);
  for (std::size_t i = 0; i < result.size(); ++i) before[i] = result[i];
  results.expect(found, before, what);
}

void reduce_scatters(Results& results, const Call& call, int rank, int size) {
  const auto [form, count, root, in_place] = call;
  const auto what = call.text();
  std::vector<int> counts(size);
  for (int peer = 0; peer < size; ++peer) counts[peer] = mixed(peer, count) % (count + 1);
  if (count > 0) counts[count % size] = 0;
  const int total = std::accumulate(counts.begin(), counts.end(), 0);
  const int at = std::accumulate(counts.begin(), counts.begin() + rank, 0);
  Buffer<Element> in = input(rank, total), out(counts[rank]), expected(out);
  fill_sum(expected, at, counts[rank], size);
  results.succeeds(
      reduce_scatter(form, in_place ? MPI_IN_PLACE : in.data(), in_place ? in.data() : out.data(),
                     counts.data(), MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD),
      what);
  expect_scattered(results, in_place ? in : out, expected, input(rank, total), in_place, what);
}

void even_reduce_scatters(Results& results, const Call& call, int rank, int size) {
  const auto [form, count, root, in_place] = call;
  const auto what = call.text();
  Buffer<Element> in = input(rank, count * size), out(count), expected(out);
  fill_sum(expected, rank * count, count, size);
  results.succeeds(reduce_scatter_block(form, in_place ? MPI_IN_PLACE : in.data(),
                                        in_place ? in.data() : out.data(), count, MPI_UINT32_T,
                                        MPI_SUM, MPI_COMM_WORLD),
                   what);
  expect_scattered(results, in_place ? in : out, expected, input(rank, count * size), in_place,
                   what);
}

template <bool exclusive>
void scans(Results& results, const Call& call, int rank, int) {
  const auto [form, count, root, in_place] = call;
  const auto what = call.text();
  Buffer<Element> in = input(rank, count), out(count), expected(count);
  if (exclusive && rank == 0) {
    if (in_place) expected = in;
  } else {
    fill_sum(expected, 0, count, exclusive ? rank : rank + 1);
  }
  const auto& collective = exclusive ? exscan : scan;
  results.succeeds(
      collective(form, in_place ? MPI_IN_PLACE : in.data(), in_place ? in.data() : out.data(),
                 count, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD),
      what);
  // The first rank's result of an exclusive scan is undefined.
  if (!(exclusive && rank == 0)) results.expect(in_place ? in : out, expected, what);
}

/// An exclusive scan whose first rank has no output: `null`, or an address within the input.
void scans_without_first(Results& results, bool null, int rank) {
  for (Form form : forms)
    for (int count : {1, 13, 1009}) {
      const auto what = std::string(name_of(form)) + ", " + std::to_string(count) + " elements";
      Buffer<Element> in = input(rank, count), out(count), expected(count);
      if (rank > 0) fill_sum(expected, 0, count, rank);
      Element* const unused = null ? nullptr : in.data() + 1;
      results.succeeds(exscan(form, in.data(), rank == 0 ? unused : out.data(), count, MPI_UINT32_T,
                              MPI_SUM, MPI_COMM_WORLD),
                       what);
      results.expect(out, expected, what);
      results.expect(in, input(rank, count), what + ", input");
    }
}

}  // namespace

void reductions(Suite& suite) {
  constexpr Check checks[] = {
      // MPICH 4.0 reads from MPI_IN_PLACE where many elements are reduced to another rank than 0.
      {"reduce", true, reduces,
       [](const Call& call) {
         return mpi_library == MpiLibrary::mpich && blocks(call.form) && call.in_place &&
                call.root != 0 && call.count > 500;
       }},
      {"allreduce", false, all_reduces},
      // MPICH 4.0 ends the program when it copies many elements within the buffer. Open MPI 4.1
      // overwrites an element on a rank whose result has none.
      {"reduce_scatter", false, reduce_scatters,
       [](const Call& call) {
         return call.in_place &&
                (mpi_library == MpiLibrary::mpich ? call.count > 10000
                                                  : call.form == Form::blocking && call.count == 1);
       }},
      // MPICH 4.0 overwrites the blocks behind the result where they are large.
      {"reduce_scatter_block", false, even_reduce_scatters,
       [](const Call& call) {
         return mpi_library == MpiLibrary::mpich && call.in_place && call.count > 10000;
       }},
      {"scan", false, scans<false>},
      {"exscan", false, scans<true>},
  };
  for (const Check& check : checks) run_calls(suite, "reductions", check);
  const auto without_first = [&](bool null) {
    return [&, null](Results& results) { scans_without_first(results, null, suite.rank()); };
  };
  suite.run("reductions/exscan, the first output in the input", without_first(false));
  // MPICH 4.0 refuses a null address.
  const std::string name = "reductions/exscan, no first output";
  if (mpi_library == MpiLibrary::mpich)
    suite.run_beyond_library(name, without_first(true));
  else
    suite.run(name, without_first(true));
}

}  // namespace dropin
