#include "text_rank.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "baton/error.hpp"
#include "slots.hpp"
#include "writer.hpp"

namespace baton::scheduling {
namespace {

/// A slot of this length; where it lies is known when all lengths are.
Regions slot_like(const Regions& regions) {
  return {contiguous(Buffer::slot, 0, length_of(regions))};
}

Dependencies united(const Dependencies& a, const Dependencies& b) {
  Dependencies both;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::set_union(a.of(i).begin(), a.of(i).end(), b.of(i).begin(), b.of(i).end(),
                   std::back_inserter(both.list));
    both.end_step();
  }
  return both;
}

}  // namespace

bool HeaderLines::read(TextLine& line) {
  if (line.take_word("collective")) {
    const std::string_view found = line.word();
    try {
      const bool program = found == name(Collective::program);
      collective = program ? Collective::program : collective_named(found);
    } catch (const Error&) {
      line.fail("the name of a collective", fmt::format("\"{}\"", found));
    }
  } else if (line.take_word("algorithm")) {
    algorithm = line.name("a name");
  } else if (line.take_word("size")) {
    size = static_cast<int>(line.number("a number of ranks", 1, most_int));
  } else if (line.take_word("root")) {
    root = static_cast<int>(line.number("a rank", 0, most_int));
  } else if (line.take_word("input")) {
    input = line.number("a number of elements");
  } else if (line.take_word("output")) {
    output = line.number("a number of elements");
  } else if (line.take_word("scratch")) {
    scratch = line.number("a number of elements");
  } else if (line.take_word("slots")) {
    slots = line.number("a number of elements");
  } else if (line.take_word("in_place")) {
    in_place = true;
  } else if (line.take_word("dependencies")) {
    if (!line.take_word("listed")) line.fail("\"listed\"");
    listed = true;
  } else {
    return false;
  }
  line.end();
  return true;
}

void HeaderLines::require_complete(const TextLine& line, int rank) const {
  const auto require = [&](bool present, std::string_view what) {
    if (!present) line.fail(fmt::format("a line \"{} ...\" before the steps", what), "none");
  };
  require(collective.has_value(), "collective");
  require(size.has_value(), "size");
  require(input.has_value(), "input");
  require(output.has_value(), "output");
  if (rank >= *size) line.fail(fmt::format("a rank below {}", *size), fmt::format("{}", rank));
  if (root >= *size) line.fail(fmt::format("a root below {}", *size), fmt::format("{}", root));
}

void RankText::read(TextLine& line) {
  if (numbers_.empty() && header_.read(line)) return;
  if (line.take_word("round")) {
    round_ = static_cast<std::int32_t>(line.number("a round", 0, HeaderLines::most_int));
    line.end();
  } else {
    read_step(line);
  }
}

Schedule RankText::finish(const TextLine& line) {
  header_.require_complete(line, rank_);
  place_slots();
  Schedule::Header header;
  header.collective = *header_.collective;
  header.algorithm = header_.algorithm;
  header.size = *header_.size;
  header.rank = rank_;
  header.root = header_.root;
  header.input = *header_.input;
  header.output = *header_.output;
  header.scratch = header_.scratch.value_or(end_of(Buffer::scratch));
  header.slots = header_.slots.value_or(end_of(Buffer::slot));
  header.in_place = header_.in_place;

  try {
    Schedule inferred(header, steps_, regions_, computations_);
    if (header_.listed ? after_ == inferred.dependencies() : after_.list.empty()) return inferred;
    if (!header_.listed) after_ = united(after_, inferred.dependencies());
    return Schedule(std::move(header), std::move(steps_), std::move(regions_), std::move(after_),
                    std::move(computations_));
  } catch (const Error& error) {
    line.refuse(error.what());
  }
}

