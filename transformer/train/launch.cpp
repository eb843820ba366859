#include "launch.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "baton/error.hpp"
#include "baton/thread.hpp"

namespace baton::transformer {
namespace {

class ThreadLaunch final : public Launch {
 public:
  int rank() const override { return 0; }
  int ranks() const override { return 0; }
  std::string transport() const override { return "threads"; }
  void run(int ranks, const std::function<void(Communicator&)>& body) override {
    run_threads(ranks, [&](std::unique_ptr<Transport> transport) {
      Communicator world(std::move(transport));
      body(world);
    });
  }
};

/// 0 without a launcher of MPI.
int launcher_ranks() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char* text = std::getenv(variable)) return std::max(1, std::atoi(text));
  return std::getenv("PMIX_RANK") != nullptr ? 1 : 0;
}

}  // namespace

int launcher_rank() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"})
    if (const char* text = std::getenv(variable)) return std::atoi(text);
  return 0;
}

std::unique_ptr<Launch> Launch::start(int& argc, char**& argv) {
  const int expected = launcher_ranks();
  if (expected == 0) return std::make_unique<ThreadLaunch>();
  std::unique_ptr<Launch> launch = mpi_launch(argc, argv);
  if (!launch) {
    throw Error(ErrorCode::unsupported,
                "expected a build with MPI under an MPI launcher, found one without");
  }
  if (launch->ranks() < expected) {
    throw Error(ErrorCode::unsupported,
                fmt::format("expected the {} ranks that the launcher has started, found {}: it is "
                            "not that of {}, with which this program was built",
                            expected, launch->ranks(), launch->transport()));
  }
  return launch;
}

}  // namespace baton::transformer
