/// Programs of NCCL's interface, on stand-ins for devices: in one process, or in several.
///
/// Usage: nccl_test PROCESSES RANKS_OF_EACH [doctest's options]
/// The last process makes the identifiers, so that none of its ranks need be rank 0.

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>

#include "processes.hpp"
#include "support/temporary_folder.hpp"
#include "world.hpp"

namespace {

using namespace nccl_stand_in;

Layout layout;

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
  const support::TemporaryFolder folder;  // the first process's to remove
  layout.folder = folder.path();
  Processes processes(layout.processes);
  layout.process = processes.own();
  layout.identifier = [&] { return processes.identifier(layout.processes - 1); };
  layout.meet = [&] { processes.meet(); };
  return processes.run(argc - 2, argv + 2);
}
