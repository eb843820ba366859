/// A process of faulty_test.py: all ranks broadcast; then one of them fails in its way, and the
/// others write into FOLDER/RANK why their all_reduce does not complete. FOLDER/processRANK has the
/// process number of each.
///
/// With ",shrink" after the fault they then go on without it: FOLDER/shrunkRANK has their number
/// and the sum of as many ones. With ",broadcast" the others wait for a broadcast by it instead.
///
/// Usage: faulty FOLDER FAULT[,shrink|,broadcast] CULPRIT [RANK SIZE HOST:PORT]
/// By UCX where there is an address, otherwise under an MPI launcher. The processes stay until
/// they are killed.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "baton/communicator.hpp"
#include "baton/error.hpp"
#include "baton/launch.hpp"
#include "baton/ucx.hpp"

namespace {

[[noreturn]] void stay() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

void fail(const std::string& fault, std::optional<baton::Communicator>& c, std::vector<float>& x) {
  if (fault == "computes")
    for (;;) std::atomic_signal_fence(std::memory_order_relaxed);
  if (fault == "stopped") raise(SIGSTOP);
  if (fault == "killed") raise(SIGKILL);
  if (fault == "exits") _exit(0);
  if (fault == "leaves") c.reset();
  if (fault == "differs") {
    std::vector<float> y(x.size() * static_cast<std::size_t>(c->size()));
    c->all_gather(x, y);
  }
  stay();
}

/// Others see all of the file or nothing.
void write(const std::filesystem::path& folder, const std::string& name, const std::string& text) {
  const std::filesystem::path part = folder / ("part " + name);
  std::ofstream(part) << text;
  std::filesystem::rename(part, folder / name);
}

/// An error is printed here: a launcher's end of the process may wait for others.
void go_on(baton::Communicator& c, const std::filesystem::path& folder) try {
  baton::Communicator survivors = c.shrink(std::chrono::seconds(2));
  std::vector<float> ones(10000, 1);
  survivors.all_reduce(ones, baton::sum);
  write(folder, "shrunk" + std::to_string(c.rank()),
        std::to_string(survivors.size()) + " " + std::to_string(static_cast<int>(ones.back())));
} catch (const baton::Error& error) {
  std::fprintf(stderr, "faulty: rank %d did not go on: %s\n", c.rank(), error.what());
}

void run(std::unique_ptr<baton::Transport> transport, const std::filesystem::path& folder,
         std::string fault, int culprit) {
  const std::size_t comma = std::min(fault.find(','), fault.size());
  const std::string way = fault.substr(comma);
  fault.resize(comma);
  std::optional<baton::Communicator> c(std::in_place, std::move(transport));
  std::vector<float> x(1000);
  c->broadcast(x, 0);
  const int rank = c->rank();
  std::ofstream(folder / ("process" + std::to_string(rank))) << getpid() << std::endl;
  try {
    if (rank == culprit) fail(fault, c, x);
    if (way == ",broadcast") c->broadcast(x, culprit);
    c->all_reduce(x, baton::sum, {"ring", 0});
  } catch (const baton::Error& error) {
    write(folder, std::to_string(rank), error.what());
    if (way == ",shrink") go_on(*c, folder);
  }
  stay();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 7) return 2;
  try {
    const std::string folder = argv[1], fault = argv[2];
    const int culprit = std::atoi(argv[3]);
    if (argc == 7) {
      run(baton::ucx_transport(std::atoi(argv[4]), std::atoi(argv[5]), std::string(argv[6])),
          folder, fault, culprit);
    } else {
      const auto launch = baton::Launch::start(argc, argv);
      launch->run(2, [&](std::unique_ptr<baton::Transport> transport) {
        run(std::move(transport), folder, fault, culprit);
      });
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "faulty: %s\n", error.what());
    return 2;
  }
}
