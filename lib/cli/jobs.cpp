#include "jobs.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "baton/schedule/text.hpp"
#include "commands.hpp"

namespace baton::cli {
namespace {

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

/// Bytes, with an error that names the option.
std::int64_t bytes_of(const char* option, std::string_view text) {
  try {
    return parse_bytes(text);
  } catch (const Error& error) {
    refuse(fmt::format("{}: {}", option, error.what()));
  }
}

Datatype type_of(const RunOptions& options) {
  return options.type.empty() ? Datatype::f32 : datatype_named(options.type);
}
OpKind op_of(const RunOptions& options) {
  return options.op.empty() ? OpKind::sum : op_named(options.op);
}

std::vector<Schedule> schedules_of(const RunOptions& options) {
  return parse(file_text(options.schedule), options.schedule);
}

std::vector<Job> sized_jobs(const RunOptions& options, int ranks) {
  const auto sizes = sizes_named(options.bytes);
  std::vector<Job> jobs;
  for (const Collective c :
       collectives_named(options.collective.empty() ? "all_reduce" : options.collective)) {
    for (Exercise& exercise :
         sized_exercises(c, ranks, sizes, type_of(options), op_of(options), options.root)) {
      jobs.push_back({"", {std::move(exercise)}});
    }
  }
  return jobs;
}

}  // namespace

std::vector<std::int64_t> sizes_named(const std::string& text, int factor) {
  const auto colon = text.find(':');
  const std::int64_t first = bytes_of("--bytes", text.substr(0, colon));
  if (colon == std::string::npos) return {first};
  const std::int64_t last = bytes_of("--bytes", text.substr(colon + 1));
  if (first < 1 || last < first) {
    refuse(fmt::format("--bytes: expected FIRST:LAST with 1 <= FIRST <= LAST, found \"{}\"", text));
  }
  std::vector<std::int64_t> sizes;
  for (std::int64_t bytes = first; bytes <= last; bytes *= factor) sizes.push_back(bytes);
  return sizes;
}

std::vector<Collective> collectives_named(const std::string& text) {
  if (text != "all") return {collective_named(text)};
  std::vector<Collective> all;
  for (int c = 0; c < collective_count; ++c) all.push_back(static_cast<Collective>(c));
  return all;
}

std::vector<Exercise> sized_exercises(Collective collective, int ranks,
                                      const std::vector<std::int64_t>& sizes, Datatype type,
                                      OpKind op, int root) {
  const auto type_bytes = static_cast<std::int64_t>(size_of(type));
  std::vector<Exercise> exercises;
  for (const std::int64_t bytes : sizes) {
    const std::int64_t elements = bytes == 0 ? 0 : std::max<std::int64_t>(1, bytes / type_bytes);
    Exercise exercise = flat_exercise(collective, ranks, elements, type, op, root);
    if (!exercises.empty() && exercises.back().problem.count == exercise.problem.count) continue;
    exercise.asked = bytes;
    exercises.push_back(std::move(exercise));
  }
  return exercises;
}

std::optional<std::int64_t> segment_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return bytes_of("--segment", text);
}

Options library_options(bool check) {
  Options library = Options::from_environment();
  if (check) library.check = true;
  if (std::getenv("BATON_TIMEOUT") == nullptr) library.timeout = std::chrono::seconds(60);
  return library;
}

void add_trace_option(CLI::App& sub, std::string& file) {
  sub.add_option("--trace", file,
                 "record the times of all messages of the library; `baton timeline --from FILE`\n"
                 "draws them (BATON_TRACE=FILE)")
      ->type_name("FILE");
}

void stop_recording(Communicator& communicator) {
  if (communicator.recording()) communicator.stop_recording(communicator.options().trace);
}

