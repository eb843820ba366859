#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "baton/error.hpp"
#include "baton/verify.hpp"

namespace baton {
namespace {

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

void check_headers(std::span<const Schedule> schedules) {
  if (schedules.empty()) refuse("expected the schedule of at least one rank, found none");
  const Schedule::Header& first = schedules[0].header();
  for (std::size_t r = 0; r < schedules.size(); ++r) {
    const Schedule::Header& h = schedules[r].header();
    if (h.size != static_cast<int>(schedules.size()) || h.rank != static_cast<int>(r)) {
      refuse(fmt::format("expected rank {} of {}, found rank {} of {}", r, schedules.size(), h.rank,
                         h.size));
    }
    if (h.collective != first.collective || (rooted(h.collective) && h.root != first.root)) {
      refuse(fmt::format("expected {} with root {} on rank {}, found {} with root {}",
                         name(first.collective), first.root, r, name(h.collective), h.root));
    }
  }
}

bool divides(std::span<const Schedule> schedules) {
  return std::any_of(schedules.begin(), schedules.end(), [](const Schedule& schedule) {
    return std::any_of(schedule.steps().begin(), schedule.steps().end(),
                       [](const Step& step) { return step.kind == StepKind::divide; });
  });
}

/// Elements of each rank's own block: of the buffer that is not the whole or, with one tensor for
/// input and output, its share of the whole.
std::vector<std::int64_t> own_counts(std::span<const Schedule> schedules,
                                     std::span<const Problem> problems) {
  const std::size_t size = schedules.size();
  const bool gathers = gathering(problems[0].collective);
  std::vector<std::int64_t> counts(size, -1);
  std::int64_t whole = -1, known = 0, unknown = 0;
  for (std::size_t r = 0; r < size; ++r) {
    const Schedule::Header& h = schedules[r].header();
    const bool has_whole = !rooted(h.collective) || h.rank == h.root;
    const std::int64_t large = gathers ? h.output : h.input, small = gathers ? h.input : h.output;
    if (has_whole && whole >= 0 && large != whole) {
      refuse(fmt::format("expected {} elements on rank {} as on lower ranks, found {}", whole, r,
                         large));
    }
    if (has_whole) whole = large;
    if (problems[r].aliased()) {
      ++unknown;
    } else {
      counts[r] = small;
      known += small;
    }
  }
  const std::int64_t rest = whole - known;
  if (rest < 0 || (unknown == 0 ? rest != 0 : rest % unknown != 0)) {
    refuse(
        fmt::format("expected the ranks' blocks to fill {} elements, found {} and {} blocks more",
                    whole, known, unknown));
  }
  for (std::int64_t& count : counts) {
    if (count < 0) count = rest / unknown;
  }
  return counts;
}

std::int64_t common_count(std::span<const Schedule> schedules, std::span<const Problem> problems) {
  std::int64_t common = -1;
  for (std::size_t r = 0; r < schedules.size(); ++r) {
    const Schedule::Header& h = schedules[r].header();
    std::int64_t count = problems[r].aliased() ? h.output : h.input;
    if (h.collective == Collective::barrier) count = 1;
    if (h.collective == Collective::all_to_all) {
      if (h.output % h.size != 0) {
        refuse(fmt::format("expected an output of {} equal blocks on rank {}, found {} elements",
                           h.size, r, h.output));
      }
      count = h.output / h.size;
    }
    if (common >= 0 && count != common) {
      refuse(fmt::format("expected {} elements on rank {} as on lower ranks, found {}", common, r,
                         count));
    }
    common = count;
  }
  return common;
}

}  // namespace

std::vector<Problem> problems_of(std::span<const Schedule> schedules) {
  check_headers(schedules);
  const bool average = divides(schedules);
  std::vector<Problem> problems;
  for (const Schedule& schedule : schedules) {
    const Schedule::Header& h = schedule.header();
    Problem p;
    p.collective = h.collective;
    p.size = h.size;
    p.rank = h.rank;
    p.root = h.root;
    p.in_place = h.in_place;
    p.average = average && reducing(h.collective);
    problems.push_back(p);
  }
  switch (schedules[0].collective()) {
    case Collective::program:
      break;
    case Collective::gather:
    case Collective::scatter:
    case Collective::all_gather:
    case Collective::reduce_scatter: {
      const std::vector<std::int64_t> counts = own_counts(schedules, problems);
      const bool even =
          std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) == counts.end();
      const auto blocks = even ? nullptr : Blocks::packed(counts);
      for (std::size_t r = 0; r < problems.size(); ++r) {
        problems[r].count = counts[r];
        problems[r].input_blocks = problems[r].output_blocks = blocks;
      }
      break;
    }
    default: {
      const std::int64_t count = common_count(schedules, problems);
      for (Problem& p : problems) p.count = count;
    }
  }
  return problems;
}

}  // namespace baton
