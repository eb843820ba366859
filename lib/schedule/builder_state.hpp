#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

#include "baton/schedule/builder.hpp"
#include "slots.hpp"
#include "writer.hpp"

namespace baton::scheduling {

/// Disjoint intervals of integers, merged where they touch.
class Intervals {
 public:
  void add(std::int64_t begin, std::int64_t end) {
    auto next = parts_.lower_bound(begin);
    if (next != parts_.begin() && std::prev(next)->second >= begin) {
      --next;
      begin = next->first;
    }
    while (next != parts_.end() && next->first <= end) {
      end = std::max(end, next->second);
      next = parts_.erase(next);
    }
    parts_.emplace_hint(next, begin, end);
  }
  /// Calls visit(begin, end, inside) for the parts of [begin, end), in order.
  template <class Visit>
  void cut(std::int64_t begin, std::int64_t end, const Visit& visit) const {
    auto part = parts_.upper_bound(begin);
    if (part != parts_.begin() && std::prev(part)->second > begin) --part;
    while (begin < end) {
      const bool inside = part != parts_.end() && part->first <= begin;
      std::int64_t stop = part == parts_.end() ? end : inside ? part->second : part->first;
      stop = std::min(stop, end);
      visit(begin, stop, inside);
      begin = stop;
      if (inside) ++part;
    }
  }

 private:
  std::map<std::int64_t, std::int64_t> parts_;
};

}  // namespace baton::scheduling

namespace baton {

/// The steps that a builder has written so far, and where work lies by now.
struct ScheduleBuilder::State {
  explicit State(const Problem& problem);

  Problem p;
  scheduling::ScheduleWriter writer;
  scheduling::Intervals written;  // parts of work that results have been written to
  std::int64_t backing = -1;      // scratch behind work, once there is some
  std::uint8_t lane = 0;
  std::int32_t round = 0;

  Step step(StepKind kind, int peer = -1) const {
    Step step;
    step.kind = kind;
    step.lane = lane;
    step.peer = peer;
    step.round = round;
    return step;
  }

  Region scratch(std::int64_t count) {
    const Region region = contiguous(Buffer::scratch, writer.header().scratch, count);
    writer.header().scratch += count;
    return region;
  }

  /// Appends the place of the written part [begin, end) of work.
  void append_backing(std::int64_t begin, std::int64_t end, Regions& out) {
    if (p.collective == Collective::reduce_scatter) {
      const Region own = chunk_of_rank();
      const std::int64_t own_end = own.offset + own.block;
      if (begin < own.offset) {
        append_scratch(begin, std::min(end, own.offset), 0, p.input_extent() - own.block, out);
      }
      if (const std::int64_t b = std::max(begin, own.offset), e = std::min(end, own_end); b < e) {
        if (p.aliased()) {
          out.push_back(contiguous(Buffer::input, b, e - b));
        } else {
          out.push_back(contiguous(Buffer::output, b - own.offset, e - b));
        }
      }
      if (end > own_end) {
        append_scratch(std::max(begin, own_end), end, own.block, p.input_extent() - own.block, out);
      }
    } else if (p.collective == Collective::reduce && p.rank != p.root) {
      append_scratch(begin, end, 0, p.count, out);
    } else {
      out.push_back(contiguous(Buffer::output, begin, end - begin));
    }
  }
  void append_scratch(std::int64_t begin, std::int64_t end, std::int64_t skipped, std::int64_t size,
                      Regions& out) {
    if (backing < 0) backing = scratch(size).offset;
    out.push_back(contiguous(Buffer::scratch, backing + begin - skipped, end - begin));
  }
  Region chunk_of_rank() const {
    if (p.input_blocks) {
      const auto r = static_cast<std::size_t>(p.rank);
      return contiguous(Buffer::work, p.input_blocks->offsets[r], p.input_blocks->counts[r]);
    }
    return contiguous(Buffer::work, p.rank * p.count, p.count);
  }

  /// Work in one buffer: no need to tell read from written parts.
  bool work_is_output() const { return p.aliased() && p.collective != Collective::reduce_scatter; }

