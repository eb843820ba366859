#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "baton/error.hpp"
#include "baton/explain.hpp"
#include "baton/schedule/text.hpp"
#include "table.hpp"
#include "walk.hpp"

namespace baton {

using namespace explaining;

namespace {

constexpr const char* undefined = "·";

std::string word(Value value) { return value ? fmt::format("{}", *value) : undefined; }

TableCell words(const std::vector<Value>& values, std::size_t most) {
  TableCell cell;
  const std::size_t behind = values.size() > most ? most / 2 : 0;
  const std::size_t before = values.size() > most ? most - behind : values.size();
  for (std::size_t i = 0; i < before; ++i) cell.push_back(word(values[i]));
  if (before + behind < values.size())
    cell.push_back(fmt::format("({} more)", values.size() - before - behind));
  for (std::size_t i = values.size() - behind; i < values.size(); ++i)
    cell.push_back(word(values[i]));
  return cell;
}

/// The buffer of a rank's input.
Buffer source(const Schedule& schedule) {
  return schedule.header().input == 0 ? Buffer::output : Buffer::input;
}

/// The range of the input in `source`: all of it. In an in-place gather or all_gather with even
/// blocks, the rank's own block.
std::pair<std::size_t, std::size_t> input_range(const Schedule& schedule, std::size_t extent) {
  const auto size = static_cast<std::size_t>(schedule.size());
  const auto rank = static_cast<std::size_t>(schedule.rank());
  const bool own_block = source(schedule) == Buffer::output && gathering(schedule.collective());
  if (!own_block || extent % size != 0) return {0, extent};
  return {extent / size * rank, extent / size};
}

/// Whether the rank has any input; for example, not in a scatter, except at the root.
bool has_input(const Schedule& schedule) {
  return schedule.collective() != Collective::scatter || schedule.rank() == schedule.header().root;
}

void fill(Walk& walk, std::span<const Schedule> schedules,
          const std::vector<std::vector<double>>& given) {
  if (!given.empty() && given.size() != schedules.size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a walk-through expects the values of {} ranks, found those of {}",
                            schedules.size(), given.size()));
  }
  for (std::size_t r = 0; r < schedules.size(); ++r) {
    if (!has_input(schedules[r])) continue;
    std::vector<Value>& buffer = walk.buffer(static_cast<int>(r), source(schedules[r]));
    const auto [first, count] = input_range(schedules[r], buffer.size());
    if (!given.empty() && given[r].size() != count) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("a walk-through expects {} values of rank {}, found {}", count, r,
                              given[r].size()));
    }
    for (std::size_t i = 0; i < count; ++i) {
      buffer[first + i] =
          given.empty() ? 10 * (static_cast<double>(r) + 1) + static_cast<double>(i) : given[r][i];
    }
  }
}

/// The memory of a rank: its output, then scratch. In reductions of whole vectors, the output shows
/// the input until a result replaces it. Ranks without output show their input.
TableCell held(Walk& walk, const Schedule& schedule, std::size_t most) {
  const int rank = schedule.rank();
  const std::vector<Value>&input = walk.buffer(rank, Buffer::input),
        &output = walk.buffer(rank, Buffer::output);
  std::vector<Value> shown = output.empty() ? input : output;
  const Collective c = schedule.collective();
  if (c == Collective::all_reduce || c == Collective::reduce || c == Collective::scan) {
    for (std::size_t i = 0; i < std::min(input.size(), shown.size()); ++i) {
      if (!shown[i]) shown[i] = input[i];
    }
  }
  TableCell cell = words(shown, most);
  if (const auto& scratch = walk.buffer(rank, Buffer::scratch); !scratch.empty()) {
    cell.emplace_back("|");
    for (std::string& word : words(scratch, most)) cell.push_back(std::move(word));
  }
  return cell;
}

Holdings row(std::string label, Walk& walk, std::span<const Schedule> schedules, std::size_t most) {
  Holdings row{std::move(label), {}};
  for (const Schedule& schedule : schedules) row.ranks.push_back(held(walk, schedule, most));
  return row;
}

