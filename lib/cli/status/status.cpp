// `baton status`: running programs, from the status pages of their ranks.

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "baton/error.hpp"
#include "cli/commands.hpp"
#include "cli/common/text.hpp"
#include "status/flight.hpp"
#include "status/page.hpp"
#include "status/service.hpp"

namespace baton::cli::status {
namespace {

using baton::status::Condition;
using baton::status::Life;
using baton::status::Operation;
using baton::status::Standing;
using Json = nlohmann::ordered_json;

struct StatusCommand {
  std::vector<int> processes;
  int operations = 0;
  std::string output;
  bool json = false;
};

struct Rank {
  Standing standing;
  Condition condition;
  bool here = true;  ///< on this machine
};

struct Ranks {
  std::vector<Rank> seen;
  std::vector<std::pair<int, Condition>> unseen = {};  ///< of other machines
  std::vector<std::byte> doors = {};                   ///< to other machines; empty: none is known
};

using Communicators = std::map<std::uint64_t, Ranks>;

/// Leaves those of jobs of which a process, or what started it, is asked for.
void select(const std::vector<int>& processes, Communicators& all) {
  std::set<std::uint64_t> chosen;
  for (const int process : processes) {
    const auto of_process = [&](const Rank& rank) {
      return baton::status::descends(rank.standing.process.pid, process);
    };
    bool any = false;
    for (const auto& [name, ranks] : all) {
      if (std::ranges::none_of(ranks.seen, of_process)) continue;
      chosen.insert(name);
      any = true;
    }
    if (!any)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("status: expected a process of this user with a communicator, or one "
                              "that started such a process, found none with number {}",
                              process));
  }
  std::erase_if(all, [&](const auto& one) { return !chosen.contains(one.first); });
}

/// Adds ranks of other machines, as far as processes there answer.
void ask_others(std::uint64_t communicator, Ranks& ranks) {
  const auto elsewhere = baton::status::Elsewhere::read(ranks.doors);
  if (!elsewhere) return;
  const std::vector<int> others = elsewhere->ranks();
  std::vector<baton::status::Finding> findings =
      elsewhere->ask({.communicator = communicator}, others);
  for (std::size_t i = 0; i < others.size(); ++i) {
    baton::status::Witness& witness = findings[i].witness;
    if (witness.standing) {
      ranks.seen.push_back({*std::move(witness.standing), witness.condition, false});
    } else {
      ranks.unseen.emplace_back(others[i], witness.condition);
    }
  }
}

/// The ranks of each communicator, by its name; those of whole jobs where one of their processes is
/// asked for.
Communicators communicators(const StatusCommand& command) {
  Communicators all;
  for (const std::string& file : baton::status::all_files()) {
    const baton::status::PeerPage page(file);
    if (!page.valid()) continue;
    Standing standing = page.read();
    const Condition condition = condition_of(standing.process, standing.thread);
    Ranks& ranks = all[standing.communicator];
    ranks.seen.push_back({std::move(standing), condition});
    if (ranks.doors.empty()) ranks.doors = baton::status::doors_beside(file);
  }
  if (!command.processes.empty()) select(command.processes, all);
  for (auto& [name, ranks] : all) {
    ask_others(name, ranks);
    std::ranges::sort(ranks.seen, {}, [](const Rank& rank) { return rank.standing.rank; });
  }
  return all;
}

/// Refuses ranks that are not of one job: those whose communicators have no process in common.
void expect_one_job(const Communicators& found) {
  using Processes = std::set<std::pair<std::uint64_t, std::int64_t>>;  // machine and number
  std::vector<Processes> jobs;
  for (const auto& [name, ranks] : found) {
    Processes its;
    for (const Rank& rank : ranks.seen)
      its.emplace(rank.standing.process.machine, rank.standing.process.pid);
    std::erase_if(jobs, [&](const Processes& job) {
      const bool same = std::ranges::any_of(its, [&](auto one) { return job.contains(one); });
      if (same) its.insert(job.begin(), job.end());
      return same;
    });
    jobs.push_back(std::move(its));
  }
  if (jobs.size() < 2) return;
  std::string numbers;
  for (const Processes& job : jobs)
    numbers += fmt::format("{}{}", numbers.empty() ? "" : ", ", job.begin()->second);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("status: -o expects the ranks of one job, found {}; name a process of "
                          "one, such as one of {}",
                          jobs.size(), numbers));
}

std::string seconds(const Standing& s, std::int64_t since_ns) {
  return fmt::format("{:.1f} s",
                     static_cast<double>(std::max<std::int64_t>(s.read_ns - since_ns, 0)) / 1e9);
}

std::string title(const Operation& operation) {
  return operation.number == 0 ? describe(operation.call)
                               : fmt::format("#{} {}", operation.number, describe(operation.call));
}

