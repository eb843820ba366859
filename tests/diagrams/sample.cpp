// Prints a picture for the tests that parse pictures:
// sample FORMAT KIND COLLECTIVE ALGORITHM RANKS COUNT [critical] [most=N] [ranks=A,B,…] [from=NS]
// [to=NS], where KIND is rounds, predicted or compared.

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "baton/error.hpp"
#include "diagrams/diagrams.hpp"
#include "samples.hpp"

using namespace baton;

namespace {

void read(diagrams::Options& options, const std::string& argument) {
  const auto value = argument.substr(argument.find('=') + 1);
  if (argument == "critical") options.critical_path = true;
  if (argument.starts_with("most=")) options.most_events = std::stoul(value);
  if (argument.starts_with("from=")) options.from = std::stoll(value);
  if (argument.starts_with("to=")) options.to = std::stoll(value);
  if (argument.starts_with("ranks=")) {
    for (std::size_t at = 0; at < value.size(); at = value.find(',', at) + 1) {
      options.ranks.push_back(std::atoi(value.c_str() + at));
      if (value.find(',', at) == std::string::npos) break;
    }
  }
}

std::string picture(char** arguments, const diagrams::Options& options) {
  const std::string_view format = arguments[1], kind = arguments[2];
  Timeline timeline = support::rounds(collective_named(arguments[3]), arguments[4],
                                      std::atoi(arguments[5]), std::atoll(arguments[6]));
  diagrams::Options how = options;
  Timeline prediction;
  if (kind == "predicted") timeline = support::timed(timeline, TimelineKind::predicted);
  if (kind == "compared") {
    prediction = support::timed(timeline, TimelineKind::predicted);
    timeline = support::timed(timeline, TimelineKind::measured, 1, 700);
    how.prediction = &prediction;
  }
  const auto& schedules = *timeline.operations[0].schedules;
  if (format == "svg") return diagrams::svg(timeline, how);
  if (format == "drawio") return diagrams::drawio(timeline, how);
  if (format == "json") return diagrams::chrome_trace(timeline, how);
  if (format == "goal") return diagrams::goal(timeline);
  if (format == "xml") return diagrams::msccl(schedules);
  if (format == "split.svg") return diagrams::split_assemble_svg(schedules);
  return diagrams::split_assemble_drawio(schedules);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    diagrams::Options options;
    for (int i = 7; i < argc; ++i) read(options, argv[i]);
    std::fputs(picture(argv, options).c_str(), stdout);
    return std::fflush(stdout) == 0 ? 0 : 2;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
