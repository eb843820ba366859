#include <fmt/core.h>

#include <optional>
#include <utility>

#include "baton/schedule/text.hpp"
#include "baton/verify.hpp"
#include "baton/version.hpp"
#include "cli/commands.hpp"
#include "cli/common/collective_options.hpp"
#include "cli/common/text.hpp"
#include "cli/verify/proofs.hpp"
#include "options.hpp"
#include "report.hpp"

namespace baton::cli::run {
namespace {

using measure::Side;

/// The algorithms of `registry` to run a case with: names, or "" for the library's choice. Empty
/// where no algorithm of the collective has the name, or all refuse.
std::vector<std::string> algorithms_for(const Case& subject, const Registry& registry,
                                        const std::string& name) {
  if (name.empty() || subject.schedules) return {""};
  std::vector<std::string> names;
  for (const Algorithm* algorithm : registry.of(subject.collective())) {
    if (name == "all" ? refusal(*algorithm, subject.problem).empty() : algorithm->name == name) {
      names.push_back(algorithm->name);
    }
  }
  return names;
}

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
      for (Case& subject : job.cases) subject.problem.hosts = communicator_.hosts();
      names_.push_back(algorithms_for(job.cases[0], registry(), options_.data.algorithm));
      total_ += static_cast<std::int64_t>(names_.back().size() * job.cases.size());
    }
    if (total_ == 0) named_algorithms();  // says which exist
    progress_.emplace(total_, options_.progress, speaks_);
  }

  /// `head` stands above the first row.
  Outcome run(const Table& table, std::string head) {
    head_ = std::move(head);
    if (options_.prove > 0) prove_algorithms();
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      if (!names_[j].empty()) run_job(jobs_[j], names_[j], table);
    }
    for (const Row& row : outcome_.rows) {
      outcome_.checks += row.checks;
      outcome_.wrong += row.wrong;
    }
    progress_->clear();
    stop_recording(communicator_);
    return std::move(outcome_);
  }

 private:
  const Registry& registry() const { return communicator_.registry(); }
  std::vector<const Algorithm*> named_algorithms() const {
    std::vector<Collective> collectives;
    for (const Job& job : jobs_) collectives.push_back(job.cases[0].collective());
    const std::string& name = options_.data.algorithm;
    return verify::algorithms_named(registry(), collectives, name == "all" ? "" : name);
  }

  void prove_algorithms() {
    const auto algorithms = named_algorithms();
    const auto tasks = verify::proof_tasks(algorithms, options_.prove);
    std::vector<verify::ProofTask> own;  // ranks share the work
    for (std::size_t i = static_cast<std::size_t>(world_.rank()); i < tasks.size();
         i += static_cast<std::size_t>(world_.size())) {
      own.push_back(tasks[i]);
    }
    std::vector<proving::SweepResult> results;
    world_.together([&] {
      results = verify::prove(own, 1, [&](std::int64_t, const verify::ProofTask& task) {
        progress_->show(done_,
                        fmt::format("proving {} {} for {} ranks", name(task.algorithm->collective),
                                    task.algorithm->name, task.ranks));
      });
    });
    proving::SweepResult sum;
    for (proving::SweepResult& result : results) sum += std::move(result);
    outcome_.proved = algorithms.size();
    outcome_.proofs = world_.sum(sum.proofs);
    outcome_.failures = world_.sum(static_cast<std::int64_t>(sum.findings.size()));
    outcome_.first_failure =
        world_.first(sum.findings.empty() ? std::string() : verify::text_of(sum.findings[0]));
    if (outcome_.first_failure.empty() || !speaks_ || options_.json) return;
    progress_->clear();
    fmt::print("# {}\n", outcome_.first_failure);
  }

  void run_job(const Job& job, const std::vector<std::string>& names, const Table& table) {
    std::vector<Row> rows;
    for (const Case& subject : job.cases) {
      const auto sides = measured(subject, names);
      const bool built_in = sides.size() > names.size();
      done_ += static_cast<std::int64_t>(names.size());
      const std::string row_name =
          options_.each && !subject.name.empty() ? job.name + " " + subject.name : job.name;
      for (std::size_t a = 0; a < names.size(); ++a) {
        const Row row =
            row_of(row_name, subject, sides[a], built_in ? sides.back().samples.at(0) : -1);
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

  /// Checks and times the case: a side for each algorithm, then one for the transport's own
  /// collective where it has one. Each has one sample.
  ///
  /// Each algorithm is run on exact values (or any bits, where data only moves), every result
  /// compared with the reference: the built-in's, or one computed from all inputs; then, where
  /// reductions round, on random ones. Results that all ranks share must be the same bits on all of
  /// them, and the same again after the timed runs.
  std::vector<Side> measured(const Case& subject, const std::vector<std::string>& names) {
    const CollectiveOptions& data = options_.data;
    std::optional<measure::CaseRunner> runner;
    world_.together([&] { runner.emplace(communicator_, subject, data.in_place); });
    std::vector<Side> sides;
    for (const std::string& name : names) {
      sides.push_back(own_side(world_, *runner, {name, data.segment_bytes()}));
    }
    const auto before = [&](const Side& side) {
      progress_->show(done_, fmt::format("{} by {}", subject.text(), side.algorithm));
    };
    measure::Checker checker(world_, subject, *runner);
    for (const measure::Fill fill : checker.fills()) {
      const measure::Reference reference = checker.reference(fill);
      for (Side& side : sides) {
        before(side);
        checker.check(side.check, side.run, reference);
      }
    }
    auto built_ins = built_in_sides(world_, subject, *runner, Entry::library);
    if (!built_ins.empty()) sample_alone(built_ins[0], options_.warmup, options_.iterations);
    const bool in_place = world_.sum(runner->aliased() ? 1 : 0) > 0;
    for (Side& side : sides) {
      before(side);
      world_.together([&] { runner->reset(); });
      sample_alone(side, options_.warmup, options_.iterations);
      // In place, on all ranks or at the root, each run began with the result of the last.
      if (!in_place) checker.recheck(side.check);
    }
    if (!built_ins.empty()) sides.push_back(std::move(built_ins[0]));
    for (Side& side : sides)
      side.run = nullptr, side.seconds = nullptr;  // they end with the runner
    return sides;
  }

  void print(std::vector<Row>& rows, const Table& table) {
    progress_->clear();
    if (speaks_ && !options_.json) fmt::print("{}", std::exchange(head_, {}));
    for (Row& row : rows) {
      if (speaks_ && !options_.json) fmt::print("{}", line_of(table, row));
      outcome_.rows.push_back(std::move(row));
    }
    if (speaks_) std::fflush(stdout);
    rows.clear();
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

std::string head_of(const Table& table, const Launch& launch, int ranks, bool built_in) {
  return fmt::format(
      "# baton {}, {} ranks, {}\n"
      "# size: of the whole vector; time: of the slowest rank; busbw: as in nccl-tests{}\n{}",
      version(), ranks, launch.transport(), built_in ? "; ratio: built-in's time / ours" : "",
      table.head());
}

/// What is wrong with the schedules of a user, which it prints unless JSON is wanted. Where their
/// own order is right for buffered sends only, takes the order of their data if that is right for
/// any.
std::vector<Finding> flaws_of(std::vector<Job>& jobs, const RunOptions& options, bool speaks) {
  for (Job& job : jobs) {
    auto& schedules = job.cases[0].schedules;
    if (!schedules) continue;
    ProvedSchedules result;
    if (options.data.msccl.empty()) {
      result.proof = baton::verify(*schedules, problems_of(*schedules));
    } else {
      result = proved_for_any_sends(*schedules);
    }
    if (!result.in_order_of_data.empty()) {
      if (speaks && !options.json) {
        fmt::print(
            "# {}: its own order needs buffered sends; steps run as soon as their data allow\n",
            options.data.file());
      }
      schedules = std::make_shared<const std::vector<Schedule>>(std::move(result.in_order_of_data));
    }
    const Proof& proof = result.proof;
    for (const Finding& finding : proof.findings) {
      if (speaks && !options.json)
        fmt::print("{}: {}: {}\n", options.data.file(), name(finding.flaw), finding.sentence);
    }
    if (!proof.holds()) return proof.findings;
  }
  return {};
}

/// The command line's options.
struct Task {
  Task(const RunOptions& options, int launched)
      : ranks(ranks_for(options, launched)),
        jobs(jobs_for(options, ranks)),
        library(library_of(options)),
        threads(options.data.threads()),
        table(table_for(options, jobs, launched > 0)) {
    options.data.segment_bytes();  // is right, or nothing begins
    threads.seed = options.delays;
  }
  int ranks;
  std::vector<Job> jobs;
  Options library;
  ThreadOptions threads;
  Table table;
};

int run(const RunOptions& options, Launch& launch) {
  const bool speaks = launch.rank() == 0, built_in = launch.processes() > 0;
  std::optional<Task> task;
  const auto prepare = [&] { task.emplace(options, launch.processes()); };
  if (built_in) {  // processes may be on hosts that differ in files and environment
    on_ranks(launch, 0, {}, [&](World& world) { world.together(prepare); });
  } else {
    prepare();
  }
  Outcome outcome;
  outcome.findings = flaws_of(task->jobs, options, speaks);
  if (!outcome.good()) {
    if (speaks && options.json) print_json(outcome, 0, task->ranks, launch.transport());
    return 1;
  }

  const std::string head = head_of(task->table, launch, task->ranks, built_in);
  on_ranks(launch, task->ranks, task->threads, [&](World& world) {
    Outcome own = Runner(world, options, task->library, task->jobs).run(task->table, head);
    if (world.rank() == launch.rank()) outcome = std::move(own);
  });
  if (speaks && options.json) print_json(outcome, options.prove, task->ranks, launch.transport());
  if (speaks && !options.json) print_end(outcome, options.prove, task->ranks);
  return outcome.good() ? 0 : 1;
}

}  // namespace

void add_run(CommandLine& program) {
  const auto [set, options] = program.add_command(
      "run",
      "Run collectives, check every result on every rank, and print a table as in nccl-tests.\n"
      "Under mpirun, ranks are its processes, and the MPI library's own collectives are timed,\n"
      "too; otherwise ranks are threads",
      run);
  add_options(set, *options);
  set.footer(
      "Reductions are checked twice: on numbers whose sum is exact, bit for bit against MPI's own\n"
      "result (or one computed from all inputs), and on random ones against the error bound of\n"
      "their folds. Results that ranks share must have the same bits on all ranks, and again "
      "after\n"
      "the timed runs.\n"
      "\n"
      "Examples:\n"
      "  baton run all_reduce --algorithm all --ranks 7 --bytes 1K:1M\n"
      "  mpirun -n 4 baton run all --algorithm all --workload gpt2-small\n"
      "  baton run all_to_all --workload ulysses-32-heads --each\n"
      "  baton run --schedule my_schedule.txt --dtype f64 --op max\n"
      "\n" +
      environment_help());
}

}  // namespace baton::cli::run
