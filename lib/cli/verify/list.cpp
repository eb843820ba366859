#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "baton/schedule.hpp"
#include "cli/commands.hpp"
#include "cli/common/collective_options.hpp"
#include "cli/common/text.hpp"

namespace baton::cli::verify {
namespace {

struct ListOptions {
  CollectiveOptions data = {.collective = "all"};
  bool json = false;
};

/// Why the algorithm does not serve some numbers of ranks, without the number that was found; empty
/// if it serves all.
std::string refused(const Algorithm& algorithm) {
  Problem problem;
  problem.collective = algorithm.collective;
  problem.count = 1;
  for (problem.size = 1; problem.size <= 9; ++problem.size) {
    const std::string why = refusal(algorithm, problem);
    if (!why.empty()) return why.substr(0, why.find(", found"));
  }
  return {};
}

std::string domain(const Algorithm& algorithm) {
  const std::string why = refused(algorithm);
  std::string text = why.empty() ? "any P" : why;
  if (algorithm.uneven) text += ", uneven counts";
  if (algorithm.ordered) text += ", keeps rank order";
  if (algorithm.pipelined) text += ", pipelined";
  return text;
}

Json json(const Algorithm& algorithm) {
  return Json::object({{"collective", name(algorithm.collective)},
                       {"algorithm", algorithm.name},
                       {"uneven", algorithm.uneven},
                       {"ordered", algorithm.ordered},
                       {"pipelined", algorithm.pipelined},
                       {"refuses", refused(algorithm)},
                       {"rounds", algorithm.rounds},
                       {"depth", algorithm.depth},
                       {"elements_sent", algorithm.sent},
                       {"source", algorithm.source}});
}

void print_table(const Registry& registry, const std::vector<Collective>& collectives) {
  fmt::print(
      "P ranks, on H hosts of L ranks each; r a rank; n elements: of the vector, or of a rank's "
      "block;\n"
      "Q the largest power of two up to P; S(P) the sum of k-1 over the factors k of P (4 as often "
      "as\n"
      "it divides, then 2 and odd primes), F(P) their number; R the rounds.\n"
      "Depth: messages that follow one another. Sent: elements, by the rank that sends the most, "
      "where\n"
      "P divides n. Forwarded: the op does not commute, and the root is not rank 0.\n"
      "The first algorithm of a collective is its reference.\n");
  for (const Collective collective : collectives) {
    fmt::print("\n{}\n", name(collective));
    for (const Algorithm* algorithm : registry.of(collective)) {
      fmt::print("  {:<23}rounds {}{}; sent {}\n", algorithm->name, algorithm->rounds,
                 algorithm->depth.empty() ? "" : "; depth " + algorithm->depth, algorithm->sent);
      fmt::print("  {:<23}domain {}\n", "", domain(*algorithm));
      fmt::print("  {:<23}source {}\n", "", algorithm->source);
    }
  }
}

int list(const ListOptions& options, Launch& launch) {
  const Registry registry = options.data.registry();
  const auto collectives = collectives_named(options.data.collective);
  if (launch.rank() != 0) return 0;
  if (!options.json) {
    print_table(registry, collectives);
    return 0;
  }
  std::vector<Json> rows;
  for (const Collective collective : collectives) {
    for (const Algorithm* algorithm : registry.of(collective)) rows.push_back(json(*algorithm));
  }
  print(Json(rows));
  return 0;
}

}  // namespace

void add_list(CommandLine& program) {
  const auto [set, options] = program.add_command(
      "list", "List collectives and their algorithms: domain, rounds, elements sent, and source",
      list);
  set.add("collective", options->data.collective, "only this one").form("");
  CollectiveOptionSet(set, options->data).registry();
  add_json(set, options->json, ": an array with an object for each algorithm");
  set.footer(
      "Examples:\n"
      "  baton list\n"
      "  baton list all_gather --json");
}

}  // namespace baton::cli::verify