void print(const Rank& rank, int operations) {
  const Standing& s = rank.standing;
  std::string doing;
  for (const Operation& operation : s.operations)
    if (operation.under_way())
      doing += fmt::format("{}in {} for {}", doing.empty() ? "" : ", ", title(operation),
                           seconds(s, operation.begin_ns));
  if (doing.empty()) {
    const Operation* const last = s.last_complete();
    doing = last ? fmt::format("in no operation; last {}, finished {} ago", title(*last),
                               seconds(s, last->end_ns))
                 : "in no operation so far";
  }
  if (!s.waits.empty()) doing += "; " + s.waits;
  if (!s.failure.empty()) doing += "; failed: " + s.failure;
  fmt::print("  rank {}, process {}{} ({}): {}; {}\n", s.rank, s.process.pid,
             rank.here ? "" : " of another machine", s.program, doing, describe(rank.condition));
  const std::size_t shown = std::min(s.operations.size(), static_cast<std::size_t>(operations));
  for (std::size_t i = s.operations.size() - shown; i < s.operations.size(); ++i) {
    const Operation& operation = s.operations[i];
    fmt::print("    {} ago: {}, {}\n", seconds(s, operation.begin_ns), title(operation),
               operation.under_way()
                   ? std::string("under way")
                   : fmt::format("{:.1f} us",
                                 static_cast<double>(operation.end_ns - operation.begin_ns) / 1e3));
  }
}

const char* name(Life life) {
  switch (life) {
    case Life::runs:
      return "runs";
    case Life::sleeps:
      return "sleeps";
    case Life::stopped:
      return "stopped";
    case Life::ended:
      return "ended";
    default:
      return "unknown";
  }
}

Json json_of(const Rank& rank) {
  const Standing& s = rank.standing;
  Json operations = Json::array();
  for (const Operation& operation : s.operations)
    operations.push_back({{"number", operation.number},
                          {"call", describe(operation.call)},
                          {"begin_ns", operation.begin_ns},
                          {"end_ns", operation.under_way() ? Json() : Json(operation.end_ns)}});
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return {{"rank", s.rank},
          {"here", rank.here},
          {"process", s.process.pid},
          {"thread", s.thread},
          {"program", s.program},
          {"life", name(rank.condition.life)},
          {"condition", describe(rank.condition)},
          {"read_ns", s.read_ns},
          {"waits", or_null(s.waits)},
          {"blocker", s.blocker < 0 ? Json() : Json(s.blocker)},
          {"failure", or_null(s.failure)},
          {"verdict", or_null(s.verdict)},
          {"operations", operations}};
}

int status(const StatusCommand& command, Launch&) {
  const auto found = communicators(command);
  if (!command.output.empty()) {
    expect_one_job(found);
    std::vector<Standing> pages;
    for (const auto& [name, ranks] : found)
      for (const Rank& rank : ranks.seen) pages.push_back(rank.standing);
    const std::string bytes = baton::status::recording_of(pages);
    if (bytes.empty())
      throw Error(ErrorCode::invalid_argument,
                  "status: expected a running program of this user, found none");
    write_file("-o", command.output, bytes);
    return 0;
  }
  Json all = Json::array();
  for (const auto& [name, ranks] : found) {
    const Standing& first = ranks.seen.front().standing;
    if (command.json) {
      Json listed = Json::array(), unseen = Json::array();
      for (const Rank& rank : ranks.seen) listed.push_back(json_of(rank));
      for (const auto& [rank, condition] : ranks.unseen)
        unseen.push_back({{"rank", rank}, {"condition", describe(condition)}});
      all.push_back({{"communicator", fmt::format("{:016x}", name)},
                     {"label", first.label},
                     {"size", first.size},
                     {"ranks", listed},
                     {"unseen", unseen}});
      continue;
    }
    fmt::print("communicator '{}', {}{}\n", first.label,
               counted(static_cast<std::size_t>(first.size), "rank"),
               ranks.seen.size() < static_cast<std::size_t>(first.size)
                   ? fmt::format(", {} of them seen", ranks.seen.size())
                   : "");
    std::set<std::string> verdicts;  // all ranks have the same
    for (const Rank& rank : ranks.seen)
      if (!rank.standing.verdict.empty()) verdicts.insert(rank.standing.verdict);
    for (const std::string& verdict : verdicts) fmt::print("  given up: {}\n", verdict);
    for (const Rank& rank : ranks.seen) print(rank, command.operations);
    for (const auto& [rank, condition] : ranks.unseen)
      fmt::print("  rank {}: {}\n", rank, describe(condition));
  }
  if (command.json) cli::print(all);
  return 0;
}

}  // namespace

void add_status(CommandLine& program) {
  const auto [set, options] = program.add_command("status",
                                                  "Show what the ranks of running programs are in, "
                                                  "since when, and what they wait for, without\n"
                                                  "stopping them",
                                                  status);
  set.add("processes", options->processes,
          "process numbers, of mpirun or torchrun, too: show the communicators that they\n"
          "or processes that they started belong to (default: all on this machine)")
      .form("PID");
  set.add("--operations", options->operations, "and this many of the latest operations (default 0)")
      .form("N")
      .range(0, static_cast<std::int64_t>(baton::status::remembered));
  const Option output =
      set.add("-o,--output", options->output,
              "write the last operations of all ranks as a recording, for baton timeline --from")
          .form("FILE");
  add_json(set, options->json).excludes({output});
  set.footer(
      "Each rank keeps a page for each of its communicators in /dev/shm, with its last 64\n"
      "operations. Times are the machine's monotonic clock. Pages of processes that were killed\n"
      "stay until the whole job has ended. Ranks of other machines are asked, for a second, if\n"
      "the job has a timeout or BATON_INTERFACE; BATON_SECRET must be the job's.\n"
      "\n"
      "Examples:\n"
      "  baton status                    all running programs of this user\n"
      "  baton status 4711 --operations 8\n"
      "  baton status 4711 -o last.trace && baton timeline --from last.trace -o last.html\n"
      "  baton status --json");
}

}  // namespace baton::cli::status