  /// Appends where the region is to be read now.
  void append_read(const Region& region, Regions& out) {
    if (region.buffer != Buffer::work) {
      out.push_back(region);
    } else if (work_is_output()) {
      out.push_back(contiguous(Buffer::output, region.offset, region.block));
    } else {
      written.cut(region.offset, region.offset + region.block,
                  [&](std::int64_t begin, std::int64_t end, bool inside) {
                    if (inside) {
                      append_backing(begin, end, out);
                    } else {
                      out.push_back(contiguous(Buffer::input, begin, end - begin));
                    }
                  });
    }
  }
  /// Appends where the region is to be written now.
  void append_write(const Region& region, Regions& out) {
    if (region.buffer != Buffer::work) {
      out.push_back(region);
    } else if (work_is_output()) {
      out.push_back(contiguous(Buffer::output, region.offset, region.block));
    } else if (!region.empty()) {
      append_backing(region.offset, region.offset + region.block, out);
      written.add(region.offset, region.offset + region.block);
    }
  }

  Regions read(std::span<const Region> regions) {
    Regions out;
    out.reserve(regions.size());
    for (const Region& region : regions) append_read(region, out);
    return out;
  }
  Regions write(std::span<const Region> regions) {
    Regions out;
    out.reserve(regions.size());
    for (const Region& region : regions) append_write(region, out);
    return out;
  }

  void send(int peer, std::span<const Region> regions) {
    writer.append(step(StepKind::send, peer), read(regions));
  }
  void recv(int peer, std::span<const Region> regions) {
    writer.append(step(StepKind::recv, peer), write(regions));
  }
  Region recv_slot(int peer, std::span<const Region> like) {
    const std::int64_t length = scheduling::length_of(like);
    if (length == 0) return {};
    const Region slot = writer.slot(lane, StepKind::recv, length);
    writer.append(step(StepKind::recv, peer), std::span(&slot, 1));
    return slot;
  }
  void recv_reduce(int peer, std::span<const Region> into, std::span<const Region> own,
                   Side message) {
    const Region slot = recv_slot(peer, own);
    if (slot.empty()) return;
    const Regions right = read(own);  // before `into` counts as written
    const Regions left{slot};
    const Regions to = write(into);
    if (message == Side::left) {
      writer.append(step(StepKind::fold), to, left, right);
    } else {
      writer.append(step(StepKind::fold), to, right, left);
    }
  }
  void recv_late(int peer, std::span<const Region> regions) {
    const Region slot = recv_slot(peer, regions);
    if (!slot.empty()) writer.append(step(StepKind::copy), write(regions), std::span(&slot, 1));
  }
  void copy(std::span<const Region> to, std::span<const Region> from) {
    const Regions source = read(from);
    const Regions target = write(to);
    if (target != source) writer.append(step(StepKind::copy), target, source);
  }
  /// Copies what no step has written of this part of work from the input.
  void fill(const Region& region) {
    if (work_is_output()) return;
    Regions missing;
    written.cut(region.offset, region.offset + region.block,
                [&](std::int64_t begin, std::int64_t end, bool inside) {
                  if (!inside) missing.push_back(contiguous(Buffer::work, begin, end - begin));
                });
    for (const Region& part : missing) copy(std::span(&part, 1), std::span(&part, 1));
  }
  void reduced(const Region& region) {
    if (region.empty()) return;
    if (region.buffer == Buffer::work) fill(region);
    if (p.average) writer.append(step(StepKind::divide), read(std::span(&region, 1)));
  }

  /// Steps behind the last end_round() belong to the round that it ended, unless they are messages:
  /// a round of its own would look like one more latency.
  void join_last_round() {
    auto& steps = writer.steps();
    auto first = steps.end();
    while (first != steps.begin() && std::prev(first)->round == round) --first;
    if (round == 0 || std::any_of(first, steps.end(), [](const Step& s) { return s.message(); }))
      return;
    for (; first != steps.end(); ++first) first->round = round - 1;
  }

  Side side_of(int peer) const { return peer < p.rank ? Side::left : Side::right; }
};

}  // namespace baton