Holdings first_row(Walk& walk, std::span<const Schedule> schedules, std::size_t most) {
  Holdings row{"before", {}};
  for (const Schedule& schedule : schedules) {
    row.ranks.push_back(words(walk.buffer(schedule.rank(), source(schedule)), most));
  }
  return row;
}

/// For example "rank 0: fold output[0:1] = slot[0:1] + input[0:1]: 3".
std::string step_label(Walk& walk, const Schedule& schedule, std::size_t step, std::size_t most) {
  std::string label = fmt::format("rank {}: {}:", schedule.rank(), print(schedule, step));
  for (const std::string& word : words(walk.written(schedule.rank(), step), most))
    label += " " + word;
  return label;
}

/// The collective of a schedule, for example "broadcast by binomial, 4 ranks, root 1".
std::string title(const Schedule& schedule) {
  const Schedule::Header& header = schedule.header();
  std::string text(name(header.collective));
  if (!header.algorithm.empty()) text += " by " + header.algorithm;
  text += fmt::format(", {} rank{}", header.size, header.size == 1 ? "" : "s");
  if (rooted(header.collective)) text += fmt::format(", root {}", header.root);
  return text;
}

}  // namespace

std::vector<Holdings> holdings(std::span<const Schedule> schedules, const WalkThrough& how) {
  if (how.most < 2)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("a walk-through expects to show at least 2 elements, found {}", how.most));
  Walk walk(schedules, how.op);
  fill(walk, schedules, how.values);

  std::vector<Holdings> rows{first_row(walk, schedules, how.most)};
  std::set<int> rounds;
  for (const Schedule& schedule : schedules)
    for (const Step& step : schedule.steps()) rounds.insert(step.round);
  for (const int round : rounds) {
    for (const Schedule& schedule : schedules) {
      for (std::size_t i = 0; i < schedule.steps().size(); ++i) {
        if (schedule.steps()[i].round != round) continue;
        walk.run(schedule.rank(), i, [&](int r, std::size_t step) {
          const Schedule& at = schedules[static_cast<std::size_t>(r)];
          if (!how.every_step || at.steps()[step].kind == StepKind::send) return;
          rows.push_back(row(step_label(walk, at, step, how.most), walk, schedules, how.most));
        });
      }
    }
    if (!how.every_step) {
      rows.push_back(row(fmt::format("after round {}", round), walk, schedules, how.most));
    }
  }
  return rows;
}

std::string walk_through(std::span<const Schedule> schedules, const WalkThrough& how) {
  std::vector<TableRow> rows;
  for (Holdings& held : holdings(schedules, how))
    rows.push_back({std::move(held.label), std::move(held.ranks)});
  std::vector<std::string> heads;
  bool scratch = false;
  for (const Schedule& schedule : schedules) {
    heads.push_back(fmt::format("rank {}", schedule.rank()));
    scratch = scratch || schedule.header().scratch > 0;
  }
  std::string text = title(schedules[0]);
  if (reducing(schedules[0].collective())) text += fmt::format(", {}", name(how.op));
  text += "\n\n" + table(heads, rows);
  if (scratch) text += "\nBehind | stands scratch.\n";
  return text;
}

std::string in_words(const Schedule& schedule) {
  std::string text = fmt::format("{}: rank {}\n", title(schedule), schedule.rank());
  if (schedule.steps().empty()) return text + "nothing to do\n";
  for (std::size_t i = 0; i < schedule.steps().size(); ++i) {
    const Step& step = schedule.steps()[i];
    if (i == 0 || step.round != schedule.steps()[i - 1].round) {
      text += fmt::format("{}round {}: ", i == 0 ? "" : "\n", step.round);
    } else {
      text += ", ";
    }
    text += print(schedule, i);
    if (schedule.lanes() > 1) text += fmt::format(" (lane {})", step.lane);
  }
  return text + '\n';
}

}  // namespace baton
