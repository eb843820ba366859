#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>

#include "baton/schedule/text.hpp"
#include "text_rank.hpp"

namespace baton {

using namespace scheduling;

std::vector<Schedule> parse(std::string_view text, std::string_view origin) {
  std::vector<Schedule> schedules;
  std::optional<HeaderLines> common;  // of the ranks below one "baton-schedule"
  std::optional<RankText> rank;
  std::set<int> ranks;
  std::size_t first = 0;  // of their schedules
  TextLine rank_line(origin, 1, "");
  const auto finish_rank = [&] {
    if (rank) schedules.push_back(rank->finish(rank_line));
    rank.reset();
  };
  const auto finish_text = [&] {
    finish_rank();
    std::ranges::sort(schedules.begin() + static_cast<std::ptrdiff_t>(first), schedules.end(), {},
                      &Schedule::rank);
    first = schedules.size();
  };

  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    TextLine line(origin, ++number, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.done()) continue;
    if (line.take_word("baton-schedule")) {
      finish_text();
      line.number("version", 1, 1);
      line.end();
      common.emplace();
      ranks.clear();
    } else if (!common) {
      line.fail("\"baton-schedule 1\"");
    } else if (line.take_word("rank")) {
      finish_rank();
      rank.emplace(*common, static_cast<int>(line.number("a rank", 0, HeaderLines::most_int)));
      line.end();
      rank_line = line;
      if (!ranks.insert(rank->rank()).second) {
        line.fail("each rank once", fmt::format("rank {} again", rank->rank()));
      }
    } else if (rank) {
      rank->read(line);
    } else if (!common->read(line)) {
      line.fail("a header line or \"rank\"");
    }
  }
  finish_text();
  if (schedules.empty()) {
    TextLine(origin, number + 1, "")
        .fail(common ? "\"rank\"" : "\"baton-schedule 1\"", "the end of the text");
  }
  return schedules;
}

}  // namespace baton
