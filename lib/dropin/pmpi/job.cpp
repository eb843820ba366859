#include "job.hpp"

#include <algorithm>
#include <utility>

namespace baton::pmpi {
namespace {

constexpr const char* wrong_argument = "an argument that MPI refuses";
constexpr const char* undefined_op = "an operation that MPI does not define on the datatype";

/// One past the last byte of any block.
std::int64_t extent_of(const std::vector<std::int64_t>& counts,
                       const std::vector<std::int64_t>& offsets) {
  std::int64_t end = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) end = std::max(end, offsets[i] + counts[i]);
  }
  return end;
}

}  // namespace

const char* Job::set(Side& side, void* base, MPI_Datatype type, int blocks, std::int64_t count) {
  const TypeInfo* const info = datatypes_->find(type);
  if (!info || count < 0 || base == MPI_IN_PLACE) return wrong_argument;
  side.even(base, type, *info, blocks, count);
  return nullptr;
}

const char* Job::set(Side& side, void* base, MPI_Datatype type, Numbers counts, Numbers displs) {
  const TypeInfo* const info = datatypes_->find(type);
  if (!info || !counts || base == MPI_IN_PLACE || negative(counts)) return wrong_argument;
  side.uneven(base, type, *info, group_->size, counts, displs);
  return nullptr;
}

const char* Job::set(Side& side, void* base, const MPI_Datatype* types, Numbers counts,
                     Numbers displs) {
  static constexpr TypeInfo nothing{};  // a block without elements may have no datatype
  if (!types || !counts || !displs || base == MPI_IN_PLACE || negative(counts))
    return wrong_argument;
  std::vector<const TypeInfo*> infos;
  for (int i = 0; i < group_->size; ++i) {
    infos.push_back(counts[i] > 0 ? datatypes_->find(types[i]) : &nothing);
    if (!infos.back()) return wrong_argument;
  }
  side.mixed(base, types, std::move(infos), counts, displs);
  return nullptr;
}

bool Job::negative(Numbers counts) const {
  for (int i = 0; i < group_->size; ++i) {
    if (counts[i] < 0) return true;
  }
  return false;
}

void Job::keep_lists() {
  in_.keep_lists();
  out_.keep_lists();
}

const char* Job::prepare(const MpiCall& mpi, const Group& group, Datatypes& datatypes) {
  mpi_ = mpi;
  group_ = &group;
  datatypes_ = &datatypes;
  call_ = Call();
  call_.collective = functions[static_cast<std::size_t>(mpi.function)].collective;
  bytes_ = 0;
  has_in_ = has_out_ = in_place_ = false;
  fold_.reset();
  if (call_.collective == Collective::barrier) return nullptr;
  if (rooted(call_.collective)) {
    if (mpi.root < 0 || mpi.root >= group.size) return wrong_argument;
    call_.root = mpi.root;
  }
  return reducing(call_.collective) ? prepare_reduction() : prepare_move();
}

