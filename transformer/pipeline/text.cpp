#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "baton/error.hpp"
#include "schedule.hpp"
#include "verify.hpp"

namespace baton::transformer {
namespace {

constexpr std::string_view letters = "FBIW";
constexpr int most = 1 << 20;  // stages, micro-batches: more is a slip of the pen

/// Where a cell stands, for errors.
struct Place {
  const std::string& origin;
  std::size_t line, cell;

  [[noreturn]] void refuse(std::string_view expected, std::string_view found) const {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: line {}, cell {}: expected {}, found \"{}\"", origin, line, cell,
                            expected, found));
  }
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r";
  const std::size_t begin = text.find_first_not_of(blank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

/// The pieces of `text` between separators; without the empty one behind a last separator.
std::vector<std::string_view> pieces(std::string_view text, char separator) {
  std::vector<std::string_view> all;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    all.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return all;
}

/// Takes a number from the front of `rest`.
int number(std::string_view& rest, const Place& place, std::string_view cell) {
  int value = -1;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error != std::errc() || value < 0 || value >= most) {
    place.refuse(
        fmt::format("stage, one of F, B, I, W, and micro-batch, each number below {}", most), cell);
  }
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return value;
}

PipelineAction action_of(std::string_view cell, const Place& place) {
  PipelineAction action;
  std::string_view rest = cell;
  action.stage = number(rest, place, cell);
  const std::size_t work = rest.empty() ? std::string_view::npos : letters.find(rest[0]);
  if (work == std::string_view::npos)
    place.refuse("F, B, I or W behind the number of the stage", cell);
  action.work = static_cast<PipelineWork>(work);
  rest.remove_prefix(1);
  action.micro_batch = number(rest, place, cell);
  if (!rest.empty()) place.refuse("nothing behind the number of the micro-batch", cell);
  return action;
}

}  // namespace

std::string print(const PipelineAction& action) {
  return fmt::format("{}{}{}", action.stage, letters[static_cast<std::size_t>(action.work)],
                     action.micro_batch);
}

PipelineSchedule parse_pipeline(std::string_view text, const std::string& origin) {
  PipelineSchedule schedule;
  schedule.name = origin;
  schedule.stages = schedule.micro_batches = 0;
  for (const std::string_view line : pieces(text, '\n')) {
    auto& actions = schedule.ranks.emplace_back();
    std::size_t cells = 0;
    for (const std::string_view piece : pieces(line, ',')) {
      const Place place{origin, schedule.ranks.size(), ++cells};
      const std::string_view cell = trimmed(piece);
      if (cell.empty()) continue;
      actions.push_back(action_of(cell, place));
      schedule.stages = std::max(schedule.stages, actions.back().stage + 1);
      schedule.micro_batches = std::max(schedule.micro_batches, actions.back().micro_batch + 1);
    }
  }
  if (schedule.stages == 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: expected a line of actions for each rank, 0F0,0B0 for example, "
                            "found none",
                            origin));
  }
  return schedule;
}

std::string print(const PipelineSchedule& schedule) {
  const PipelineTimes times = unit_times(schedule);
  std::string text;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    std::vector<std::string> cells;
    for (std::size_t k = 0; k < schedule.ranks[rank].size(); ++k) {
      const auto column = static_cast<std::size_t>(std::max<std::int64_t>(times.start[rank][k], 0));
      cells.resize(std::max(cells.size(), column));
      cells.push_back(print(schedule.ranks[rank][k]));
    }
    text += fmt::format("{}\n", fmt::join(cells, ","));
  }
  return text;
}

}  // namespace baton::transformer
