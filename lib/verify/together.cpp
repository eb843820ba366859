#include "together.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "baton/error.hpp"

namespace baton::proving {
namespace {

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

void check_pair(const Schedule& schedule, const Problem& problem, int rank, int size,
                const Problem& first) {
  const Schedule::Header& h = schedule.header();
  if (h.size != size || h.rank != rank) {
    refuse(fmt::format("expected the schedule of rank {} of {}, found that of rank {} of {}", rank,
                       size, h.rank, h.size));
  }
  if (problem.size != size || problem.rank != rank) {
    refuse(fmt::format("expected the problem of rank {} of {}, found that of rank {} of {}", rank,
                       size, problem.rank, problem.size));
  }
  if (h.collective != problem.collective || problem.collective != first.collective) {
    refuse(fmt::format("expected a schedule of {} on rank {}, found one of {}",
                       baton::name(first.collective), rank, baton::name(h.collective)));
  }
  if (rooted(h.collective) && (h.root != problem.root || problem.root != first.root)) {
    refuse(fmt::format("expected root {} on rank {}, found {}", first.root, rank, h.root));
  }
  if (problem.count < 0 || problem.input_rows < 1 || problem.output_rows < 1 ||
      problem.count % problem.input_rows != 0 || problem.count % problem.output_rows != 0) {
    refuse(
        fmt::format("expected a count that its rows divide on rank {}, found {} in {} and {} rows",
                    rank, problem.count, problem.input_rows, problem.output_rows));
  }
  if (problem.uneven() != first.uneven() || (!problem.uneven() && problem.count != first.count) ||
      problem.commutative != first.commutative || problem.average != first.average) {
    refuse(fmt::format(
        "expected one problem on all ranks, found another operation or count on rank {}", rank));
  }
}

void check_blocks(const Blocks* blocks, int rank, int size) {
  if (!blocks) return;
  const auto n = static_cast<std::size_t>(size);
  const auto negative = [](std::int64_t x) { return x < 0; };
  if (blocks->counts.size() != n || blocks->offsets.size() != n ||
      std::any_of(blocks->counts.begin(), blocks->counts.end(), negative) ||
      std::any_of(blocks->offsets.begin(), blocks->offsets.end(), negative)) {
    refuse(
        fmt::format("expected {} blocks on rank {}, of counts and offsets from 0 up, found others",
                    size, rank));
  }
}

/// Checks that the ranks' views of uneven blocks agree.
void check_uneven(std::span<const Problem> problems) {
  const int size = static_cast<int>(problems.size());
  for (const Problem& p : problems) {
    check_blocks(p.input_blocks.get(), p.rank, size);
    check_blocks(p.output_blocks.get(), p.rank, size);
  }
  for (const Problem& p : problems) {
    if (!p.uneven()) continue;
    if (!p.input_blocks || !p.output_blocks) {
      refuse(fmt::format("expected blocks of input and output on rank {}, found those of one",
                         p.rank));
    }
    for (int i = 0; i < size; ++i) {
      const auto r = static_cast<std::size_t>(p.rank), j = static_cast<std::size_t>(i);
      const bool pairs = p.collective == Collective::all_to_all;
      const std::int64_t sent = pairs ? p.input_blocks->counts[j] : p.output_blocks->counts[j];
      const std::int64_t expected =
          pairs ? problems[j].output_blocks->counts[r] : problems[j].count;
      if (sent != expected) {
        refuse(
            fmt::format("expected block {} of rank {} to have {} elements, as on rank {}, found {}",
                        i, p.rank, expected, i, sent));
      }
    }
  }
}

}  // namespace

void check_together(std::span<const Schedule> schedules, std::span<const Problem> problems) {
  if (schedules.empty() || schedules.size() != problems.size()) {
    refuse(fmt::format("expected as many schedules as problems, at least one, found {} and {}",
                       schedules.size(), problems.size()));
  }
  for (std::size_t r = 0; r < schedules.size(); ++r) {
    check_pair(schedules[r], problems[r], static_cast<int>(r), static_cast<int>(schedules.size()),
               problems[0]);
  }
  if (problems[0].uneven()) check_uneven(problems);
}

}  // namespace baton::proving
