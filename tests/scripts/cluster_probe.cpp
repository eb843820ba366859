// What MPI sees of the hosts it runs on, printed by rank 0.
//
//   cluster_probe
//       for each rank: its host's name, and how many ranks it shares memory with
//   cluster_probe BYTES SIZE
//       the seconds that each pattern takes to put BYTES, in messages of SIZE, between rank 0 and
//       each other rank: `scatter` from 0, `gather` to 0, `exchange` among all ranks at once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <vector>

namespace {

int rank, size;

void print_hosts() {
  MPI_Comm shared;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared);
  int sharing, length;
  MPI_Comm_size(shared, &sharing);
  MPI_Comm_free(&shared);
  std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
  MPI_Get_processor_name(name.data(), &length);

  std::vector<std::array<char, MPI_MAX_PROCESSOR_NAME>> names(size);
  std::vector<int> counts(size);
  MPI_Gather(name.data(), name.size(), MPI_CHAR, names.data(), name.size(), MPI_CHAR, 0,
             MPI_COMM_WORLD);
  MPI_Gather(&sharing, 1, MPI_INT, counts.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank != 0) return;
  for (int r = 0; r < size; ++r) std::cout << names[r].data() << ' ' << counts[r] << '\n';
}

// The clock of rank 0 covers all of the transfer: none begins before the broadcast, all end before
// the barrier.
void print_seconds(std::string_view pattern, int bytes, int message) {
  const auto sends = [&](int from, int to) {
    return from != to && (pattern == "exchange" || (pattern == "scatter" ? from : to) == 0);
  };
  constexpr int in_flight = 16;
  std::vector<char> data(message), landing(data.size() * size * in_flight);
  int go = 0;
  const double start = MPI_Wtime();
  MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
  for (int left = bytes / message; left > 0; left -= in_flight) {
    std::vector<MPI_Request> requests;
    for (int i = 0; i < std::min(left, in_flight); ++i) {
      for (int peer = 0; peer < size; ++peer) {
        if (sends(peer, rank)) {
          MPI_Irecv(&landing[data.size() * (peer * in_flight + i)], message, MPI_CHAR, peer, 0,
                    MPI_COMM_WORLD, &requests.emplace_back());
        }
        if (sends(rank, peer)) {
          MPI_Isend(data.data(), message, MPI_CHAR, peer, 0, MPI_COMM_WORLD,
                    &requests.emplace_back());
        }
      }
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) std::cout << pattern << ' ' << MPI_Wtime() - start << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc == 3) {
    for (const auto pattern : {"scatter", "gather", "exchange"}) {
      print_seconds(pattern, std::atoi(argv[1]), std::atoi(argv[2]));
    }
  } else {
    print_hosts();
  }
  MPI_Finalize();
}