const char* Job::prepare_move() {
  const MpiCall& m = mpi_;
  void* const send = const_cast<void*>(m.send);
  const int size = group_->size;
  const char* wrong = nullptr;
  has_in_ = has_out_ = true;
  switch (m.function) {
    case Function::bcast:
      has_in_ = false;
      wrong = set(out_, m.recv, m.recv_type, 1, m.recv_count);
      break;
    case Function::gather:
    case Function::gatherv:
      has_out_ = at_root();
      in_place_ = at_root() && m.send == MPI_IN_PLACE;
      if (has_out_ && m.function == Function::gather)
        wrong = set(out_, m.recv, m.recv_type, size, m.recv_count);
      if (has_out_ && m.function == Function::gatherv)
        wrong = set(out_, m.recv, m.recv_type, m.recv_counts, m.recv_displs);
      if (!wrong && !in_place_) wrong = set(in_, send, m.send_type, 1, m.send_count);
      call_.counts_at_root = m.function == Function::gatherv;
      break;
    case Function::scatter:
    case Function::scatterv:
      has_in_ = at_root();
      in_place_ = at_root() && m.recv == MPI_IN_PLACE;
      if (has_in_ && m.function == Function::scatter)
        wrong = set(in_, send, m.send_type, size, m.send_count);
      if (has_in_ && m.function == Function::scatterv)
        wrong = set(in_, send, m.send_type, m.send_counts, m.send_displs);
      if (!wrong && !in_place_) wrong = set(out_, m.recv, m.recv_type, 1, m.recv_count);
      call_.counts_at_root = m.function == Function::scatterv;
      break;
    case Function::allgather:
    case Function::allgatherv:
      in_place_ = m.send == MPI_IN_PLACE;
      wrong = m.function == Function::allgather
                  ? set(out_, m.recv, m.recv_type, size, m.recv_count)
                  : set(out_, m.recv, m.recv_type, m.recv_counts, m.recv_displs);
      if (!wrong && !in_place_) wrong = set(in_, send, m.send_type, 1, m.send_count);
      break;
    case Function::alltoall:
      in_place_ = m.send == MPI_IN_PLACE;
      wrong = set(out_, m.recv, m.recv_type, size, m.recv_count);
      if (!wrong && !in_place_) wrong = set(in_, send, m.send_type, size, m.send_count);
      break;
    case Function::alltoallw:
      in_place_ = m.send == MPI_IN_PLACE;
      wrong = set(out_, m.recv, m.recv_types, m.recv_counts, m.recv_displs);
      if (!wrong && !in_place_) wrong = set(in_, send, m.send_types, m.send_counts, m.send_displs);
      break;
    default:  // alltoallv
      in_place_ = m.send == MPI_IN_PLACE;
      wrong = set(out_, m.recv, m.recv_type, m.recv_counts, m.recv_displs);
      if (!wrong && !in_place_) wrong = set(in_, send, m.send_type, m.send_counts, m.send_displs);
      break;
  }
  if (!wrong) place_moved();
  return wrong;
}

void Job::place_moved() {
  if (in_place_) (mpi_.recv == MPI_IN_PLACE ? has_out_ : has_in_) = false;
  if (call_.collective == Collective::broadcast && group_->size == 1) {
    bytes_ = out_.bytes();
    has_out_ = false;  // nothing moves
  }
  if (has_in_) in_.place();
  if (has_out_) out_.place();
  const int rank = group_->rank;
  // In place, the missing side is the own block of the other side, or all of it.
  const bool whole = call_.collective == Collective::all_to_all;
  const Side& source = has_in_ ? in_ : out_;
  const Side& target = has_out_ ? out_ : in_;
  if (has_in_ || in_place_) {
    const bool part = !has_in_ && !whole;
    call_.input = {part ? source.block(rank) : source.data(),
                   part ? source.block_bytes(rank) : source.bytes(), Datatype::u8};
  }
  if (has_out_ || in_place_) {
    const bool part = !has_out_ && !whole;
    call_.output = {part ? target.block(rank) : target.data(),
                    part ? target.block_bytes(rank) : target.bytes(), Datatype::u8};
  }
  bytes_ = std::max({bytes_, call_.input.count, call_.output.count});
  const auto uneven_in = [&](const Side& side) {
    side.layout(in_counts_, in_offsets_);
    call_.send_counts = in_counts_;
    call_.send_offsets = in_offsets_;
    call_.input.count = extent_of(in_counts_, in_offsets_);
  };
  const auto uneven_out = [&](const Side& side) {
    side.layout(out_counts_, out_offsets_);
    call_.recv_counts = out_counts_;
    call_.recv_offsets = out_offsets_;
    call_.output.count = extent_of(out_counts_, out_offsets_);
  };
  if (mpi_.function == Function::gatherv && has_out_) uneven_out(out_);
  if (mpi_.function == Function::scatterv && has_in_) uneven_in(in_);
  if (mpi_.function == Function::allgatherv) uneven_out(out_);
  if (mpi_.function == Function::alltoallv || mpi_.function == Function::alltoallw) {
    uneven_in(source);
    uneven_out(out_);
  }
}

