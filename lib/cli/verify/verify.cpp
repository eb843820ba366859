#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "baton/schedule/passes.hpp"
#include "baton/verify.hpp"
#include "cli/commands.hpp"
#include "cli/common/collective_options.hpp"
#include "cli/common/text.hpp"
#include "proofs.hpp"

namespace baton::cli::verify {
namespace {

struct VerifyOptions {
  CollectiveOptions data = {.collective = "all"};
  int max_ranks = 64, threads = 0;
  int buffered = 0;
  bool fused = false, in_groups = false, json = false, progress = false;
};

constexpr std::size_t shown_findings = 10;  // of one algorithm

/// One algorithm's proofs for all numbers of ranks.
struct Total {
  const Algorithm* algorithm;
  proving::SweepResult result;
};

std::vector<Total> totals(const std::vector<const Algorithm*>& algorithms,
                          const std::vector<ProofTask>& tasks,
                          std::vector<proving::SweepResult> results) {
  std::vector<Total> totals;
  for (const Algorithm* algorithm : algorithms) totals.push_back({algorithm, {}});
  for (std::size_t i = tasks.size(); i-- > 0;) {  // few ranks first
    const auto total = std::ranges::find(totals, tasks[i].algorithm, &Total::algorithm);
    total->result += std::move(results[i]);
  }
  return totals;
}

Json json(const proving::SweepFinding& finding) {
  return Json::object({{"problem", finding.problem},
                       {"flaw", finding.flaw},
                       {"rank", finding.rank},
                       {"step", finding.step},
                       {"sentence", finding.sentence}});
}

int verify_algorithms(const VerifyOptions& options) {
  const CollectiveOptions& data = options.data;
  const Registry registry = data.registry();
  const auto algorithms =
      algorithms_named(registry, collectives_named(data.collective), data.algorithm);
  const auto tasks = proof_tasks(algorithms, options.max_ranks, data.ranks);
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int threads = options.threads > 0 ? options.threads : cores;
  Progress progress(static_cast<std::int64_t>(tasks.size()), options.progress);
  const auto show = [&](std::int64_t done, const ProofTask& task) {
    progress.show(done, fmt::format("{} {}, {} ranks", name(task.algorithm->collective),
                                    task.algorithm->name, task.ranks));
  };
  auto results =
      prove(tasks, threads, show, options.fused ? proving::Form::fused : proving::Form::plain);
  progress.clear();
  const auto all = totals(algorithms, tasks, std::move(results));

  const std::string ranks =
      data.ranks > 0 ? fmt::format("{}", data.ranks) : fmt::format("1..{}", options.max_ranks);
  proving::SweepResult sum;
  std::vector<Json> rows;
  const Table table({{"collective", -14},
                     {"algorithm", -22},
                     {"ranks", 8},
                     {"proofs", 9},
                     {"steps", 12},
                     {"messages", 12},
                     {"failures", 8}},
                    "# ", "  ");
  if (!options.json) fmt::print("{}", table.head());
  for (const auto& [algorithm, result] : all) {
    sum += result;
    if (options.json) {
      rows.push_back(Json::object({{"collective", name(algorithm->collective)},
                                   {"algorithm", algorithm->name},
                                   {"proofs", result.proofs},
                                   {"steps", result.steps},
                                   {"messages", result.messages},
                                   {"findings", mapped(result.findings, json)}}));
      continue;
    }
    fmt::print("{}", table.line(name(algorithm->collective), algorithm->name, ranks, result.proofs,
                                result.steps, result.messages, result.findings.size()));
    for (std::size_t i = 0; i < std::min(result.findings.size(), shown_findings); ++i) {
      fmt::print("    {}\n", text_of(result.findings[i]));
    }
    if (result.findings.size() > shown_findings) {
      fmt::print("    and {} more\n", result.findings.size() - shown_findings);
    }
  }
  if (options.json) {
    print(Json::object({{"ranks", ranks},
                        {"algorithms", rows},
                        {"proofs", sum.proofs},
                        {"failures", sum.findings.size()}}));
  } else {
    fmt::print("# {} for P = {}: {} over {}, {}\n", counted(all.size(), "algorithm"), ranks,
               counted(sum.proofs, "proof"), counted(sum.messages, "message"),
               counted(sum.findings.size(), "failure"));
  }
  return sum.holds() ? 0 : 1;
}

/// The sends for which the proof holds, and whatever the file does not say.
void print_semantics(const VerifyOptions& options, const std::vector<Schedule>& schedules,
                     const std::vector<Problem>& problems, bool holds) {
  if (options.buffered > 0) {
    fmt::print("# sends are buffered, up to {} of one lane from one rank to another\n",
               counted(options.buffered, "message"));
    const Proof strict = baton::verify(schedules, problems);
    fmt::print("# with synchronous sends: {}\n",
               strict.holds() ? "0 failures"
                              : fmt::format("{}: {}", name(strict.findings[0].flaw),
                                            strict.findings[0].sentence));
  } else {
    fmt::print("# sends are synchronous{}\n",
               holds ? ", so the proof holds on any transport"
                     : "; --buffered assumes a transport with buffers, such as NCCL");
  }
  if (schedules[0].collective() == Collective::program) {
    fmt::print("# messages, order and hazards alone: a program promises no values\n");
  }
}

int verify_schedule(const VerifyOptions& options) {
  const std::string& file = options.data.file();
  auto schedules = options.data.file_schedules();
  const auto problems = problems_of(schedules);
  if (options.fused) schedules = fused(schedules);
  const bool in_groups = options.fused || options.in_groups;
  const Proof proof = in_groups ? verify_fused(schedules, problems)
                                : baton::verify(schedules, problems, {options.buffered});
  const Schedule::Header& header = schedules[0].header();
  if (options.json) {
    Json all = Json::object({{"schedule", file},
                             {"collective", name(header.collective)},
                             {"algorithm", header.algorithm},
                             {"ranks", header.size},
                             {"messages", proof.messages},
                             {in_groups ? "groups" : "rounds", proof.rounds},
                             {"findings", json_of(proof.findings)}});
    if (!in_groups) {
      all["sends"] = options.buffered > 0 ? "buffered" : "synchronous";
      all["buffered_messages"] = options.buffered;
    }
    if (options.buffered > 0) {
      all["findings_with_synchronous_sends"] = json_of(baton::verify(schedules, problems).findings);
    }
    print(all);
    return proof.holds() ? 0 : 1;
  }
  for (const Finding& finding : proof.findings) {
    fmt::print("{}: {}: {}\n", file, name(finding.flaw), finding.sentence);
  }
  fmt::print("# {} {} on {}: {}", name(header.collective), header.algorithm,
             counted(header.size, "rank"), counted(proof.messages, "message"));
  if (proof.rounds >= 0) {
    fmt::print(" in {}", counted(proof.rounds, in_groups ? "fused group" : "round"));
  }
  fmt::print(", {}\n", counted(proof.findings.size(), "failure"));
  if (!in_groups) print_semantics(options, schedules, problems, proof.holds());
  return proof.holds() ? 0 : 1;
}

int verify(const VerifyOptions& options, Launch& launch) {
  if (launch.rank() != 0) return 0;
  if (options.buffered > 0 && options.data.file().empty()) {
    refuse(
        "--buffered: expected --schedule, --msccl or --goal, found none; algorithms are proved "
        "with synchronous sends, which includes any buffer");
  }
  return options.data.file().empty() ? verify_algorithms(options) : verify_schedule(options);
}

}  // namespace

void add_verify(CommandLine& program) {
  const auto [set, options] = program.add_command(
      "verify",
      "Prove schedules: every contribution exactly once, messages matched, no deadlock even with\n"
      "synchronous sends, no hazard, nothing out of bounds, rounds and elements as documented",
      verify);
  const CollectiveOptionSet data(set, options->data);
  const Option most = set.add("--max-ranks", options->max_ranks, "for 1 to N ranks (default 64)")
                          .form("N")
                          .range(1, 4096);
  const Option ranks = data.ranks("for this number of ranks only").excludes({most});
  const Option collective =
      set.add("--collective", options->data.collective, "only this one").form("C");
  const Option algorithm = data.algorithm("only this one");
  const Option registry = data.registry();
  const auto files = data.files_and_goal({most, ranks, collective, algorithm, registry});
  data.in_place(", where an --msccl FILE serves\nboth").needs(files[1]);
  const Option fused =
      set.flag("--fused,--grouped", options->fused,
               "put messages in fused groups first, and prove that each rank can run its fused\n"
               "groups one after another, as NCCL does");
  const Option in_groups =
      set.flag("--in-groups", options->in_groups,
               "the same for a FILE that already has fused groups: the messages of one round with\n"
               "no step in between")
          .needs(files[0])
          .excludes({fused});
  set.flag("--buffered", options->buffered, nccl_slots,
           fmt::format("also prove a FILE if sends end once they are in a buffer, which has room\n"
                       "for N (default {}, as NCCL) messages of one lane from one rank to another",
                       nccl_slots))
      .range(1, 1 << 20)
      .excludes({fused, in_groups});
  set.add("--threads", options->threads, "threads that prove at once (default: one per core)")
      .form("N")
      .range(1, 1024);
  add_progress(set, options->progress);
  add_json(set, options->json);
  set.footer(
      "Each algorithm is generated for many counts (even, uneven, fewer than ranks), roots, in\n"
      "place and not, whole and in segments. The last line gives the number of proofs and of\n"
      "failures.\n"
      "A FILE has at most 2^27 elements in all buffers of all ranks, after division by the\n"
      "greatest common divisor of all counts. With --goal they are the bytes of all receives and\n"
      "of each rank's longest send.\n"
      "\n"
      "Examples:\n"
      "  baton verify --max-ranks 16\n"
      "  baton verify --collective all_reduce --algorithm ring --ranks 7\n"
      "  baton verify --fused --max-ranks 17\n"
      "  baton verify --schedule my_schedule.txt\n"
      "  baton verify --msccl algorithm.xml --buffered=4");
}

}  // namespace baton::cli::verify
