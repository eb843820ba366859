#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "baton/error.hpp"
#include "baton/trace.hpp"
#include "bytes.hpp"
#include "part.hpp"
#include "section.hpp"

namespace baton::tracing {
namespace {

constexpr std::string_view head_word = "baton trace ";
constexpr std::string_view head = "baton trace 1\n";
constexpr std::uint64_t most_ranks = 1 << 20;
// 36 years: sums of a few times fit 64 bits.
constexpr std::int64_t most_ns = std::int64_t{1} << 60;
constexpr std::int64_t most_bytes = std::int64_t{1} << 48;  // of one step
constexpr std::size_t least_step_bytes = 8;
constexpr std::size_t least_record_bytes = 6;

std::int64_t time_of(std::int64_t ns) {
  if (ns < -most_ns || ns > most_ns) throw Malformed("a time that is too far away");
  return ns;
}

Schedule read_schedule(ByteReader& from) {
  Schedule::Header header;
  header.collective = static_cast<Collective>(from.number(collective_count));
  header.algorithm = from.text();
  header.size = static_cast<int>(from.number(most_ranks));
  header.rank = static_cast<int>(from.number(most_ranks));
  header.root = static_cast<int>(from.number(most_ranks));
  for (std::int64_t* count : {&header.input, &header.output, &header.scratch, &header.slots})
    *count = from.signed_number();
  header.in_place = from.number(1) != 0;
  std::vector<Step> steps(from.count(least_step_bytes));
  std::vector<Region> regions;
  Dependencies dependencies;
  std::vector<Computation> computations;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Step& step = steps[i];
    step.kind = static_cast<StepKind>(from.number(static_cast<std::uint64_t>(StepKind::compute)));
    step.lane = static_cast<std::uint8_t>(from.number(255));
    step.peer = static_cast<std::int32_t>(from.signed_number());
    step.round = static_cast<std::int32_t>(from.signed_number());
    step.first = static_cast<std::uint32_t>(regions.size());
    for (std::uint32_t& parts : step.parts) {
      parts = static_cast<std::uint32_t>(from.count());
      for (std::uint32_t p = 0; p < parts; ++p) {
        Region region;
        region.buffer = static_cast<Buffer>(from.number(static_cast<std::uint64_t>(Buffer::slot)));
        for (std::int64_t* n : {&region.offset, &region.block, &region.count, &region.stride})
          *n = from.signed_number();
        regions.push_back(region);
      }
    }
    const std::size_t waits_for = from.count();
    for (std::size_t d = 0; d < waits_for; ++d)
      dependencies.list.push_back(static_cast<std::uint32_t>(i - from.number(i)));
    dependencies.end_step();
    if (step.kind != StepKind::compute) continue;
    step.peer = static_cast<std::int32_t>(computations.size());
    Computation& computation = computations.emplace_back();
    computation.name = from.text();
    computation.kind = static_cast<ComputationKind>(from.number(computation_kind_count - 1));
    computation.ns = from.signed_number();
  }
  return Schedule(std::move(header), std::move(steps), std::move(regions), std::move(dependencies),
                  std::move(computations));
}

TimedOperation read_operation(ByteReader& from) {
  TimedOperation what;
  what.name = from.text();
  what.choice.algorithm = from.text();
  what.choice.segment = from.signed_number();
  what.type = from.text();
  what.op = from.text();
  what.bytes = from.signed_number();
  what.element_bytes = static_cast<std::size_t>(from.number(most_bytes));
  return what;
}

std::optional<ClockSample> read_sample(ByteReader& from) {
  if (from.number(1) == 0) return std::nullopt;
  ClockSample sample;
  for (std::int64_t* n : {&sample.local, &sample.offset, &sample.error})
    *n = time_of(from.signed_number());
  return sample;
}

/// Wraps around: a file may contain any numbers.
std::int64_t sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

/// A part while its sections arrive.
struct Growing {
  Part part;
  std::size_t groups = 0, plans = 0;  // expected
  std::map<std::size_t, Part::Group> group;
  std::map<std::size_t, Part::Plan> plan;
  std::uint64_t records = 0;  // expected
  bool ended = false;
};

/// Throws unless each step moves so few bytes that sums of them make sense.
void check_bytes(const Schedule& schedule, std::size_t element_bytes) {
  for (const Step& step : schedule.steps()) {
    std::int64_t bytes = 0;
    for (int k = 0; k < operands(step.kind); ++k)
      if (__builtin_mul_overflow(schedule.length(step, k), element_bytes, &bytes) ||
          bytes > most_bytes)
        throw Malformed("a step of too many bytes");
  }
}

/// Whether this part's rank can follow a schedule in this group.
bool fits(const Schedule& schedule, const Part::Group& group, const Part& part) {
  const auto& members = group.members;
  return static_cast<std::size_t>(schedule.size()) == members.size() &&
         members[static_cast<std::size_t>(schedule.rank())] == part.rank &&
         std::all_of(members.begin(), members.end(), [&](int m) { return m < part.ranks; });
}

/// The remains of a part, with groups and plans renumbered without gaps; reports losses.
Part finished(Growing&& grown, const std::string& origin, std::vector<std::string>& damage) {
  Part part = std::move(grown.part);
  const auto lost = [&](const std::string& what) {
    damage.push_back(fmt::format("{}: rank {}: expected {}", origin, part.rank, what));
  };
  if (!grown.ended) lost("the end of its part, found none: later events are missing");
  std::map<std::size_t, std::uint32_t> group_place, plan_place;
  for (auto& [number, group] : grown.group) {
    group_place[number] = static_cast<std::uint32_t>(part.groups.size());
    part.groups.push_back(std::move(group));
  }
  for (auto& [number, plan] : grown.plan) {
    const auto group = group_place.find(plan.group);
    if (group == group_place.end() || !fits(plan.schedule, part.groups[group->second], part))
      continue;
    plan.group = group->second;
    plan_place[number] = static_cast<std::uint32_t>(part.plans.size());
    part.plans.push_back(std::move(plan));
  }
  if (part.groups.size() < grown.groups)
    lost(fmt::format("{} groups of ranks, found {}", grown.groups, part.groups.size()));
  if (part.plans.size() < grown.plans) {
    lost(fmt::format("{} plans, found {}: the events of the others are left out", grown.plans,
                     part.plans.size()));
  }
  const std::size_t read = part.records.size();
  if (grown.ended && read < grown.records)
    lost(fmt::format("{} events, found {}", grown.records, read));
  std::erase_if(part.records, [&](Part::Record& record) {
    const auto plan = plan_place.find(record.plan);
    if (plan == plan_place.end()) return true;
    record.plan = plan->second;
    return record.step >= part.plans[record.plan].schedule.steps().size();
  });
  return part;
}

struct Read : ReadParts {
  std::set<int> whole;  ///< ranks of parts that lack nothing
};

class PartsReader {
 public:
  explicit PartsReader(const std::string& origin) : origin_(origin) {}

