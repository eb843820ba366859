#include "timeline_sources.hpp"

#include <fmt/format.h>

#include "baton/error.hpp"

namespace baton::cli {

Timeline rounds_of(const TimedCollective& collective) {
  Timeline timeline = baton::rounds_of(collective.schedules, collective.element_bytes);
  TimedOperation& operation = timeline.operations[0];
  operation.type = collective.type;
  operation.op = collective.op;
  operation.choice.segment = collective.segment;
  if (collective.bytes >= 0) operation.bytes = collective.bytes;
  if (collective.hosts) {
    timeline.hosts.assign(collective.hosts->of().begin(), collective.hosts->of().end());
  }
  return timeline;
}

Timeline predicted(const TimedCollective&, const std::string& network) {
  throw Error(ErrorCode::unsupported,
              fmt::format("{}: this version predicts no times; expected --rounds", network));
}

Timeline recorded(const std::string& file) {
  throw Error(ErrorCode::unsupported, fmt::format("{}: this version reads no recordings", file));
}

}  // namespace baton::cli
