// Prints what trace files say, as JSON: `trace_probe [--force] FILE…`. Exit code 2 and a sentence
// where they cannot be read.

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "baton/error.hpp"
#include "baton/trace.hpp"
#include "trace/part.hpp"

namespace {

std::string sample(const std::optional<baton::tracing::ClockSample>& s) {
  return s ? fmt::format("[{}, {}, {}]", s->local, s->offset, s->error) : "null";
}

}  // namespace

int main(int argc, char** argv) try {
  const bool force = argc > 1 && std::strcmp(argv[1], "--force") == 0;
  const std::vector<std::string> files(argv + 1 + force, argv + argc);
  std::vector<std::string> parts, operations;
  for (const std::string& file : files) {
    std::ifstream stream(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    for (const auto& part : baton::tracing::read_parts(bytes, file).parts) {
      parts.push_back(fmt::format(R"({{"rank": {}, "clock": {}, "before": {}, "after": {}}})",
                                  part.rank, part.clock, sample(part.before), sample(part.after)));
    }
  }
  const baton::Trace trace = baton::read_trace(files, force);
  const baton::Timeline& timeline = trace.timeline;
  for (const baton::TimedOperation& operation : timeline.operations) {
    operations.push_back(fmt::format(
        R"({{"name": "{}", "algorithm": "{}", "bytes": {}, "ranks": [{}]}})", operation.name,
        operation.choice.algorithm, operation.bytes, fmt::join(operation.ranks, ", ")));
  }
  fmt::print(R"({{"parts": [{}], "ranks": {}, "operations": [{}], "events": {}, "messages": {}, )"
             R"("early_arrivals": {}, "clock_error": {}, "damage": {}}})"
             "\n",
             fmt::join(parts, ", "), timeline.ranks, fmt::join(operations, ", "),
             timeline.events.size(), messages_of(timeline).size(), timeline.early_arrivals,
             timeline.clock_error, trace.damage.size());
  return 0;
} catch (const baton::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 2;
}