void RankText::read_step(TextLine& line) {
  if (numbers_.empty()) header_.require_complete(line, rank_);
  std::int64_t number = numbers_.empty() ? 0 : numbers_.back() + 1;
  if (line.at_number()) {
    number = line.number("a step number", number, HeaderLines::most_int);
    line.expect(':');
  }
  const std::size_t first = steps_.size(), slots = slots_.size();
  read_kind(line);
  std::size_t lane = 0;
  if (line.take_word("lane")) {
    lane = static_cast<std::size_t>(line.number("a lane", 0, ScheduleWriter::lanes - 1));
  }
  for (std::size_t i = first; i < steps_.size(); ++i) {
    steps_[i].lane = static_cast<std::uint8_t>(lane);
    if (i > first) after_.end_step();  // what is listed holds for the last step of a shorthand
  }
  for (std::size_t i = slots; i < slots_.size(); ++i) slots_[i].lane = lane;
  read_after(line);
  line.end("\"lane\", \"after\" or the end of the line");
  numbers_.push_back(number);
  last_step_.push_back(static_cast<std::uint32_t>(steps_.size() - 1));
}

void RankText::read_kind(TextLine& line) {
  if (line.take_word("send")) {
    const int peer = read_peer(line);
    append(line, StepKind::send, peer, {line.regions()});
  } else if (line.take_word("recv")) {
    const int peer = read_peer(line);
    append(line, StepKind::recv, peer, {line.regions()});
  } else if (line.take_word("fold")) {
    Operands operands{line.regions()};
    line.expect('=');
    operands[1] = line.regions();
    line.expect('+');
    operands[2] = line.regions();
    append(line, StepKind::fold, -1, operands);
  } else if (line.take_word("copy")) {
    Operands operands{line.regions()};
    line.expect('=');
    operands[1] = line.regions();
    append(line, StepKind::copy, -1, operands);
  } else if (line.take_word("divide") || line.take_word("finish")) {
    append(line, StepKind::divide, -1, {line.regions()});
  } else if (line.take_word("compute")) {
    read_compute(line);
  } else if (line.take_word("recv_reduce")) {
    read_recv_reduce(line);
  } else if (line.take_word("recv_late")) {
    const int peer = read_peer(line);
    const Regions to = line.regions();
    append_through_slot(line, StepKind::copy, peer, {to, slot_like(to)}, 1);
  } else {
    line.fail(numbers_.empty() ? "a header line, \"round\" or a step"
                               : "a step, \"round\" or \"rank\"");
  }
}

int RankText::read_peer(TextLine& line) const {
  const auto peer = static_cast<int>(line.number("a peer", 0, *header_.size - 1));
  if (peer == rank_) line.fail("another rank as peer", fmt::format("rank {} itself", peer));
  return peer;
}

void RankText::read_recv_reduce(TextLine& line) {
  const int peer = read_peer(line);
  const Regions into = line.regions();
  const Regions own = line.take('=') ? line.regions() : into;
  bool left = peer < rank_;
  if (line.take_word("left")) {
    left = true;
  } else if (line.take_word("right")) {
    left = false;
  }
  if (left) {
    append_through_slot(line, StepKind::fold, peer, {into, slot_like(own), own}, 1);
  } else {
    append_through_slot(line, StepKind::fold, peer, {into, own, slot_like(own)}, 2);
  }
}

void RankText::read_compute(TextLine& line) {
  Computation computation;
  computation.ns = line.number("a time in ns", 0, most_ns);
  const std::string_view found = line.word();
  try {
    computation.kind = computation_kind_named(found);
  } catch (const Error&) {
    line.fail("the class of a computation", fmt::format("\"{}\"", found));
  }
  computation.name = line.name("the name of a computation");
  computation.advances = !line.take_word("alone");
  Operands operands;
  if (line.take_word("reads")) operands[1] = line.regions();
  if (line.take_word("writes")) operands[0] = line.regions();
  for (const Regions& list : operands) {
    for (const Region& region : list) {
      if (region.buffer == Buffer::slot) line.fail("a computation that touches no slot", "one");
    }
  }
  append(line, StepKind::compute, static_cast<int>(computations_.size()), operands);
  computations_.push_back(std::move(computation));
}

