/// Programs of NCCL's interface, on stand-ins for devices: in one process, or in several.
///
/// Usage: nccl_test PROCESSES RANKS_OF_EACH [doctest's options]
/// The last process makes the identifiers, so that none of its ranks need be rank 0.

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

#include "support/temporary_folder.hpp"
#include "world.hpp"

namespace {

using namespace nccl_stand_in;

/// In memory that all processes share.
struct Shared {
  std::array<ncclUniqueId, 64> identifiers;
  std::atomic<int> made = 0;     // identifiers
  std::atomic<int> arrived = 0;  // processes, at all meetings together
};
Shared* shared = nullptr;
Layout layout;

ncclUniqueId next_identifier() {
  static int next = 0;
  const int index = next++;
  REQUIRE(index < static_cast<int>(shared->identifiers.size()));
  ncclUniqueId& identifier = shared->identifiers[static_cast<std::size_t>(index)];
  if (layout.process == layout.processes - 1) {
    ok(ncclGetUniqueId(&identifier));
    shared->made = index + 1;
  }
  while (shared->made <= index) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return identifier;
}

void meet() {
  static int meetings = 0;
  const int all = ++meetings * layout.processes;
  ++shared->arrived;
  while (shared->arrived < all) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

TEST_CASE("nccl: every collective, in place or not, of any count") { every_collective(layout); }
TEST_CASE("nccl: every datatype and op") { every_datatype_and_op(layout); }
TEST_CASE("nccl: calls that are refused touch nothing") { refused_first(layout); }
TEST_CASE("nccl: messages in groups, to oneself, beside collectives") { messages(layout); }
TEST_CASE("nccl: a message without a group") { lone_messages(layout); }
TEST_CASE("nccl: calls in several streams of a group wait for each other") {
  several_streams(layout);
}
TEST_CASE("nccl: messages to oneself without their other side are refused") { to_oneself(layout); }
TEST_CASE("nccl: sums of scaled inputs") { scaled_sums(layout); }
TEST_CASE("nccl: sums whose factors come and go") { scalings_come_and_go(layout); }
TEST_CASE("nccl: split and shrunk communicators") { parts(layout); }
TEST_CASE("nccl: groups nest, and do nothing when a call is wrong") { groups(layout); }
TEST_CASE("nccl: an abort ends calls in flight") { aborted(layout); }
TEST_CASE("nccl: an abort overtakes calls of other threads") { overtaken(layout); }
TEST_CASE("nccl: an aborted call's scaled inputs stay until its stream has passed them") {
  scaled_inputs_outlive(layout);
}
TEST_CASE("nccl: a revoked communicator's other ranks go on in a shrunk one") { revoked(layout); }
TEST_CASE("nccl: without threads, groups are refused, and communicators end") {
  without_threads(layout);
}
TEST_CASE("nccl: without the host's memory, calls fail") { without_memory(layout); }
TEST_CASE("nccl: failures are told later, and stay") { failures(layout); }
TEST_CASE("nccl: a configuration names its communicator") { named(layout); }
TEST_CASE("nccl: wrong arguments are refused with a sentence") { wrong_arguments(layout); }
TEST_CASE("nccl: BATON_TRACE records calls") { recorded(layout); }
TEST_CASE("nccl: memory, windows, versions, configurations") { services(layout); }
TEST_CASE("nccl: a program ends with communicators left") { left_behind(layout); }

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  layout.processes = std::atoi(argv[1]);
  layout.ranks_each = std::atoi(argv[2]);
  layout.identifier = next_identifier;
  layout.meet = meet;
  const support::TemporaryFolder folder;
  layout.folder = folder.path();
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 2;
  shared = new (memory) Shared;
  std::vector<pid_t> others;
  for (int process = 1; process < layout.processes; ++process) {
    const pid_t child = fork();
    if (child == 0) {
      layout.process = process;
      others.clear();
      break;
    }
    others.push_back(child);
  }
  alarm(280);  // a hang becomes a failure
  doctest::Context context(argc - 2, argv + 2);
  int failed = context.run();
  for (const pid_t child : others) {
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) {
      std::fprintf(stderr, "expected the end of process %d, found status %d\n", child, status);
      failed = 1;
    }
  }
  // The folder is the first process's to remove.
  if (layout.process > 0) std::exit(failed);
  return failed;
}
