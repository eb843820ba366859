// What the library costs beside the MPI library's own collectives and beside hand-written messages,
// as ratios of one run. Usage: mpirun -n 2 mpi_bench [--bytes N] [--pairs N]
//
// Ours and the built-in run in turn, pair by pair; a ratio is the median over pairs of
// built-in time / our time (above 1: ours is faster), with its quartiles. Raw samples follow each
// row.

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "baton/baton.hpp"
#include "baton/mpi.hpp"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& body, int repeats) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto begin = Clock::now();
  for (int i = 0; i < repeats; ++i) body();
  double time = std::chrono::duration<double>(Clock::now() - begin).count() / repeats;
  MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return time;
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(std::lround(q * static_cast<double>(values.size() - 1)))];
}

void compare(const std::string& what, const std::function<void()>& ours,
             const std::function<void()>& theirs, int pairs, int repeats) {
  seconds_of(ours, 1 + repeats / 10);
  seconds_of(theirs, 1 + repeats / 10);
  std::vector<double> a, b, ratio;
  for (int i = 0; i < pairs; ++i) {
    a.push_back(seconds_of(ours, repeats) * 1e6);
    b.push_back(seconds_of(theirs, repeats) * 1e6);
    ratio.push_back(b.back() / a.back());
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) return;
  fmt::print("{:<44} ours {:>11.3f} us  other {:>11.3f} us  ratio {:.2f} ({:.2f} to {:.2f})\n",
             what, quantile(a, 0.5), quantile(b, 0.5), quantile(ratio, 0.5), quantile(ratio, 0.25),
             quantile(ratio, 0.75));
  fmt::print("    ours  [{:.3f}]\n    other [{:.3f}]\n", fmt::join(a, " "), fmt::join(b, " "));
  std::fflush(stdout);
}

void small_messages(baton::Communicator& comm) {
  const int rank = comm.rank();
  if (comm.size() != 2) return;
  float x[2] = {1, 2}, y[2] = {}, z[2] = {};
  const auto by_hand = [&] {
    MPI_Request requests[2];
    MPI_Irecv(z, 2, MPI_FLOAT, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(x, 2, MPI_FLOAT, 1 - rank, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    y[0] = rank == 0 ? x[0] + z[0] : z[0] + x[0];
    y[1] = rank == 0 ? x[1] + z[1] : z[1] + x[1];
  };
  const auto input = std::span<const float>(x), output = std::span<const float>(y);
  (void)output;
  const auto ours = [&] { comm.all_reduce(input, std::span<float>(y), baton::sum); };
  const auto built_in = [&] { MPI_Allreduce(x, y, 2, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); };
  compare("all_reduce 8 B against Irecv + Isend + add", ours, by_hand, 21, 20000);
  compare("all_reduce 8 B against the built-in", ours, built_in, 21, 20000);
}

void large_messages(baton::Communicator& comm, std::int64_t bytes, int pairs) {
  const int P = comm.size();
  const auto n = static_cast<std::size_t>(bytes / 4 / P * P);
  const auto part = n / static_cast<std::size_t>(P);
  std::vector<float> x(n, 1.5F), y(n, 0.5F);
  const auto count = static_cast<int>(n), share = static_cast<int>(part);
  const std::span<float> all(y), own(y.data(), part);
  const std::span<const float> in_all(x), in_own(x.data(), part);
  const std::string size = fmt::format("{} MiB", bytes >> 20);
  const int repeats = std::max<int>(1, static_cast<int>((4 << 20) / bytes));
  using baton::sum;
  compare(
      "all_reduce " + size, [&] { comm.all_reduce(in_all, all, sum); },
      [&] { MPI_Allreduce(x.data(), y.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }, pairs,
      repeats);
  compare(
      "reduce_scatter " + size, [&] { comm.reduce_scatter(in_all, own, sum); },
      [&] {
        MPI_Reduce_scatter_block(x.data(), y.data(), share, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      },
      pairs, repeats);
  compare(
      "all_gather " + size, [&] { comm.all_gather(in_own, all); },
      [&] {
        MPI_Allgather(x.data(), share, MPI_FLOAT, y.data(), share, MPI_FLOAT, MPI_COMM_WORLD);
      },
      pairs, repeats);
  compare(
      "broadcast " + size, [&] { comm.broadcast(all, 0); },
      [&] { MPI_Bcast(y.data(), count, MPI_FLOAT, 0, MPI_COMM_WORLD); }, pairs, repeats);
  compare(
      "all_to_all " + size, [&] { comm.all_to_all(in_all, all); },
      [&] { MPI_Alltoall(x.data(), share, MPI_FLOAT, y.data(), share, MPI_FLOAT, MPI_COMM_WORLD); },
      pairs, repeats);
}

/// The MPI library's parameters that were set from outside; none: its defaults.
void print_flags() {
  for (char** variable = environ; *variable; ++variable) {
    const std::string text = *variable;
    if (text.starts_with("OMPI_MCA_") || text.starts_with("MPIR_CVAR_"))
      fmt::print("    {}\n", text);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    std::vector<std::int64_t> sizes;
    int pairs = 9;
    bool small = true;
    for (int i = 1; i + 1 < argc; i += 2) {
      if (!std::strcmp(argv[i], "--bytes"))
        sizes.push_back(baton::parse_bytes(argv[i + 1])), small = false;
      if (!std::strcmp(argv[i], "--pairs")) pairs = std::stoi(argv[i + 1]);
    }
    if (sizes.empty()) sizes = {64 << 20};
    baton::Communicator comm(baton::mpi_process_transport(MPI_COMM_WORLD));
    if (comm.rank() == 0) {
      char version[MPI_MAX_LIBRARY_VERSION_STRING];
      int length = 0;
      MPI_Get_library_version(version, &length);
      fmt::print("{} ranks, {}\n", comm.size(),
                 std::string(version, static_cast<std::size_t>(length)));
    }
    if (comm.rank() == 0) print_flags();
    if (small) small_messages(comm);
    for (const std::int64_t bytes : sizes) large_messages(comm, bytes, pairs);
  }
  MPI_Finalize();
}
