#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "baton/schedule/text.hpp"
#include "baton/verify.hpp"
#include "commands.hpp"
#include "jobs.hpp"
#include "progress.hpp"
#include "prove.hpp"
#include "report.hpp"
#include "text.hpp"

namespace baton::cli {
namespace {

/// What all ranks know when they are done.
struct Outcome {
  std::vector<Row> rows;
  std::size_t proved = 0;  // algorithms
  std::int64_t proofs = 0, failures = 0;
  std::int64_t checks = 0, wrong = 0;

  bool good() const { return wrong == 0 && failures == 0; }
};

/// One rank's part of the run. Rank 0 prints.
class Runner {
 public:
  Runner(World& world, const RunOptions& options, const Options& library, std::vector<Job> jobs)
      : world_(world),
        options_(options),
        communicator_(world.transport(), library),
        jobs_(std::move(jobs)),
        speaks_(world.rank() == 0) {
    for (Job& job : jobs_) {
      for (Exercise& exercise : job.exercises) exercise.problem.hosts = communicator_.hosts();
    }
  }

  /// `head` stands above the first row.
  Outcome run(const Table& table, std::string head) {
    head_ = std::move(head);
    plan();
    if (speaks_) progress_.emplace(total_, options_.progress);
    if (options_.prove > 0) prove_algorithms();
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      if (!names_[j].empty()) run_job(jobs_[j], names_[j], table);
    }
    for (const Row& row : outcome_.rows) {
      outcome_.checks += row.checks;
      outcome_.wrong += row.wrong;
    }
    progress_.reset();
    stop_recording(communicator_);
    return std::move(outcome_);
  }

 private:
  const Registry& registry() const { return communicator_.registry(); }

  /// Which algorithms each job runs.
  void plan() {
    for (const Job& job : jobs_) {
      names_.push_back(algorithms_for(job.exercises[0], registry(), options_.measure.algorithm));
      total_ += static_cast<std::int64_t>(names_.back().size() * job.exercises.size());
    }
    if (total_ == 0) wanted_algorithms();  // says which there are
  }
  std::vector<const Algorithm*> wanted_algorithms() const {
    std::vector<Collective> collectives;
    for (const Job& job : jobs_) collectives.push_back(job.exercises[0].collective());
    const std::string& wanted = options_.measure.algorithm;
    return algorithms_named(registry(), collectives, wanted == "all" ? "" : wanted);
  }

  void prove_algorithms() {
    const auto algorithms = wanted_algorithms();
    const auto tasks = proof_tasks(algorithms, options_.prove);
    std::vector<ProofTask> own;  // ranks share the work
    for (std::size_t i = static_cast<std::size_t>(world_.rank()); i < tasks.size();
         i += static_cast<std::size_t>(world_.size())) {
      own.push_back(tasks[i]);
    }
    std::vector<proving::SweepResult> results;
    world_.together([&] {
      results = cli::prove(own, 1, [&](std::int64_t, const ProofTask& task) {
        show(fmt::format("proving {} {} for {} ranks", name(task.algorithm->collective),
                         task.algorithm->name, task.ranks));
      });
    });
    proving::SweepResult sum;
    for (proving::SweepResult& result : results) sum += std::move(result);
    outcome_.proved = algorithms.size();
    outcome_.proofs = world_.sum(sum.proofs);
    outcome_.failures = world_.sum(static_cast<std::int64_t>(sum.findings.size()));
    const std::string first =
        world_.first(sum.findings.empty() ? std::string() : text_of(sum.findings[0]));
    if (first.empty() || !speaks_) return;
    progress_->clear();
    fmt::print("# {}\n", first);
  }

  void run_job(const Job& job, const std::vector<std::string>& names, const Table& table) {
    std::vector<Row> rows;
    for (const Exercise& exercise : job.exercises) {
      const auto before = [&](const std::string& algorithm) {
        show(fmt::format("{} by {}", exercise.text(), algorithm));
      };
      const MeasuredAll measured =
          measure(world_, communicator_, exercise, names, options_.measure, before);
      done_ += static_cast<std::int64_t>(names.size());
      const std::string row_name =
          options_.each && !exercise.name.empty() ? job.name + " " + exercise.name : job.name;
      for (std::size_t a = 0; a < names.size(); ++a) {
        const Row row =
            row_of(row_name, exercise, measured.algorithms[a], measured.built_in_seconds);
        if (options_.each || a == rows.size()) {
          rows.push_back(row);
        } else {
          add_to(rows[a], row);
        }
      }
      if (options_.each) print(rows, table);
    }
    print(rows, table);
  }

  void print(std::vector<Row>& rows, const Table& table) {
    if (speaks_) progress_->clear();
    if (speaks_ && !options_.json) fmt::print("{}", std::exchange(head_, {}));
    for (Row& row : rows) {
      if (speaks_ && !options_.json) fmt::print("{}", table.line(row));
      outcome_.rows.push_back(std::move(row));
    }
    if (speaks_) std::fflush(stdout);
    rows.clear();
  }

  void show(std::string_view what) {
    if (progress_) progress_->show(done_, what);
  }

