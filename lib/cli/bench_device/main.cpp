// The program `baton-bench-device`, which `baton bench --device` becomes: `baton` itself needs no
// CUDA. Its arguments and exit codes are those of `baton bench`.

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "baton/cuda.hpp"
#include "baton/cuda_runtime.hpp"
#include "benchmark.hpp"

namespace {

using namespace baton;
using namespace baton::cli;
using namespace baton::cli::bench_device;

Gpu gpu(int ordinal) {
  return {cuda_device(ordinal),
          [ordinal] {
            const cuda::CurrentDevice current(ordinal);
            cudaStream_t stream = nullptr;
            cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                        "making a stream");
            return static_cast<Stream>(stream);
          },
          [](Stream stream) { cudaStreamDestroy(static_cast<cudaStream_t>(stream)); }};
}

int gpus_here() {
  int gpus = 0;
  try {
    gpus = cuda_devices();
  } catch (const Error& error) {
    throw Error(error.code, fmt::format("--device cuda: {}", error.what()));
  }
  if (gpus == 0) {
    throw Error(ErrorCode::unsupported, "--device cuda: expected a CUDA device, found none");
  }
  return gpus;
}

Setup setup_for(World& world, bool processes, int ranks_given) {
  Setup setup;
  int gpus = 0;
  world.together([&] { gpus = gpus_here(); });
  setup.ranks = processes ? world.size() : ranks_given > 0 ? ranks_given : std::max(gpus, 2);
  world.together([&] {
    for (int i = 0; world.rank() == 0 && i < std::min(gpus, setup.ranks); ++i) {
      setup.gpus.push_back(gpu(i));
    }
  });
  if (!processes) {
    setup.peer = [ranks = setup.ranks](Transport&, const Gpu&) -> std::unique_ptr<PeerLibrary> {
      throw Error(ErrorCode::unsupported,
                  fmt::format("expected a process for each rank (mpirun -n {} baton bench --device "
                              "cuda), found threads of one",
                              ranks));
    };
    return setup;
  }
  const std::vector<int>& hosts = world.hosts();
  const auto own = hosts.begin() + world.rank();
  const auto local = static_cast<int>(std::count(hosts.begin(), own, *own));
  const auto ranks_here = std::count(hosts.begin(), hosts.end(), *own);
  const bool shared = world.max(ranks_here > gpus ? 1 : 0) > 0;  // on any host
  world.together([&] { setup.own = gpu(local % gpus); });
  setup.peer = nccl_library;
  setup.way = shared ? "NCCL over its network, several ranks on one GPU" : "NCCL, a GPU a rank";
  // Before NCCL is first called: it takes ranks on one GPU only for those of different hosts.
  if (shared) setenv("NCCL_HOSTID", fmt::format("baton-{}", world.rank()).c_str(), 0);
  return setup;
}

int benchmark(const bench::BenchOptions& options, Launch& launch) {
  if (options.device.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "expected --device cuda (baton bench runs this program), found none");
  }
  check_device(options, launch);
  const bool processes = launch.processes() > 0;
  int code = 0;
  on_ranks(launch, 1, {}, [&](World& world) {
    code = bench_on(world, setup_for(world, processes, options.data.ranks), options);
  });
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  CommandLine program("baton", "The benchmark of `baton bench --device`.");
  bench::add_bench(program, benchmark);
  return program.main(argc, argv);
}
