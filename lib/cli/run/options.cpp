#include "options.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "cli/common/text.hpp"

namespace baton::cli::run {
namespace {

std::vector<Job> sized_jobs(const CollectiveOptions& data, int ranks) {
  const auto sizes = data.sizes();
  std::vector<Job> jobs;
  for (const Collective c :
       collectives_named(data.collective.empty() ? "all_reduce" : data.collective)) {
    for (Case& subject :
         sized_cases(c, ranks, sizes, data.datatype(), data.op_kind(), data.root_rank())) {
      jobs.push_back({"", {std::move(subject)}});
    }
  }
  return jobs;
}

std::vector<Job> workload_jobs(const RunOptions& options, int ranks) {
  const CollectiveOptions& data = options.data;
  WorkloadOverrides overrides;
  if (!data.collective.empty()) overrides.collectives = collectives_named(data.collective);
  if (!data.type.empty()) overrides.type = data.datatype();
  if (!data.op.empty()) overrides.op = data.op_kind();
  if (data.root >= 0) overrides.root = data.root;
  std::vector<Job> jobs;
  for (const std::string& file : options.workloads) {
    for (Job& job : parse_workload(workload_text(file), file, ranks, overrides)) {
      jobs.push_back(std::move(job));
    }
  }
  if (jobs.empty()) {
    refuse(fmt::format("expected a workload with data for {}, found none", data.collective));
  }
  return jobs;
}

}  // namespace

void add_options(const OptionSet& set, RunOptions& options) {
  const CollectiveOptionSet data(set, options.data);
  const Option collective =
      data.collective(" (the default), or all; with --workload: replaces its own");
  const Option algorithm =
      data.algorithm("by name, or all that serve the problem (default: the library chooses)");
  const Option bytes = data.bytes(":\none, or FIRST:LAST, doubling (default 8:64M)");
  data.type();
  data.op();
  const Option root = data.root();
  data.ranks("threads to run as ranks (default 4); under mpirun, its own");
  const Option segment =
      data.segment("bytes per message piece; 0: not cut (default: the library chooses)");
  set.add("--iters", options.iterations,
          "timed runs (default: as many as fit into 0.1 s, 2 to 1000)")
      .form("N")
      .range(1, 1'000'000'000);
  set.add("--warmup", options.warmup, "runs before the timed ones (default 1)")
      .form("N")
      .range(0, 1'000'000'000);
  const Option in_place =
      data.in_place("\n(tensors with dimensions stay apart; the built-in runs out of place)");
  const Option workload = set.add("--workload", options.workloads,
                                  "sizes and shapes from a file, or of a model: gpt2-small,\n"
                                  "ulysses-32-heads (format: share/baton/workloads/README.md);\n"
                                  "may be repeated")
                              .form("FILE")
                              .one_value_each()
                              .excludes({bytes});
  set.flag("--each", options.each, "a row for each size of a workload, not one for all of them");
  const auto files = data.files({collective, algorithm, bytes, workload, segment, root},
                                ", which is\nproved first");
  in_place.excludes({files[0]});
  data.registry().excludes(files);
  set.flag("--check", options.check, "compare every call among the ranks first (BATON_CHECK=1)");
  set.add("--delays", options.delays, "delay messages at random, by this seed; threads only")
      .form("SEED")
      .range(1);
  data.hosts("threads as if on several hosts, ");
  add_trace(set, options.trace);
  set.add("--prove", options.prove, "first prove these algorithms for 1 to N ranks")
      .form("N")
      .range(1, 4096);
  add_progress(set, options.progress);
  add_json(set, options.json, ": one object, rows as in the table");
}

int ranks_for(const RunOptions& options, int launched) {
  if (launched > 0 && options.delays != 0) {
    refuse("--delays: expected ranks that are threads, found processes of MPI");
  }
  const int given = options.data.rank_count(launched);
  const std::string& file = options.data.file();
  if (file.empty()) return given;
  const bool free = launched == 0 && options.data.ranks == 0 && options.data.hosts.empty();
  const int size = options.data.file_schedules().at(0).size();
  if (!free && size != given) {
    refuse(
        fmt::format("{}: expected a schedule for {} ranks, found one for {}", file, given, size));
  }
  return size;
}

Options library_of(const RunOptions& options) {
  Options library = library_options();
  if (!options.data.registries.empty()) {
    library.registry = std::make_shared<const Registry>(options.data.registry());
  }
  if (options.check) library.check = std::max(library.check, 1);
  if (!options.trace.empty()) library.trace = options.trace;
  return library;
}

std::vector<Job> jobs_for(const RunOptions& options, int ranks) {
  const CollectiveOptions& data = options.data;
  if (!data.file().empty()) {
    return {{"", {schedule_case(data.file_schedules(), data.datatype(), data.op_kind())}}};
  }
  return options.workloads.empty() ? sized_jobs(data, ranks) : workload_jobs(options, ranks);
}

}  // namespace baton::cli::run
