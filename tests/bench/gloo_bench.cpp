// gloo's collectives, timed as `baton bench` times ours and MPI's, over TCP. Started once per rank,
// by a launcher of MPI or anything that sets PMI_RANK and PMI_SIZE; uses no MPI.

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>

#include "cli/bench_report.hpp"
#include "cli/clock.hpp"
#include "cli/jobs.hpp"
#include "cli/machine.hpp"
#include "cli/reference.hpp"
#include "cli/sample.hpp"
#include "gloo_world.hpp"

namespace baton::cli {
namespace {

struct GlooOptions {
  std::vector<std::string> collectives = {"broadcast", "all_reduce", "all_gather", "reduce_scatter",
                                          "all_to_all"};
  std::string bytes = "8:64M", store, interface = "lo", json;
  ContestOptions contest;
  int factor = 2, sample_ms = 5;
};

std::size_t bytes_of(std::int64_t elements) {
  return static_cast<std::size_t>(elements) * sizeof(float);
}

BenchRow measure(World& world, const Exercise& exercise, const ContestOptions& options) {
  const int rank = world.rank();
  const bool data_is_output = exercise.collective() == Collective::broadcast;
  std::vector<std::byte> input(bytes_of(exercise.input_count(rank)));
  std::vector<std::byte> output(bytes_of(exercise.output_count(rank)));
  const Fill fill = reducing(exercise.collective()) ? Fill::exact : Fill::bits;
  const Values values(fill, exercise.op, exercise.type, exercise.ranks());
  if (!data_is_output) values.write(rank, 0, exercise.input_count(rank), input.data());
  const Reference reference(exercise, values, rank);

  BenchRow row{exercise, {}, 0};

  const std::vector<BuiltIn> all =
      world.built_ins(exercise, input.data(), output.data(), Entry::library);
  for (const BuiltIn& one : all) {
    Contestant side;
    side.name = one.name;
    std::fill(output.begin(), output.end(), std::byte{0xa5});
    if (data_is_output && rank == exercise.problem.root) {
      values.write(rank, 0, exercise.output_count(rank), output.data());
    }
    std::int64_t wrong = 0;
    world.together([&] {
      one.run();
      wrong = reference.wrong(output.data());
    });
    side.verdict.checks = world.size();
    side.verdict.wrong = world.sum(wrong);
    row.contest.repeats =
        std::max(row.contest.repeats, repeats_for(world, one.run, options.seconds));
    row.contest.sides.push_back(std::move(side));
  }
  const int rounds = exercise.asked >= options.large ? options.large_pairs : options.pairs;
  const int repeats = row.contest.repeats;
  const auto samples = alternate(all.size(), rounds, [&](std::size_t i) {
    return timed(world, all[i].run, repeats) / repeats;
  });
  for (std::size_t i = 0; i < all.size(); ++i) {
    row.contest.sides[i].seconds = samples[i];
    row.contest.sides[i].calls = repeats;
  }
  return row;
}

int bench(const GlooOptions& options) {
  GlooWorld world(launcher_rank(), std::max(1, launcher_ranks()), options.store, options.interface);
  ContestOptions contest = options.contest;
  contest.seconds = options.sample_ms * 1e-3;
  std::vector<Json> rows;
  std::int64_t wrong = 0;
  for (const std::string& name : options.collectives) {
    for (const Exercise& exercise : sized_exercises(collective_named(name), world.size(),
                                                    sizes_named(options.bytes, options.factor),
                                                    Datatype::f32, OpKind::sum, 0)) {
      const BenchRow row = measure(world, exercise, contest);
      wrong += row.wrong();
      rows.push_back(row.json());
    }
  }
  std::vector<Json> hosts;
  for (const std::string& host : world.texts(host_name())) hosts.emplace_back(host);
  if (world.rank() == 0) {
    std::ofstream file(options.json);
    file << Json::object({{"gloo", "over TCP, interface " + options.interface},
                          {"compiler", compiler()},
                          {"processor", processor()},
                          {"ranks", world.size()},
                          {"hosts", Json::array(hosts)},
                          {"wrong", wrong},
                          {"rows", Json::array(rows)}})
                .text()
         << '\n';
    file.close();
    if (!file) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--json: expected a file to write, found {}", options.json));
    }
  }
  return wrong > 0 ? 1 : 0;
}

int run(int argc, char** argv) {
  GlooOptions options;
  CLI::App app("gloo's collectives over TCP, timed as by `baton bench`", "gloo_bench");
  app.add_option("collectives", options.collectives, "of: broadcast all_reduce all_gather ...");
  app.add_option("--store", options.store, "an empty folder that all ranks share")->required();
  app.add_option("--interface", options.interface, "of the network (default lo)");
  app.add_option("--bytes", options.bytes, "as of `baton bench`");
  app.add_option("--factor", options.factor, "likewise");
  app.add_option("--pairs", options.contest.pairs, "likewise");
  app.add_option("--large-pairs", options.contest.large_pairs, "likewise");
  app.add_option("--sample-ms", options.sample_ms, "likewise");
  app.add_option("--json", options.json, "where to write what was measured")->required();
  CLI11_PARSE(app, argc, argv);
  try {
    return bench(options);
  } catch (const Error& error) {
    fmt::print(stderr, "gloo_bench: {}\n", error.what());
    return 2;
  }
}

}  // namespace
}  // namespace baton::cli

int main(int argc, char** argv) { return baton::cli::run(argc, argv); }
