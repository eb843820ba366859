/// Workloads. The first byte is the number of ranks less one.

#include "cli/run/workload.hpp"

#include "target.hpp"

using namespace baton;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  fuzz::accepted([&] {
    const int ranks = data[0] + 1;
    for (const cli::run::Job& job :
         cli::run::parse_workload(fuzz::text_of(data + 1, size - 1), "workload.txt", ranks, {})) {
      for (const cli::Case& one : job.cases) {
        fuzz::require(one.problem.size == ranks && one.bytes() >= 0, "sizes are not negative");
        for (const int rank : {0, ranks - 1})
          fuzz::require(one.input_count(rank) >= 0 && one.output_count(rank) >= 0,
                        "counts are not negative");
      }
    }
  });
  return 0;
}
