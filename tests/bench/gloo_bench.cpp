// gloo's collectives, timed as `baton bench` times ours and MPI's, over TCP. Started once per rank,
// by a launcher of MPI or anything that sets PMI_RANK and PMI_SIZE; uses no MPI.

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/bench/report.hpp"
#include "cli/common/collective_options.hpp"
#include "cli/common/machine.hpp"
#include "gloo_world.hpp"

namespace baton::cli {
namespace {

using bench::BenchRow;

struct GlooOptions {
  CollectiveOptions data = {.bytes = "8:64M"};
  std::vector<std::string> collectives = {"broadcast", "all_reduce", "all_gather", "reduce_scatter",
                                          "all_to_all"};
  std::string store, interface = "lo", json;
  bench::ComparisonOptions comparison;
  int factor = 2, sample_ms = 5;
};

BenchRow measured(World& world, const Case& subject, const bench::ComparisonOptions& options) {
  measure::CaseBuffers buffers(world.rank(), subject, false);
  auto sides = measure::built_in_sides(world, subject, buffers, Entry::library);
  measure::Checker checker(world, subject, buffers);
  const measure::Reference reference = checker.reference(checker.fills()[0], false);
  for (measure::Side& side : sides) checker.check(side.check, side.run, reference);
  return {subject, bench::compare(std::move(sides), {}, subject, options, [] {}), 0};
}

int run(GlooOptions options) {
  GlooWorld world(launcher_rank(), std::max(1, launcher_ranks()), options.store, options.interface);
  options.comparison.seconds = options.sample_ms * 1e-3;
  std::vector<BenchRow> rows;
  std::int64_t wrong = 0;
  for (const std::string& name : options.collectives) {
    for (const Case& subject :
         sized_cases(collective_named(name), world.size(), options.data.sizes(options.factor),
                     Datatype::f32, OpKind::sum, 0)) {
      rows.push_back(measured(world, subject, options.comparison));
      wrong += rows.back().wrong();
    }
  }
  const auto hosts = world.texts(host_name());
  if (world.rank() == 0) {
    bench::JsonFile(options.json)
        .write(Json::object({{"gloo", "over TCP, interface " + options.interface},
                             {"compiler", compiler()},
                             {"processor", processor()},
                             {"ranks", world.size()},
                             {"hosts", hosts},
                             {"wrong", wrong},
                             {"rows", bench::json_of(rows)}}));
  }
  return wrong > 0 ? 1 : 0;
}

int run(int argc, char** argv) {
  GlooOptions options;
  CommandLine program("gloo_bench", "gloo's collectives over TCP, timed as by `baton bench`");
  const OptionSet set = program.options();
  const CollectiveOptionSet data(set, options.data);
  set.add("collectives", options.collectives, "of: broadcast all_reduce all_gather ...");
  set.add("--store", options.store, "an empty folder that all ranks share").required();
  set.add("--interface", options.interface, "of the network (default lo)");
  data.bytes(", as of `baton bench`");
  set.add("--factor", options.factor, "likewise");
  set.add("--pairs", options.comparison.pairs, "likewise");
  set.add("--large-pairs", options.comparison.large_pairs, "likewise");
  set.add("--sample-ms", options.sample_ms, "likewise");
  set.add("--json", options.json, "file for the results").required();
  try {
    const std::optional<int> answered = program.parse(argc, argv, launcher_rank() == 0);
    return answered ? *answered : run(options);
  } catch (const Error& error) {
    fmt::print(stderr, "gloo_bench: {}\n", error.what());
    return 2;
  }
}

}  // namespace
}  // namespace baton::cli

int main(int argc, char** argv) { return baton::cli::run(argc, argv); }