  void add(SectionKind kind, std::string_view content) {
    ByteReader from(content);
    const int rank = static_cast<int>(from.number(most_ranks));
    if (kind == SectionKind::rank) return begin(rank, from);
    if (!growing_ || growing_->part.rank != rank)
      throw Malformed(fmt::format("a section of rank {} without its part's beginning", rank));
    switch (kind) {
      case SectionKind::group: {
        const std::size_t number = from.number();
        Part::Group group;
        group.number = static_cast<std::uint32_t>(from.number());
        group.members.resize(from.count());
        for (int& member : group.members) member = static_cast<int>(from.number(most_ranks));
        growing_->group[number] = std::move(group);
        return;
      }
      case SectionKind::plan: {
        const std::size_t number = from.number();
        const auto group = static_cast<std::uint32_t>(from.number());
        TimedOperation what = read_operation(from);
        Schedule schedule = read_schedule(from);
        check_bytes(schedule, what.element_bytes);
        growing_->plan.insert_or_assign(number,
                                        Part::Plan{group, std::move(what), std::move(schedule)});
        return;
      }
      case SectionKind::events:
        return read_records(from);
      case SectionKind::end:
        growing_->records = from.number();
        growing_->ended = true;
        return;
      default:
        throw Malformed("a section of an unknown kind");
    }
  }

