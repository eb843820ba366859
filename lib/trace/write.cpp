#include <algorithm>

#include "bytes.hpp"
#include "part.hpp"
#include "section.hpp"

namespace baton::tracing {
namespace {

constexpr std::size_t records_per_section = 4096;

void write(ByteWriter& to, const Schedule& schedule) {
  const Schedule::Header& header = schedule.header();
  to.number(static_cast<std::uint64_t>(header.collective));
  to.text(header.algorithm);
  to.number(static_cast<std::uint64_t>(header.size));
  to.number(static_cast<std::uint64_t>(header.rank));
  to.number(static_cast<std::uint64_t>(header.root));
  for (const std::int64_t count : {header.input, header.output, header.scratch, header.slots})
    to.signed_number(count);
  to.number(header.in_place ? 1 : 0);
  to.number(schedule.steps().size());
  for (std::size_t i = 0; i < schedule.steps().size(); ++i) {
    const Step& step = schedule.steps()[i];
    to.number(static_cast<std::uint64_t>(step.kind));
    to.number(step.lane);
    to.signed_number(step.peer);
    to.signed_number(step.round);
    for (int k = 0; k < 3; ++k) {
      to.number(step.parts[k]);
      for (const Region& region : schedule.operand(step, k)) {
        to.number(static_cast<std::uint64_t>(region.buffer));
        for (const std::int64_t n : {region.offset, region.block, region.count, region.stride})
          to.signed_number(n);
      }
    }
    const auto waits_for = schedule.dependencies(i);
    to.number(waits_for.size());
    for (const std::uint32_t step_before : waits_for) to.number(i - step_before);
    if (step.kind != StepKind::compute) continue;
    const Computation& computation = schedule.computation(step);
    to.text(computation.name);
    to.number(static_cast<std::uint64_t>(computation.kind));
    to.signed_number(computation.ns);
  }
}

void write(ByteWriter& to, const TimedOperation& what) {
  to.text(what.name);
  to.text(what.choice.algorithm);
  to.signed_number(what.choice.segment.value_or(0));
  to.text(what.type);
  to.text(what.op);
  to.signed_number(what.bytes);
  to.number(what.element_bytes);
}

void write(ByteWriter& to, const std::optional<ClockSample>& sample) {
  to.number(sample ? 1 : 0);
  if (!sample) return;
  for (const std::int64_t n : {sample->local, sample->offset, sample->error}) to.signed_number(n);
}

/// The beginning of each section of a part.
ByteWriter of_rank(const Part& part) {
  ByteWriter to;
  to.number(static_cast<std::uint64_t>(part.rank));
  return to;
}

}  // namespace

std::string written(const Part& part) {
  ByteWriter rank = of_rank(part);
  rank.number(static_cast<std::uint64_t>(part.ranks));
  rank.number(static_cast<std::uint64_t>(part.host));
  rank.text(part.host_name);
  rank.number(static_cast<std::uint64_t>(part.clock));
  write(rank, part.before);
  write(rank, part.after);
  rank.number(part.dropped);
  rank.number(part.groups.size());
  rank.number(part.plans.size());
  std::string bytes = section(SectionKind::rank, rank.bytes());

  for (std::size_t g = 0; g < part.groups.size(); ++g) {
    ByteWriter to = of_rank(part);
    to.number(g);
    to.number(part.groups[g].number);
    to.number(part.groups[g].members.size());
    for (const int member : part.groups[g].members) to.number(static_cast<std::uint64_t>(member));
    bytes += section(SectionKind::group, to.bytes());
  }
  for (std::size_t p = 0; p < part.plans.size(); ++p) {
    ByteWriter to = of_rank(part);
    to.number(p);
    to.number(part.plans[p].group);
    write(to, part.plans[p].what);
    write(to, part.plans[p].schedule);
    bytes += section(SectionKind::plan, to.bytes());
  }
  for (std::size_t i = 0; i < part.records.size();) {
    const std::size_t end = std::min(part.records.size(), i + records_per_section);
    ByteWriter to = of_rank(part);
    to.number(end - i);
    Part::Record last{};
    for (; i < end; ++i) {
      const Part::Record& record = part.records[i];
      to.signed_number(std::int64_t{record.plan} - last.plan);
      to.signed_number(std::int64_t{record.sequence} - last.sequence);
      to.signed_number(std::int64_t{record.step} - last.step);
      to.signed_number(record.posted - last.posted);
      to.signed_number(record.start - record.posted);
      to.signed_number(record.end - record.start);
      last = record;
    }
    bytes += section(SectionKind::events, to.bytes());
  }
  ByteWriter end = of_rank(part);
  end.number(part.records.size());
  return bytes + section(SectionKind::end, end.bytes());
}

}  // namespace baton::tracing
