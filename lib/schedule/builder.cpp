#include "baton/schedule/builder.hpp"

#include <cassert>

#include "builder_state.hpp"

namespace baton {
namespace {

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

ScheduleBuilder::State::State(const Problem& problem) : p(problem), writer(header_of(problem)) {}

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
  const bool in_input = p.aliased() && scattering(p.collective);
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

void ScheduleBuilder::compute(const Computation& computation, const Regions& reads,
                              const Regions& writes) {
  Step step = state_->step(StepKind::compute);
  step.peer = state_->writer.computation(computation);
  const Regions from = state_->read(reads);
  state_->writer.append(step, state_->write(writes), from);
}

void ScheduleBuilder::lane(int lane) {
  assert(lane >= 0 && lane < scheduling::ScheduleWriter::lanes);
  state_->lane = static_cast<std::uint8_t>(lane);
}
void ScheduleBuilder::end_round() { ++state_->round; }
int ScheduleBuilder::round() const { return state_->round; }

Schedule ScheduleBuilder::build(std::string algorithm) {
  if (result_is_work(state_->p)) {
    state_->fill(state_->p.collective == Collective::reduce_scatter ? state_->chunk_of_rank()
                                                                    : work());
  }
  state_->join_last_round();
  state_->writer.header().algorithm = std::move(algorithm);
  return state_->writer.build();
}

}  // namespace baton