  World& world_;
  const RunOptions& options_;
  Communicator communicator_;
  std::vector<Job> jobs_;
  bool speaks_;
  std::vector<std::vector<std::string>> names_;  // of each job's algorithms
  std::int64_t total_ = 0, done_ = 0;
  std::optional<Progress> progress_;
  std::string head_;
  Outcome outcome_;
};

Table::Columns columns_for(const RunOptions& options, const std::vector<Job>& jobs, bool built_in) {
  Table::Columns columns;
  columns.built_in = built_in;
  for (const Job& job : jobs) {
    for (const Exercise& exercise : job.exercises) {
      const std::size_t own = options.each ? exercise.name.size() + 1 : 0;
      if (!job.name.empty()) columns.name = std::max(columns.name, job.name.size() + own);
      columns.root = columns.root || exercise.problem.root != 0;
    }
  }
  return columns;
}

std::string head_of(const Table& table, const Launch& launch, int ranks, bool built_in) {
  return fmt::format(
      "# baton {}, {} ranks, {}\n"
      "# size: of the whole vector; time: of the slowest rank; busbw: as in nccl-tests{}\n{}",
      BATON_VERSION, ranks, launch.transport(), built_in ? "; ratio: built-in's time / ours" : "",
      table.head());
}

void print_end(const RunOptions& options, const Outcome& outcome, int ranks) {
  std::string proved;
  if (options.prove > 0) {
    proved =
        fmt::format("{} proved for P = 1..{} by {}, {}; ",
                    counted(static_cast<std::int64_t>(outcome.proved), "algorithm"), options.prove,
                    counted(outcome.proofs, "proof"), counted(outcome.failures, "failure"));
  }
  fmt::print("# {}{} checked on {}, {} wrong\n", proved, counted(outcome.checks, "result"),
             counted(ranks, "rank"), outcome.wrong);
}

void print_json(const RunOptions& options, const Outcome& outcome, const Launch& launch,
                int ranks) {
  std::vector<Json> rows;
  for (const Row& row : outcome.rows) rows.push_back(row.json());
  const Json proofs = Json::object({{"algorithms", outcome.proved},
                                    {"max_ranks", options.prove},
                                    {"proofs", outcome.proofs},
                                    {"failures", outcome.failures}});
  Json::object({{"baton", BATON_VERSION},
                {"transport", launch.transport()},
                {"ranks", ranks},
                {"rows", Json::array(rows)},
                {"proved", options.prove > 0 ? proofs : Json::null()},
                {"checked", outcome.checks},
                {"wrong", outcome.wrong}})
      .print();
}

/// Says what is wrong with the schedules that are to be run; whether nothing is.
bool proved(const std::vector<Job>& jobs, const std::string& file, bool speaks) {
  for (const Job& job : jobs) {
    const auto& schedules = job.exercises[0].schedules;
    if (!schedules) continue;
    const Proof proof = verify(*schedules, problems_of(*schedules));
    for (const Finding& finding : proof.findings) {
      if (speaks) fmt::print("{}: {}: {}\n", file, name(finding.flaw), finding.sentence);
    }
    if (!proof.holds()) return false;
  }
  return true;
}

/// What the command line asks for.
struct Task {
  Task(const RunOptions& options, int launched)
      : ranks(ranks_for(options, launched)),
        jobs(jobs_for(options, ranks)),
        library(library_options(options.check)),
        threads(thread_options(options)),
        table(columns_for(options, jobs, launched > 0)) {
    if (!options.trace.empty()) library.trace = options.trace;
  }
  int ranks;
  std::vector<Job> jobs;
  Options library;
  ThreadOptions threads;
  Table table;
};

int run(RunOptions options, Launch& launch) {
  const bool speaks = launch.rank() == 0, built_in = launch.processes() > 0;
  std::optional<Task> task;
  const auto prepare = [&] {
    options.measure.segment = segment_of(options.segment);
    task.emplace(options, launch.processes());
  };
  if (built_in) {  // processes may be on hosts that differ in files and environment
    on_ranks(launch, 0, {}, [&](World& world) { world.together(prepare); });
  } else {
    prepare();
  }
  if (!proved(task->jobs, options.schedule, speaks)) return 1;

  const std::string head = head_of(task->table, launch, task->ranks, built_in);
  Outcome outcome;
  on_ranks(launch, task->ranks, task->threads, [&](World& world) {
    Outcome own = Runner(world, options, task->library, task->jobs).run(task->table, head);
    if (world.rank() == launch.rank()) outcome = std::move(own);
  });
  if (speaks && options.json) print_json(options, outcome, launch, task->ranks);
  if (speaks && !options.json) print_end(options, outcome, task->ranks);
  return outcome.good() ? 0 : 1;
}

}  // namespace

void add_run(CLI::App& app, Command& command) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* sub = app.add_subcommand(
      "run",
      "Run collectives, check every result on every rank, and print the table that users of\n"
      "nccl-tests know. Under mpirun ranks are its processes and the MPI library's own "
      "collectives\n"
      "are timed beside; otherwise ranks are threads");
  add_run_options(*sub, *options);
  sub->footer(
      "Reductions are checked twice: on numbers whose sum is exact, bit for bit against MPI's own\n"
      "result (or one computed from all inputs), and on random ones against the error bound of "
      "their\n"
      "folds. Results that ranks share must be the same bits on all, and the same again after the\n"
      "timed runs.\n"
      "\n"
      "Examples:\n"
      "  baton run all_reduce --algorithm all --ranks 7 --bytes 1K:1M\n"
      "  mpirun -n 4 baton run all --algorithm all --workload gpt2-small\n"
      "  baton run all_to_all --workload ulysses-32-heads --each\n"
      "  baton run --schedule my_schedule.txt --dtype f64 --op max\n"
      "\n" +
      environment_help());
  sub->callback([options, &command] {
    command = [options](Launch& launch) { return run(*options, launch); };
  });
}

}  // namespace baton::cli
