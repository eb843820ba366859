#include "baton/launch.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <utility>

#include "support/ranks.hpp"

using namespace baton;

namespace {

/// Environment variables of launchers, without those that this test was started with.
class LaunchedBy {
 public:
  LaunchedBy(std::initializer_list<std::pair<const char*, const char*>> variables) {
    for (const char* name : names) unsetenv(name);
    for (const auto& [name, value] : variables) setenv(name, value, 1);
  }
  ~LaunchedBy() {
    for (const char* name : names) unsetenv(name);
  }

 private:
  static constexpr const char* names[] = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                          "PMI_RANK", "PMI_SIZE", "PMIX_RANK"};
};

std::unique_ptr<Launch> start() {
  static char name[] = "program";
  static char* arguments[] = {name, nullptr};
  int argc = 1;
  char** argv = arguments;
  return Launch::start(argc, argv);
}

}  // namespace

TEST_CASE("launchers say in the environment who a process is") {
  {
    const LaunchedBy nobody{};
    CHECK(launcher_rank() == 0);
    CHECK(launcher_ranks() == 0);
  }
  {
    const LaunchedBy openmpi{{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "3"}};
    CHECK(launcher_rank() == 2);
    CHECK(launcher_ranks() == 3);
  }
  {
    const LaunchedBy mpich{{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}};
    CHECK(launcher_rank() == 1);
    CHECK(launcher_ranks() == 4);
  }
  const LaunchedBy slurm{{"PMIX_RANK", "5"}};  // which does not say of how many
  CHECK(launcher_rank() == 5);
  CHECK(launcher_ranks() == 1);
}

TEST_CASE("without a launcher ranks are threads, any number, again and again") {
  const LaunchedBy nobody{};
  const auto launch = start();
  CHECK(launch->rank() == 0);
  CHECK(launch->processes() == 0);
  CHECK(launch->transport() == "threads");
  for (const int ranks : {1, 4}) {
    std::atomic<int> sum = 0;
    launch->run(ranks, [&](std::unique_ptr<Transport> transport) {
      Communicator world(std::move(transport), support::test_options());
      int one = 1;
      world.all_reduce(Data(&one, 1, Datatype::i32), baton::sum);
      sum += one;
    });
    CHECK(sum == ranks * ranks);
  }
}

TEST_CASE("options are those of threads, and what a rank throws is thrown on") {
  const LaunchedBy nobody{};
  const auto launch = start();
  launch->run(2,
              [](std::unique_ptr<Transport> transport) {
                CHECK(transport->capabilities().hosts == std::vector<int>{0, 1});
              },
              {.hosts = {0, 1}});
  const Error error = support::error_of([&] {
    launch->run(2, [](std::unique_ptr<Transport> transport) {
      if (transport->rank() == 1) throw Error(ErrorCode::mismatch, "expected rank 0, found 1");
    });
  });
  CHECK(error.code == ErrorCode::mismatch);
}

TEST_CASE("a launcher that has started more ranks than MPI finds is an error") {
  const LaunchedBy other{{"OMPI_COMM_WORLD_SIZE", "3"}};
  const Error error = support::error_of([] { start(); });
  CHECK(error.code == ErrorCode::unsupported);
  const std::string sentence = error.what();
  CHECK((support::holds(sentence,
                        {"expected the 3 ranks that the launcher has started, found 1: it is "
                         "not that of "}) ||
         sentence == "expected a build with MPI under an MPI launcher, found one without"));
}
