#include "plan.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "../base/raise.hpp"
#include "baton/schedule/passes.hpp"

namespace baton::execute {
namespace {

using base::refuse;

void check_extent(const char* what, std::int64_t expected, std::span<const std::int64_t> tensors) {
  const std::int64_t found = std::accumulate(tensors.begin(), tensors.end(), std::int64_t{0});
  if (found < expected) {
    refuse("expected an {} of {} elements, as the schedule says, found {}", what, expected, found);
  }
}

void check_bounds(const Schedule& schedule) {
  const Schedule::Header& h = schedule.header();
  const std::int64_t extents[] = {h.input, h.output, 0, h.scratch, h.slots};
  constexpr const char* names[] = {"input", "output", "work", "scratch", "slots"};
  for (const Region& region : schedule.regions()) {
    const auto b = static_cast<std::size_t>(region.buffer);
    if (region.end() > extents[b]) {
      refuse(
          "schedule of rank {}: expected regions within the {} elements of {}, found one that ends "
          "at {}",
          h.rank, extents[b], names[b], region.end());
    }
  }
}

void check_runs(const Schedule& schedule) {
  const auto steps = schedule.steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].kind != StepKind::compute) continue;
    refuse(
        "schedule of rank {}, step {}: expected messages and work on their data, found the "
        "computation \"{}\": programs are simulated and drawn, not run",
        schedule.rank(), i, schedule.computation(steps[i]).name);
  }
}

/// Where tensors begin, without the first at 0. No region may cross these offsets.
std::vector<std::int64_t> inner_boundaries(std::span<const std::int64_t> sizes) {
  std::vector<std::int64_t> offsets;
  std::int64_t end = 0;
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) offsets.push_back(end += sizes[i]);
  return offsets;
}

/// Walks along a list of regions, block by block.
class Cursor {
 public:
  explicit Cursor(std::span<const Region> regions) : regions_(regions) {}

  bool done() const { return index_ == regions_.size(); }
  const Region& region() const { return regions_[index_]; }
  std::int64_t offset() const { return region().offset + row_ * region().stride + column_; }
  /// Elements to the end of the current block.
  std::int64_t run() const { return region().block - column_; }
  /// How many runs of `block` elements follow at a fixed distance, and that distance.
  std::pair<std::int64_t, std::int64_t> rows(std::int64_t block) const {
    if (run() == block && column_ == 0 && !region().contiguous()) {
      return {region().count - row_, region().stride};
    }
    return {run() / block, block};
  }
  void advance(std::int64_t length) {
    while (length > 0) {
      const std::int64_t here = std::min(length, run());
      column_ += here;
      length -= here;
      if (run() == 0) {
        column_ = 0;
        if (++row_ == region().count) {
          row_ = 0;
          ++index_;
        }
      }
    }
  }

 private:
  std::span<const Region> regions_;
  std::size_t index_ = 0;
  std::int64_t row_ = 0, column_ = 0;
};

}  // namespace

Schedule bound(const Schedule& schedule, std::span<const std::int64_t> inputs,
               std::span<const std::int64_t> outputs) {
  const bool lists = inputs.size() > 1 || outputs.size() > 1;
  return packed(lists ? split_at(schedule, inner_boundaries(inputs), inner_boundaries(outputs))
                      : schedule);
}

Plan::Plan(const Schedule& original, std::size_t element_bytes,
           std::span<const std::int64_t> inputs, std::span<const std::int64_t> outputs)
    : header_(original.header()), element_bytes_(element_bytes) {
  check_runs(original);
  check_extent("input", header_.input, inputs);
  check_extent("output", header_.output, outputs);
  const Schedule schedule = bound(original, inputs, outputs);
  header_ = schedule.header();
  check_bounds(schedule);

  first_output_ = static_cast<std::uint32_t>(inputs.size());
  bases_ = first_tensor_base + static_cast<std::uint32_t>(inputs.size() + outputs.size());
  for (const auto& sizes : {inputs, outputs}) {
    std::int64_t begin = 0;
    for (const std::int64_t size : sizes) {
      begins_.push_back(begin);
      begin += size;
    }
  }
  lanes_ = static_cast<std::uint32_t>(schedule.lanes());

  const auto steps = schedule.steps();
  items_.reserve(steps.size());
  rounds_.reserve(steps.size());
  std::map<std::tuple<int, int, bool>, std::vector<std::uint32_t>> channels;
  std::vector<std::uint32_t> dependent_counts(steps.size(), 0);
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    Item item{};
    item.kind = step.kind;
    item.lane = step.lane;
    item.peer = step.peer;
    item.waits = static_cast<std::uint32_t>(schedule.dependencies(i).size());
    item.first_piece = static_cast<std::uint32_t>(pieces_.size());
    append_pieces(schedule, step, begins_);
    item.piece_count = static_cast<std::uint32_t>(pieces_.size()) - item.first_piece;
    if (step.message()) {
      item.bytes = schedule.length(step) * static_cast<std::int64_t>(element_bytes);
      channels[{step.lane, step.peer, step.kind == StepKind::send}].push_back(i);
    } else if (item.waits == 0) {
      initial_.push_back(i);
    }
    for (const std::uint32_t d : schedule.dependencies(i)) ++dependent_counts[d];
    items_.push_back(item);
    rounds_.push_back(step.round);
  }

  // Channels in the order of their first messages, so that posting follows the program.
  std::vector<const std::vector<std::uint32_t>*> ordered;
  for (const auto& [key, messages] : channels) ordered.push_back(&messages);
  std::sort(ordered.begin(), ordered.end(),
            [](const auto* a, const auto* b) { return a->front() < b->front(); });
  for (const auto* list : ordered) {
    const auto first = static_cast<std::uint32_t>(messages_.size());
    for (const std::uint32_t i : *list) {
      items_[i].channel = static_cast<std::uint32_t>(channels_.size());
      messages_.push_back(i);
    }
    channels_.push_back({first, static_cast<std::uint32_t>(messages_.size())});
  }

  std::uint32_t end = 0;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    items_[i].first_dependent = end;
    end += dependent_counts[i];
  }
  dependents_.resize(end);
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    for (const std::uint32_t d : schedule.dependencies(i)) {
      dependents_[items_[d].first_dependent + items_[d].dependent_count++] = i;
    }
  }
  const bool pairs = slots_in_pairs(schedule);
  for (std::uint32_t i = 0; i < items_.size(); ++i)
    items_[i].partner = pairs ? partner_of(i) : none;
  script_ = script_of(schedule);
}

