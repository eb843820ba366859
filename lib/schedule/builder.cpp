#include "baton/schedule/builder.hpp"

#include <cassert>
#include <iterator>
#include <map>

#include "writer.hpp"

namespace baton {
namespace {

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

Schedule::Header header_of(const Problem& p) {
  Schedule::Header header;
  header.collective = p.collective;
  header.size = p.size;
  header.rank = p.rank;
  header.root = p.root;
  header.input = p.input_extent();
  header.output = p.output_extent();
  header.in_place = p.aliased();
  return header;
}

/// Whether the result that this rank is asked for is (part of) the work buffer.
bool result_is_work(const Problem& p) {
  return p.collective == Collective::all_reduce || p.collective == Collective::scan ||
         p.collective == Collective::reduce_scatter ||
         (p.collective == Collective::reduce && p.rank == p.root);
}

}  // namespace

Region Chunks::operator[](std::int64_t i) const {
  const int k = static_cast<int>(((i % size_) + size_) % size_);
  if (blocks_) {
    const auto b = static_cast<std::size_t>(k);
    return contiguous(buffer_, base_ + blocks_->offsets[b], blocks_->counts[b]);
  }
  if (even_ >= 0) {
    const std::int64_t row = even_ / rows_;
    return strided(buffer_, base_ + k * row, row, rows_, size_ * row);
  }
  return contiguous(buffer_, base_ + chunk_offset(total_, size_, k), chunk_count(total_, size_, k));
}

std::int64_t Chunks::count(std::int64_t i) const { return (*this)[i].length(); }

Regions Chunks::range(std::int64_t first, std::int64_t n) const {
  Regions regions;
  const auto append = [&](const Region& region) {
    if (region.empty()) return;
    const bool touches = !regions.empty() && regions.back().contiguous() && region.contiguous() &&
                         regions.back().end() == region.offset;
    if (touches) {
      regions.back().block += region.block;
    } else {
      regions.push_back(region);
    }
  };
  if (blocks_ || rows_ > 1) {
    for (std::int64_t i = 0; i < n; ++i) append((*this)[first + i]);
    return regions;
  }
  while (n > 0) {
    const std::int64_t begin = ((first % size_) + size_) % size_;
    const std::int64_t run = std::min<std::int64_t>(n, size_ - begin);
    const Region head = (*this)[begin], tail = (*this)[begin + run - 1];
    append(contiguous(buffer_, head.offset, tail.offset + tail.block - head.offset));
    first += run;
    n -= run;
  }
  return regions;
}

struct ScheduleBuilder::State {
  explicit State(const Problem& problem) : p(problem), writer(header_of(problem)) {}

  Problem p;
  ScheduleWriter writer;
  Intervals written;          // parts of work that results have been written to
  std::int64_t backing = -1;  // scratch behind work, once there is some
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
    std::int64_t length = 0;
    for (const Region& region : like) length += region.length();
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
    if (p.average) writer.append(step(StepKind::finish), read(std::span(&region, 1)));
  }

  Side side_of(int peer) const { return peer < p.rank ? Side::left : Side::right; }
};

ScheduleBuilder::ScheduleBuilder(const Problem& problem)
    : state_(std::make_unique<State>(problem)) {}
ScheduleBuilder::~ScheduleBuilder() = default;

Region ScheduleBuilder::input() const {
  const Problem& p = state_->p;
  if (p.collective == Collective::broadcast) return output();
  if (!p.aliased()) return contiguous(Buffer::input, 0, p.input_extent());
  switch (p.collective) {
    case Collective::gather:
    case Collective::all_gather:
      return output_blocks()[p.rank];
    case Collective::scatter:
    case Collective::reduce_scatter:
      return contiguous(Buffer::input, 0, p.input_extent());
    default:
      return contiguous(Buffer::output, 0, p.output_extent());
  }
}

Region ScheduleBuilder::output() const {
  const Problem& p = state_->p;
  const bool in_input = p.aliased() && (p.collective == Collective::scatter ||
                                        p.collective == Collective::reduce_scatter);
  return in_input ? input_blocks()[p.rank] : contiguous(Buffer::output, 0, p.output_extent());
}

Region ScheduleBuilder::work() const {
  const Problem& p = state_->p;
  return contiguous(Buffer::work, 0,
                    p.collective == Collective::reduce_scatter ? p.input_extent() : p.count);
}