  Read finish() {
    end_part();
    return std::move(result_);
  }
  void damaged(const std::string& what) {
    result_.damage.push_back(fmt::format("{}: {}", origin_, what));
  }

 private:
  void begin(int rank, ByteReader& from) {
    end_part();
    Growing growing;
    Part& part = growing.part;
    part.rank = rank;
    part.ranks = static_cast<int>(from.number(most_ranks));
    const auto last = static_cast<std::uint64_t>(std::max(part.ranks, 1) - 1);
    part.host = static_cast<int>(from.number(last));
    part.host_name = from.text();
    part.clock = static_cast<int>(from.number(last));
    part.before = read_sample(from);
    part.after = read_sample(from);
    part.dropped = from.number();
    growing.groups = from.number();
    growing.plans = from.number();
    growing_ = std::move(growing);
  }

  void read_records(ByteReader& from) {
    Part::Record record{};
    for (std::size_t left = from.count(least_record_bytes); left > 0; --left) {
      record.plan += static_cast<std::uint32_t>(from.signed_number());
      record.sequence += static_cast<std::uint32_t>(from.signed_number());
      record.step += static_cast<std::uint32_t>(from.signed_number());
      record.posted = time_of(sum(record.posted, from.signed_number()));
      record.start = time_of(sum(record.posted, from.signed_number()));
      record.end = time_of(sum(record.start, from.signed_number()));
      growing_->part.records.push_back(record);
    }
  }

  void end_part() {
    if (!growing_) return;
    const std::size_t before = result_.damage.size();
    result_.parts.push_back(finished(std::move(*growing_), origin_, result_.damage));
    if (result_.damage.size() == before) result_.whole.insert(result_.parts.back().rank);
    growing_.reset();
  }

  const std::string& origin_;
  Read result_;
  std::optional<Growing> growing_;
};

Read read(std::string_view bytes, const std::string& origin) {
  if (!bytes.starts_with(head_word)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: expected a trace that begins with \"{}\", found none", origin,
                            head.substr(0, head.size() - 1)));
  }
  if (!bytes.starts_with(head)) {
    const std::string_view version = bytes.substr(head_word.size(), 8);
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: expected a trace of version 1, found version \"{}\"", origin,
                            version.substr(0, version.find('\n'))));
  }
  PartsReader reader(origin);
  Sections sections(bytes);
  bool more = true;
  while (more) {
    more = sections.next();
    const std::size_t from = sections.skipped_from(), to = sections.skipped_to();
    // A file may consist of several files, each with its head.
    if (bytes.substr(from, to - from) != head && from != to) {
      reader.damaged(fmt::format("bytes {} to {}: expected a section of the trace, found {}", from,
                                 to,
                                 to == bytes.size() ? "the end of the file or damage" : "damage"));
    }
    if (!more) break;
    try {
      reader.add(sections.kind(), sections.content());
    } catch (const std::exception& error) {
      reader.damaged(fmt::format("section at byte {}: expected the content of its kind, found {}",
                                 sections.offset(), error.what()));
    }
  }
  return reader.finish();
}

}  // namespace

std::string file_head() { return std::string(head); }

ReadParts read_parts(std::string_view bytes, const std::string& origin) {
  return read(bytes, origin);
}

}  // namespace baton::tracing

namespace baton {

Trace read_trace(std::span<const std::string> files, bool force) {
  Trace trace;
  std::vector<tracing::Part> parts;
  std::set<int> whole;
  for (const std::string& file : files) {
    if (std::filesystem::is_directory(file)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("expected a trace file, found that {} is a folder", file));
    }
    std::ifstream stream(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    if (!stream) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("expected a trace file, found that {} cannot be read: {}", file,
                              std::strerror(errno)));
    }
    tracing::Read read = tracing::read(bytes, file);
    whole.merge(read.whole);
    std::move(read.parts.begin(), read.parts.end(), std::back_inserter(parts));
    std::move(read.damage.begin(), read.damage.end(), std::back_inserter(trace.damage));
  }
  trace.timeline = tracing::merged(std::move(parts), force);
  for (int rank = 0; rank < trace.timeline.ranks; ++rank)
    if (!whole.contains(rank)) trace.incomplete.push_back(rank);
  return trace;
}

}  // namespace baton