const char* Job::prepare_reduction() {
  const MpiCall& m = mpi_;
  const TypeInfo* const info = datatypes_->find(m.recv_type);
  if (!info || m.op == MPI_OP_NULL) return wrong_argument;
  const auto native = native_op(m.op);
  if (native ? (info->group & native->groups) == 0
             : one_sided(m.op) || (locates(m.op) && info->group != pair))
    return undefined_op;

  const int size = group_->size;
  void* const send = const_cast<void*>(m.send);
  const bool scatters =
      m.function == Function::reduce_scatter || m.function == Function::reduce_scatter_block;
  in_place_ = m.send == MPI_IN_PLACE && (m.function != Function::reduce || at_root());
  has_in_ = has_out_ = true;
  const char* wrong = nullptr;
  if (scatters) {
    void* const from = in_place_ ? m.recv : send;
    wrong = m.function == Function::reduce_scatter
                ? set(in_, from, m.recv_type, m.recv_counts, {})
                : set(in_, from, m.recv_type, size, m.recv_count);
    if (!wrong) wrong = set(out_, m.recv, m.recv_type, 1, in_.elements(group_->rank));
    // In place, schedules would use all blocks as work, but programs rely on the blocks behind the
    // result staying as they were. So the result is made apart.
    if (in_place_) out_.copy();
  } else {
    has_out_ = m.function != Function::reduce || at_root();
    has_in_ = !in_place_;
    // The first rank's output of an exclusive scan may be no memory, so a copy stands for it.
    const bool unused = m.function == Function::exscan && group_->rank == 0 && has_in_;
    if (has_out_) wrong = set(out_, unused ? nullptr : m.recv, m.recv_type, 1, m.recv_count);
    if (!wrong && has_in_) wrong = set(in_, send, m.recv_type, 1, m.recv_count);
    if (unused) out_.copy();
  }
  if (wrong) return wrong;
  if (native && info->native != Datatype::user)
    call_.op = native->kind;
  else if (info->size > 0)
    fold_.emplace(*datatypes_, m.recv_type, *info, m.op);
  if (fold_) call_.op = fold_->op();
  place_reduced();
  return nullptr;
}

void Job::place_reduced() {
  if (has_in_) in_.place();
  if (has_out_) out_.place();
  const TypeInfo& info = has_in_ ? in_.info() : out_.info();
  const Datatype type = fold_ ? Datatype::user : info.size > 0 ? info.native : Datatype::u8;
  const auto elements = [&](std::int64_t bytes) { return info.size > 0 ? bytes / info.size : 0; };
  const Side& source = has_in_ ? in_ : out_;
  call_.input = {source.data(), elements(source.bytes()), type};
  bytes_ = source.bytes();
  if (has_out_) call_.output = {out_.data(), elements(out_.bytes()), type};
  if (mpi_.function == Function::reduce_scatter && info.size > 0) {
    in_counts_.clear();
    for (int i = 0; i < group_->size; ++i) in_counts_.push_back(mpi_.recv_counts[i]);
    if (std::ranges::count(in_counts_, in_counts_[0]) < group_->size)
      call_.send_counts = in_counts_;
  }
}

int Job::before() {
  const int rank = group_->rank;
  switch (call_.collective) {
    case Collective::barrier:
      return MPI_SUCCESS;
    case Collective::broadcast:
      return at_root() && has_out_ ? out_.pack(*datatypes_) : MPI_SUCCESS;
    case Collective::gather:
    case Collective::all_gather:
      return has_in_     ? in_.pack(*datatypes_)
             : in_place_ ? out_.pack(*datatypes_, rank, rank + 1)
                         : MPI_SUCCESS;
    default:
      return has_in_ ? in_.pack(*datatypes_) : in_place_ ? out_.pack(*datatypes_) : MPI_SUCCESS;
  }
}

int Job::after() {
  if (fold_ && fold_->code() != MPI_SUCCESS) return fold_->code();
  switch (call_.collective) {
    case Collective::barrier:
      return MPI_SUCCESS;
    case Collective::broadcast:
      return at_root() ? MPI_SUCCESS : out_.unpack(*datatypes_);
    case Collective::exscan:
      return group_->rank == 0 ? MPI_SUCCESS : out_.unpack(*datatypes_);
    default:
      return has_out_ ? out_.unpack(*datatypes_) : MPI_SUCCESS;
  }
}

}  // namespace baton::pmpi