void RankText::read_after(TextLine& line) {
  const auto first = static_cast<std::ptrdiff_t>(after_.list.size());
  if (line.take_word("after")) {
    do {
      const std::int64_t number = line.number("the number of an earlier step");
      const auto found = std::lower_bound(numbers_.begin(), numbers_.end(), number);
      if (found == numbers_.end() || *found != number) {
        line.fail("the number of an earlier step", fmt::format("{}", number));
      }
      after_.list.push_back(last_step_[static_cast<std::size_t>(found - numbers_.begin())]);
    } while (line.at_number());
  }
  std::sort(after_.list.begin() + first, after_.list.end());
  after_.list.erase(std::unique(after_.list.begin() + first, after_.list.end()), after_.list.end());
  after_.end_step();
}

void RankText::append(const TextLine& line, StepKind kind, int peer, const Operands& lists) {
  Step step;
  step.kind = kind;
  step.peer = peer;
  step.round = round_;
  step.first = static_cast<std::uint32_t>(regions_.size());
  const std::int64_t length = length_of(lists[0]);
  for (int k = 0; k < operands(kind); ++k) {
    const Regions& list = lists[static_cast<std::size_t>(k)];
    if (kind != StepKind::compute && length_of(list) != length) {
      line.fail(fmt::format("operands of equal length ({} elements)", length),
                fmt::format("{}", length_of(list)));
    }
    step.parts[k] = static_cast<std::uint32_t>(list.size());
    regions_.insert(regions_.end(), list.begin(), list.end());
  }
  total_ += kind == StepKind::compute ? 0 : length;
  if (total_ > 4096 * TextLine::most_elements) {
    line.fail("fewer elements in a schedule", fmt::format("{}", total_));
  }
  steps_.push_back(step);
}

/// Appends a recv into the slot that is operand `k` of the step, and the step.
void RankText::append_through_slot(const TextLine& line, StepKind kind, int peer,
                                   const Operands& lists, std::size_t k) {
  if (header_.listed) line.fail("steps in full, since dependencies are listed", "a shorthand");
  append(line, StepKind::recv, peer, {lists[k]});
  const std::size_t recv_region = regions_.size() - 1;
  append(line, kind, -1, lists);
  std::size_t use_region = recv_region + 1;
  for (std::size_t i = 0; i < k; ++i) use_region += lists[i].size();
  slots_.push_back({recv_region, use_region, 0, length_of(lists[k])});
}

/// One past the last element that a step touches.
std::int64_t RankText::end_of(Buffer buffer) const {
  std::int64_t end = 0;
  for (const Region& region : regions_) {
    if (region.buffer == buffer) end = std::max(end, region.end());
  }
  return end;
}

/// Two slots per lane, used in turn, behind the slots that the text names itself.
void RankText::place_slots() {
  if (slots_.empty()) return;
  std::array<std::int64_t, ScheduleWriter::lanes> longest{}, uses{}, place{};
  for (const SlotUse& use : slots_) {
    longest[use.lane] = std::max(longest[use.lane], use.length);
    ++uses[use.lane];
    // Not among the slots that the text names.
    regions_[use.recv_region].buffer = regions_[use.use_region].buffer = Buffer::work;
  }
  std::int64_t end = std::max(header_.slots.value_or(0), end_of(Buffer::slot));
  for (std::size_t lane = 0; lane < place.size(); ++lane) {
    place[lane] = end;
    end += longest[lane] * std::min<std::int64_t>(uses[lane], ScheduleWriter::slots_per_lane);
  }
  uses.fill(0);
  for (const SlotUse& use : slots_) {
    const std::int64_t turn = uses[use.lane]++ % ScheduleWriter::slots_per_lane;
    const std::int64_t offset = place[use.lane] + turn * longest[use.lane];
    regions_[use.recv_region] = contiguous(Buffer::slot, offset, use.length);
    regions_[use.use_region] = regions_[use.recv_region];
  }
  header_.slots = end;
}

}  // namespace baton::scheduling