// Steps that fill a slot again depend on the message and on its partner.
std::uint32_t Plan::partner_of(std::uint32_t step) const {
  const Item& message = items_[step];
  if (message.local() || message.bytes == 0) return none;
  if (pieces_[message.first_piece].at[0].base != slot_base) return none;
  const bool sends = message.kind == StepKind::send;
  const std::uint32_t before = sends ? step - 1 : step, after = sends ? step : step + 1;
  const std::uint32_t partner = sends ? before : after;
  const Item& local = items_[partner];
  const bool folds = !sends && local.kind == StepKind::fold && local.piece_count == 1 &&
                     pieces_[local.first_piece].rows == 1;
  if (!folds && local.kind != StepKind::copy) return none;
  const auto waits = [&](std::uint32_t later, std::uint32_t earlier) {
    return std::ranges::count(dependents_of(earlier), later) != 0;
  };
  if (!waits(after, before)) return none;
  // A copy that is carried out while its message is sent reads until then.
  const auto waits_for_send = [&](std::uint32_t next) { return next == step || waits(next, step); };
  return !sends || std::ranges::all_of(dependents_of(partner), waits_for_send) ? partner : none;
}

Region Plan::region(const Piece& piece, int operand) const {
  const auto bytes = static_cast<std::int64_t>(element_bytes_);
  const Place& place = piece.at[operand];
  std::int64_t offset = place.offset / bytes;
  Buffer buffer = place.base == scratch_base ? Buffer::scratch : Buffer::slot;
  if (place.base >= first_tensor_base) {
    const std::uint32_t tensor = place.base - first_tensor_base;
    buffer = tensor < first_output_ ? Buffer::input : Buffer::output;
    offset += begins_[tensor];
  }
  return strided(buffer, offset, piece.block, piece.rows, piece.stride[operand] / bytes);
}

Schedule Plan::schedule() const {
  std::vector<Step> steps;
  std::vector<Region> regions;
  std::vector<std::vector<std::uint32_t>> waits_for(items_.size());
  for (std::uint32_t i = 0; i < items_.size(); ++i) {
    for (const std::uint32_t next : dependents_of(i)) waits_for[next].push_back(i);
  }
  Dependencies dependencies;
  for (std::uint32_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    Step step;
    step.kind = item.kind;
    step.lane = item.lane;
    step.peer = item.local() ? -1 : item.peer;
    step.round = rounds_[i];
    step.first = static_cast<std::uint32_t>(regions.size());
    for (int k = 0; k < operands(item.kind); ++k) {
      step.parts[k] = item.piece_count;
      for (const Piece& piece : pieces_of(item)) regions.push_back(region(piece, k));
    }
    steps.push_back(step);
    dependencies.list.insert(dependencies.list.end(), waits_for[i].begin(), waits_for[i].end());
    dependencies.end_step();
  }
  return Schedule(header_, std::move(steps), std::move(regions), std::move(dependencies));
}

std::uint32_t Plan::longest_channel() const {
  std::uint32_t longest = 0;
  for (const Channel& channel : channels_)
    longest = std::max(longest, channel.last - channel.first);
  return longest;
}

void Plan::append_pieces(const Schedule& schedule, const Step& step,
                         std::span<const std::int64_t> begins) {
  const auto bytes = static_cast<std::int64_t>(element_bytes_);
  const auto place = [&](const Region& region, std::int64_t offset) -> Place {
    if (region.buffer == Buffer::scratch) return {scratch_base, offset * bytes};
    if (region.buffer == Buffer::slot) return {slot_base, offset * bytes};
    const bool input = region.buffer == Buffer::input;
    const auto first = begins.begin() + (input ? 0 : first_output_);
    const auto last = input ? begins.begin() + first_output_ : begins.end();
    const auto tensor = std::upper_bound(first, last, offset) - 1;
    return {first_tensor_base + static_cast<std::uint32_t>(tensor - begins.begin()),
            (offset - *tensor) * bytes};
  };
  const int n = operands(step.kind);
  Cursor cursors[3] = {Cursor(schedule.operand(step, 0)), Cursor(schedule.operand(step, 1)),
                       Cursor(schedule.operand(step, 2))};
  while (!cursors[0].done()) {
    Piece piece;
    piece.block = cursors[0].run();
    for (int k = 1; k < n; ++k) piece.block = std::min(piece.block, cursors[k].run());
    piece.rows = cursors[0].rows(piece.block).first;
    for (int k = 1; k < n; ++k)
      piece.rows = std::min(piece.rows, cursors[k].rows(piece.block).first);
    for (int k = 0; k < n; ++k) {
      piece.at[k] = place(cursors[k].region(), cursors[k].offset());
      piece.stride[k] = cursors[k].rows(piece.block).second * bytes;
    }
    for (int k = 0; k < n; ++k) cursors[k].advance(piece.block * piece.rows);
    pieces_.push_back(piece);
  }
}

}  // namespace baton::execute