void add_run_options(CLI::App& sub, RunOptions& options) {
  auto* collective =
      sub.add_option(
             "collective", options.collective,
             "such as all_reduce (the default), or all; with --workload: instead of its own")
          ->type_name("");
  auto* algorithm =
      sub.add_option("--algorithm", options.measure.algorithm,
                     "by name, or all that serve the problem (default: the library chooses)")
          ->type_name("A");
  auto* bytes =
      sub.add_option("--bytes", options.bytes,
                     "size of the whole vector, as nccl-tests counts it: one, or FIRST:LAST,\n"
                     "doubling (default 8:64M)")
          ->type_name("SIZE");
  sub.add_option("--dtype", options.type,
                 "i8 u8 i32 u32 i64 u64 f8e4m3 f8e5m2 f16 bf16 f32 f64 (default f32)")
      ->type_name("TYPE");
  sub.add_option(
         "--op", options.op,
         "sum avg prod min max, and for integers logical_and logical_or logical_xor bit_and\n"
         "bit_or bit_xor (default sum)")
      ->type_name("OP");
  auto* root = sub.add_option("--root", options.root, "(default 0)")
                   ->type_name("R")
                   ->check(whole_number(0, INT32_MAX));
  sub.add_option("--ranks", options.ranks,
                 "threads to run as ranks (default 4); under mpirun, its own")
      ->type_name("N")
      ->check(whole_number(1, 4096));
  auto* segment =
      sub.add_option("--segment", options.segment,
                     "bytes per message piece; 0: not cut (default: the library chooses)")
          ->type_name("S");
  sub.add_option("--iters", options.measure.iterations,
                 "timed runs (default: as fit into 0.1 s, 2 to 1000)")
      ->type_name("N")
      ->check(whole_number(1, 1'000'000'000));
  sub.add_option("--warmup", options.measure.warmup, "runs before them (default 1)")
      ->type_name("N")
      ->check(whole_number(0, 1'000'000'000));
  auto* in_place =
      sub.add_flag("--in-place", options.measure.in_place,
                   "input and output are the same memory (tensors with dimensions stay\n"
                   "apart; the built-in runs out of place)");
  auto* workload =
      sub.add_option("--workload", options.workloads,
                     "sizes and shapes from a file, or of a model: gpt2-small,\n"
                     "ulysses-32-heads (format: share/baton/workloads/README.md); may\n"
                     "be repeated")
          ->type_name("FILE")
          ->allow_extra_args(false)
          ->excludes(bytes);
  sub.add_flag("--each", options.each,
               "a row for each size of a workload, not one for all of them");
  sub.add_option("--schedule", options.schedule,
                 "instead, a schedule of your own, which is proved first (format:\n"
                 "lib/schedule/README.md)")
      ->type_name("FILE")
      ->excludes(collective)
      ->excludes(algorithm)
      ->excludes(bytes)
      ->excludes(workload)
      ->excludes(segment)
      ->excludes(root)
      ->excludes(in_place);
  sub.add_flag("--check", options.check,
               "compare every call among the ranks first (BATON_CHECK=1)");
  sub.add_option("--delays", options.delays, "delay messages at random, by this seed; threads only")
      ->type_name("SEED")
      ->check(whole_number(0, INT64_MAX));
  sub.add_option(
         "--hosts", options.hosts,
         "threads as if on several hosts: 2x4 is 2 hosts of 4 ranks each, 0,1,0,1 the host\n"
         "of each rank")
      ->type_name("HOSTS");
  add_trace_option(sub, options.trace);
  sub.add_option("--prove", options.prove, "first prove these algorithms for 1 to N ranks")
      ->type_name("N")
      ->check(whole_number(1, 4096));
  sub.add_flag("--progress", options.progress, "show progress even where stderr is no terminal");
  sub.add_flag("--json", options.json, "print JSON: one object, rows as in the table");
}

int ranks_for(const RunOptions& options, int launched) {
  int ranks = launched > 0 ? launched : options.ranks;
  if (launched > 0 && options.ranks > 0 && options.ranks != launched) {
    refuse(fmt::format("--ranks: expected the {} ranks of the launcher, found {}", launched,
                       options.ranks));
  }
  if (launched > 0 && (options.delays != 0 || !options.hosts.empty())) {
    refuse(fmt::format("--{}: expected ranks that are threads, found processes of MPI",
                       options.delays != 0 ? "delays" : "hosts"));
  }
  if (!options.hosts.empty()) {
    const int size = parse_hosts(options.hosts).size();
    if (ranks > 0 && ranks != size) {
      refuse(
          fmt::format("--hosts: expected the hosts of {} ranks, found those of {}", ranks, size));
    }
    ranks = size;
  }
  if (!options.schedule.empty()) {
    const int size = schedules_of(options).at(0).size();
    if (ranks > 0 && ranks != size) {
      refuse(fmt::format("{}: expected a schedule for {} ranks, found one for {}", options.schedule,
                         ranks, size));
    }
    ranks = size;
  }
  return ranks > 0 ? ranks : 4;
}

ThreadOptions thread_options(const RunOptions& options) {
  ThreadOptions threads;
  threads.seed = options.delays;
  if (options.hosts.empty()) return threads;
  const Hosts hosts = parse_hosts(options.hosts);
  threads.hosts.assign(hosts.of().begin(), hosts.of().end());
  return threads;
}

std::vector<Job> jobs_for(const RunOptions& options, int ranks) {
  if (!options.schedule.empty()) {
    return {{"", {schedule_exercise(schedules_of(options), type_of(options), op_of(options))}}};
  }
  if (options.workloads.empty()) return sized_jobs(options, ranks);
  WorkloadOverrides overrides;
  if (!options.collective.empty()) overrides.collectives = collectives_named(options.collective);
  overrides.has_type = !options.type.empty();
  overrides.type = type_of(options);
  overrides.has_op = !options.op.empty();
  overrides.op = op_of(options);
  overrides.root = options.root;
  std::vector<Job> jobs;
  for (const std::string& file : options.workloads) {
    for (Job& job : parse_workload(workload_text(file), file, ranks, overrides)) {
      jobs.push_back(std::move(job));
    }
  }
  if (jobs.empty()) {
    refuse(fmt::format("expected a workload with data for {}, found none", options.collective));
  }
  return jobs;
}

}  // namespace baton::cli