Chunks ScheduleBuilder::input_blocks() const {
  const Problem& p = state_->p;
  Chunks chunks;
  chunks.buffer_ =
      p.aliased() && p.collective == Collective::all_to_all ? Buffer::output : Buffer::input;
  chunks.size_ = p.size;
  chunks.even_ = p.count;
  chunks.rows_ = p.input_rows;
  chunks.blocks_ = p.input_blocks;
  return chunks;
}

Chunks ScheduleBuilder::output_blocks() const {
  const Problem& p = state_->p;
  Chunks chunks;
  chunks.buffer_ = Buffer::output;
  chunks.size_ = p.size;
  chunks.even_ = p.count;
  chunks.rows_ = p.output_rows;
  chunks.blocks_ = p.output_blocks;
  return chunks;
}

Chunks ScheduleBuilder::chunks(int n) const {
  const Problem& p = state_->p;
  if (p.collective != Collective::reduce_scatter) return chunks(work(), n);
  assert(n == p.size);
  Chunks chunks = input_blocks();
  chunks.buffer_ = Buffer::work;
  return chunks;
}

Chunks ScheduleBuilder::chunks(const Region& region, int n) const {
  assert(region.contiguous());
  Chunks chunks;
  chunks.buffer_ = region.buffer;
  chunks.base_ = region.offset;
  chunks.size_ = n;
  chunks.total_ = region.block;
  return chunks;
}

Region ScheduleBuilder::scratch(std::int64_t count) { return state_->scratch(count); }

void ScheduleBuilder::send(int peer, const Region& region) { state_->send(peer, {&region, 1}); }
void ScheduleBuilder::send(int peer, const Regions& regions) { state_->send(peer, regions); }
void ScheduleBuilder::recv(int peer, const Region& region) { state_->recv(peer, {&region, 1}); }
void ScheduleBuilder::recv(int peer, const Regions& regions) { state_->recv(peer, regions); }

void ScheduleBuilder::recv_reduce(int peer, const Region& region) {
  recv_reduce(peer, region, state_->side_of(peer));
}
void ScheduleBuilder::recv_reduce(int peer, const Region& region, Side message) {
  recv_reduce(peer, region, region, message);
}
void ScheduleBuilder::recv_reduce(int peer, const Regions& regions) {
  recv_reduce(peer, regions, state_->side_of(peer));
}
void ScheduleBuilder::recv_reduce(int peer, const Regions& regions, Side message) {
  state_->recv_reduce(peer, regions, regions, message);
}
void ScheduleBuilder::recv_reduce(int peer, const Region& into, const Region& own, Side message) {
  state_->recv_reduce(peer, {&into, 1}, {&own, 1}, message);
}
void ScheduleBuilder::recv_reduce(int peer, const Regions& into, const Regions& own, Side message) {
  state_->recv_reduce(peer, into, own, message);
}
void ScheduleBuilder::recv_late(int peer, const Region& region) {
  state_->recv_late(peer, {&region, 1});
}
void ScheduleBuilder::recv_late(int peer, const Regions& regions) {
  state_->recv_late(peer, regions);
}

void ScheduleBuilder::fold(const Region& into, const Region& left, const Region& right) {
  const Regions a = state_->read({&left, 1}), b = state_->read({&right, 1});
  state_->writer.append(state_->step(StepKind::fold), state_->write({&into, 1}), a, b);
}
void ScheduleBuilder::copy(const Region& to, const Region& from) {
  state_->copy({&to, 1}, {&from, 1});
}
void ScheduleBuilder::copy(const Regions& to, const Regions& from) { state_->copy(to, from); }
void ScheduleBuilder::reduced(const Region& region) { state_->reduced(region); }
void ScheduleBuilder::reduced(const Regions& regions) {
  for (const Region& region : regions) state_->reduced(region);
}

void ScheduleBuilder::lane(int lane) {
  assert(lane >= 0 && lane < ScheduleWriter::lanes);
  state_->lane = static_cast<std::uint8_t>(lane);
}
void ScheduleBuilder::end_round() { ++state_->round; }
int ScheduleBuilder::round() const { return state_->round; }

Schedule ScheduleBuilder::finish(std::string algorithm) {
  if (result_is_work(state_->p)) {
    state_->fill(state_->p.collective == Collective::reduce_scatter ? state_->chunk_of_rank()
                                                                    : work());
  }
  state_->writer.header().algorithm = std::move(algorithm);
  return state_->writer.finish();
}

}  // namespace baton
