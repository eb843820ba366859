#include "baton/launch.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "baton/error.hpp"
#include "mpi_launch.hpp"

namespace baton {
namespace {

class ThreadLaunch final : public Launch {
 public:
  int rank() const override { return 0; }
  int processes() const override { return 0; }
  std::string transport() const override { return "threads"; }
  void run(int ranks, const std::function<void(std::unique_ptr<Transport>)>& body,
           const ThreadOptions& options) override {
    run_threads(ranks, body, options);
  }
  void abort(int code) override {
    std::fflush(nullptr);
    std::_Exit(code);
  }
};

}  // namespace

int launcher_rank() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    if (const char* text = std::getenv(variable)) return std::atoi(text);
  }
  return 0;
}

int launcher_ranks() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const char* text = std::getenv(variable)) return std::max(1, std::atoi(text));
  }
  return std::getenv("PMIX_RANK") != nullptr ? 1 : 0;
}

std::unique_ptr<Launch> Launch::start(int& argc, char**& argv, const LaunchOptions& options) {
  const int expected = launcher_ranks();
  if (expected == 0) return std::make_unique<ThreadLaunch>();
  std::unique_ptr<Launch> launch = launching::mpi_launch(argc, argv, options);
  if (!launch) {
    throw Error(ErrorCode::unsupported,
                "expected a build with MPI under an MPI launcher, found one without");
  }
  if (launch->processes() < expected) {
    throw Error(ErrorCode::unsupported,
                fmt::format("expected the {} ranks that the launcher has started, found {}: it is "
                            "not that of {}, with which this program was built",
                            expected, launch->processes(), launch->transport()));
  }
  return launch;
}

}  // namespace baton
