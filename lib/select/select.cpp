#include "select.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "baton/error.hpp"
#include "baton/schedule/passes.hpp"

namespace baton::selecting {
namespace {

constexpr std::int64_t segments[] = {0, 16 << 10, 32 << 10, 128 << 10, 512 << 10, 1 << 20, 2 << 20};

/// Estimates that differ by less are hardly told apart.
constexpr double near_tie = 1.12;

std::int64_t elements_of(std::int64_t bytes, std::size_t element_bytes) {
  return bytes <= 0 ? 0
                    : std::max<std::int64_t>(1, bytes / static_cast<std::int64_t>(element_bytes));
}

}  // namespace

const Algorithm& serving(const Registry& registry, const Problem& problem,
                         const std::string& algorithm_name) {
  const Algorithm& algorithm = registry.find(problem.collective, algorithm_name);
  if (const std::string why = refusal(algorithm, problem); !why.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: algorithm {} {}", name(problem.collective), algorithm.name, why));
  }
  return algorithm;
}

std::span<const std::int64_t> segment_candidates() { return segments; }

Selection select(const Registry& registry, const Problem& problem, std::size_t element_bytes,
                 const Choice& call, const Choice& option, const TableSection* table,
                 const costs::NetworkParameters& network) {
  for (const auto& segment : {call.segment, option.segment}) {
    if (segment && *segment < 0)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: expected a segment of at least 0 bytes, found {}",
                              name(problem.collective), *segment));
  }
  const Algorithm* chosen = nullptr;
  const Choice& choice = !call.algorithm.empty() ? call : option;
  const auto named_by = [&] {
    return fmt::format("named by {}", &choice == &call ? "the caller" : "the options");
  };
  if (!choice.algorithm.empty()) {
    chosen = &serving(registry, problem, choice.algorithm);
    if (const auto segment = call.segment ? call.segment : choice.segment)
      return {chosen, *segment, named_by()};
  }
  const std::optional<std::int64_t> forced = call.segment ? call.segment : option.segment;
  // Ranks of an uneven all_to_all see different counts, so counts must not decide.
  const bool by_cost = !(problem.collective == Collective::all_to_all && problem.uneven());
  if (table && by_cost && !chosen) {
    const TuningRow* row = table->find(problem.collective, table_bytes(problem, element_bytes));
    const Algorithm* algorithm =
        row ? &registry.find(problem.collective, row->choice.algorithm) : nullptr;
    if (algorithm && refusal(*algorithm, problem).empty()) {
      return {algorithm, forced.value_or(row->choice.segment.value_or(0)),
              fmt::format("by the table, from {} B", row->from)};
    }
  }
  double least = std::numeric_limits<double>::infinity();
  Selection best;
  struct Estimate {
    Selection selection;
    double time;
  };
  std::vector<Estimate> estimates;
  for (const Algorithm* algorithm : registry.of(problem.collective)) {
    if (chosen && algorithm != chosen) continue;
    if (!refusal(*algorithm, problem).empty()) continue;
    if (!by_cost && best.algorithm) break;
    const costs::Work work = costs::work_of(*algorithm, problem, network);
    for (const std::int64_t segment : segments) {
      if (forced && segment != 0) continue;
      if (!by_cost && segment != 0) continue;
      const std::int64_t piece = forced.value_or(segment);
      if (piece == 0 && algorithm->pipelined && !forced) continue;
      const double time = costs::estimate(*algorithm, problem, element_bytes, piece, network, work);
      if (problem.hosts) estimates.push_back({{algorithm, piece, {}}, time});
      if (time < least) {
        least = time;
        best = {algorithm, piece, fmt::format("least estimate, {:.3g} us", time * 1e6)};
      }
    }
  }
  // Links between hosts serve others, too: what a shorter estimate hardly tells apart, bytes
  // decide.
  std::int64_t fewest = best.algorithm && problem.hosts ? costs::most_sent(*best.algorithm, problem)
                                                        : std::numeric_limits<std::int64_t>::min();
  for (const auto& [selection, time] : estimates) {
    if (time > least * near_tie) continue;
    const std::int64_t sent = costs::most_sent(*selection.algorithm, problem);
    if (sent >= fewest) continue;
    fewest = sent;
    best = selection;
    best.reason = fmt::format("fewest bytes of estimates near the least, {:.3g} us", time * 1e6);
  }
  if (!best.algorithm) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: expected an algorithm that serves {} ranks{}{}, found none among {}",
                    name(problem.collective), problem.size,
                    problem.uneven() ? ", uneven counts" : "",
                    problem.commutative ? "" : ", an operation that does not commute",
                    registry.of(problem.collective).size()));
  }
  if (chosen) best.reason = named_by();
  return best;
}

Schedule scheduled(const Selection& selection, const Problem& problem, std::size_t element_bytes) {
  return segmented(whole(selection, problem, element_bytes), pieces(selection, element_bytes));
}

Schedule whole(const Selection& selection, const Problem& problem, std::size_t element_bytes) {
  const std::int64_t piece = elements_of(selection.segment, element_bytes);
  if (!selection.algorithm->pipelined || piece == 0) return selection.algorithm->generate(problem);
  Problem blocks = problem;
  const std::int64_t n = (problem.count + piece - 1) / piece;
  blocks.blocks = static_cast<int>(std::clamp<std::int64_t>(n, 1, 1 << 20));
  return selection.algorithm->generate(blocks);
}

std::int64_t pieces(const Selection& selection, std::size_t element_bytes) {
  return selection.algorithm->pipelined ? 0 : elements_of(selection.segment, element_bytes);
}

}  // namespace baton::selecting
