#include <fmt/core.h>

#include "baton/explain.hpp"
#include "baton/schedule/text.hpp"
#include "title.hpp"

namespace baton {

std::string title(const Schedule& schedule) {
  const Schedule::Header& header = schedule.header();
  std::string text(name(header.collective));
  if (!header.algorithm.empty()) text += " by " + header.algorithm;
  text += fmt::format(", {} rank{}", header.size, header.size == 1 ? "" : "s");
  if (rooted(header.collective)) text += fmt::format(", root {}", header.root);
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
