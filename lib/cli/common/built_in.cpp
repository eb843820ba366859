#include "built_in.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "baton/mpi.hpp"
#include "typed.hpp"

namespace baton::cli {
namespace {

MPI_Comm world() { return MPI_COMM_WORLD; }

/// The collectives under one of their two names.
struct Functions {
  decltype(&MPI_Bcast) bcast;
  decltype(&MPI_Reduce) reduce;
  decltype(&MPI_Allreduce) allreduce;
  decltype(&MPI_Gather) gather;
  decltype(&MPI_Gatherv) gatherv;
  decltype(&MPI_Scatter) scatter;
  decltype(&MPI_Scatterv) scatterv;
  decltype(&MPI_Allgather) allgather;
  decltype(&MPI_Allgatherv) allgatherv;
  decltype(&MPI_Reduce_scatter) reduce_scatter;
  decltype(&MPI_Reduce_scatter_block) reduce_scatter_block;
  decltype(&MPI_Alltoall) alltoall;
  decltype(&MPI_Alltoallw) alltoallw;
  decltype(&MPI_Scan) scan;
  decltype(&MPI_Exscan) exscan;
  decltype(&MPI_Barrier) barrier;
};

constexpr Functions program_functions = {MPI_Bcast,
                                         MPI_Reduce,
                                         MPI_Allreduce,
                                         MPI_Gather,
                                         MPI_Gatherv,
                                         MPI_Scatter,
                                         MPI_Scatterv,
                                         MPI_Allgather,
                                         MPI_Allgatherv,
                                         MPI_Reduce_scatter,
                                         MPI_Reduce_scatter_block,
                                         MPI_Alltoall,
                                         MPI_Alltoallw,
                                         MPI_Scan,
                                         MPI_Exscan,
                                         MPI_Barrier};
constexpr Functions library_functions = {PMPI_Bcast,
                                         PMPI_Reduce,
                                         PMPI_Allreduce,
                                         PMPI_Gather,
                                         PMPI_Gatherv,
                                         PMPI_Scatter,
                                         PMPI_Scatterv,
                                         PMPI_Allgather,
                                         PMPI_Allgatherv,
                                         PMPI_Reduce_scatter,
                                         PMPI_Reduce_scatter_block,
                                         PMPI_Alltoall,
                                         PMPI_Alltoallw,
                                         PMPI_Scan,
                                         PMPI_Exscan,
                                         PMPI_Barrier};

MPI_Datatype mpi_type(Datatype type, bool reduced) {
  switch (type) {
    case Datatype::i8:
      return MPI_INT8_T;
    case Datatype::u8:
      return MPI_UINT8_T;
    case Datatype::i32:
      return MPI_INT32_T;
    case Datatype::u32:
      return MPI_UINT32_T;
    case Datatype::i64:
      return MPI_INT64_T;
    case Datatype::u64:
      return MPI_UINT64_T;
    case Datatype::f8e4m3:
    case Datatype::f8e5m2:
      return reduced ? MPI_DATATYPE_NULL : MPI_UINT8_T;
    case Datatype::f16:
    case Datatype::bf16:
      return reduced ? MPI_DATATYPE_NULL : MPI_UINT16_T;
    case Datatype::f32:
      return MPI_FLOAT;
    default:
      return MPI_DOUBLE;
  }
}

MPI_Op mpi_op(OpKind op) {
  switch (op) {
    case OpKind::prod:
      return MPI_PROD;
    case OpKind::min:
      return MPI_MIN;
    case OpKind::max:
      return MPI_MAX;
    case OpKind::logical_and:
      return MPI_LAND;
    case OpKind::logical_or:
      return MPI_LOR;
    case OpKind::logical_xor:
      return MPI_LXOR;
    case OpKind::bit_and:
      return MPI_BAND;
    case OpKind::bit_or:
      return MPI_BOR;
    case OpKind::bit_xor:
      return MPI_BXOR;
    default:
      return MPI_SUM;
  }
}

/// A committed datatype of our own.
class Derived {
 public:
  explicit Derived(MPI_Datatype made) : type_(made) {
    mpi_checked(MPI_Type_commit(&type_), "MPI_Type_commit");
  }
  ~Derived() { MPI_Type_free(&type_); }
  Derived(const Derived&) = delete;
  Derived& operator=(const Derived&) = delete;
  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_;
};

/// Part `i` of `parts` of a tensor, cut along `dim`.
std::shared_ptr<Derived> slice(const Shape& shape, int dim, int parts, int i, MPI_Datatype type) {
  std::vector<int> whole, part, start;
  for (int d = 0; d < shape.rank(); ++d) {
    const auto extent = static_cast<int>(shape[d]);
    whole.push_back(extent);
    part.push_back(d == dim ? extent / parts : extent);
    start.push_back(d == dim ? extent / parts * i : 0);
  }
  MPI_Datatype made = MPI_DATATYPE_NULL;
  mpi_checked(MPI_Type_create_subarray(shape.rank(), whole.data(), part.data(), start.data(),
                                       MPI_ORDER_C, type, &made),
              "MPI_Type_create_subarray");
  return std::make_shared<Derived>(made);
}

struct Buffers {
  const void* input;
  void* output;
};

/// A call of `function`, which MPI knows as `name`.
template <class Function, class... Arguments>
BuiltIn built_in(const char* name, Function function, Arguments... arguments) {
  return {name, [=] { mpi_checked(function(arguments...), name); }};
}

/// all_to_all of tensors: MPI_Alltoallw of subarrays.
BuiltIn exchange(const TensorShapes& shapes, int ranks, MPI_Datatype type, const Buffers& buffers,
                 const Functions& mpi) {
  std::vector<std::shared_ptr<Derived>> own;
  std::vector<MPI_Datatype> sent, received;
  for (int r = 0; r < ranks; ++r) {
    own.push_back(slice(shapes.input, shapes.scatter_dim, ranks, r, type));
    sent.push_back(own.back()->get());
    own.push_back(slice(shapes.output, shapes.gather_dim, ranks, r, type));
    received.push_back(own.back()->get());
  }
  const std::vector<int> ones(static_cast<std::size_t>(ranks), 1),
      zeros(static_cast<std::size_t>(ranks), 0);
  return {"MPI_Alltoallw", [=, call = mpi.alltoallw, keep = std::move(own)] {
            mpi_checked(call(buffers.input, ones.data(), zeros.data(), sent.data(), buffers.output,
                             ones.data(), zeros.data(), received.data(), world()),
                        "MPI_Alltoallw");
          }};
}

/// all_gather of tensors: every block is a slice of the output, one slice's width after the last.
BuiltIn join(const TensorShapes& shapes, int ranks, MPI_Datatype type, std::size_t element,
             const Buffers& buffers, const Functions& mpi) {
  const auto first = slice(shapes.output, shapes.gather_dim, ranks, 0, type);
  const std::int64_t width = shapes.input.product(shapes.gather_dim, shapes.input.rank()) *
                             static_cast<std::int64_t>(element);
  MPI_Datatype made = MPI_DATATYPE_NULL;
  mpi_checked(MPI_Type_create_resized(first->get(), 0, static_cast<MPI_Aint>(width), &made),
              "MPI_Type_create_resized");
  const auto block = std::make_shared<Derived>(made);
  const auto count = static_cast<int>(shapes.input.elements());
  return {"MPI_Allgather", [=, call = mpi.allgather] {
            mpi_checked(call(buffers.input, count, type, buffers.output, 1, block->get(), world()),
                        "MPI_Allgather");
          }};
}

using Counts = std::shared_ptr<const std::vector<int>>;

Counts counts_of(const std::vector<std::int64_t>& values) {
  return std::make_shared<const std::vector<int>>(values.begin(), values.end());
}

/// The uneven forms, for schedules of a user.
std::vector<BuiltIn> uneven(const Case& e, int rank, MPI_Datatype type, MPI_Op op, const Buffers& b,
                            const Functions& mpi) {
  const auto& blocks = e.problem.input_blocks ? *e.problem.input_blocks : *e.problem.output_blocks;
  const Counts counts = counts_of(blocks.counts), offsets = counts_of(blocks.offsets);
  const int own = (*counts)[static_cast<std::size_t>(rank)], root = e.problem.root;
  const auto with_counts = [&](const char* name, auto call) {
    return std::vector<BuiltIn>{
        {name, [=] { mpi_checked(call(counts->data(), offsets->data()), name); }}};
  };
  switch (e.collective()) {
    case Collective::gather:
      return with_counts("MPI_Gatherv", [=, f = mpi.gatherv](const int* n, const int* at) {
        return f(b.input, own, type, b.output, n, at, type, root, world());
      });
    case Collective::scatter:
      return with_counts("MPI_Scatterv", [=, f = mpi.scatterv](const int* n, const int* at) {
        return f(b.input, n, at, type, b.output, own, type, root, world());
      });
    case Collective::all_gather:
      return with_counts("MPI_Allgatherv", [=, f = mpi.allgatherv](const int* n, const int* at) {
        return f(b.input, own, type, b.output, n, at, type, world());
      });
    case Collective::reduce_scatter:
      return with_counts("MPI_Reduce_scatter", [=, f = mpi.reduce_scatter](const int* n, auto) {
        return f(b.input, b.output, n, type, op, world());
      });
    default:
      return {};
  }
}

std::vector<BuiltIn> even(const Case& e, MPI_Datatype type, MPI_Op op, const Buffers& b,
                          const Functions& mpi) {
  const auto n = static_cast<int>(e.problem.count);
  const int root = e.problem.root;
  const void* const in = b.input;
  void* const out = b.output;
  const MPI_Comm comm = world();
  switch (e.collective()) {
    case Collective::broadcast:
      return {built_in("MPI_Bcast", mpi.bcast, out, n, type, root, comm)};
    case Collective::reduce:
      return {built_in("MPI_Reduce", mpi.reduce, in, out, n, type, op, root, comm)};
    case Collective::all_reduce:
      return {built_in("MPI_Allreduce", mpi.allreduce, in, out, n, type, op, comm)};
    case Collective::gather:
      return {built_in("MPI_Gather", mpi.gather, in, n, type, out, n, type, root, comm)};
    case Collective::scatter:
      return {built_in("MPI_Scatter", mpi.scatter, in, n, type, out, n, type, root, comm)};
    case Collective::all_gather:
      return {built_in("MPI_Allgather", mpi.allgather, in, n, type, out, n, type, comm)};
    case Collective::reduce_scatter: {
      const auto counts = counts_of(
          std::vector<std::int64_t>(static_cast<std::size_t>(e.ranks()), e.problem.count));
      return {built_in("MPI_Reduce_scatter_block", mpi.reduce_scatter_block, in, out, n, type, op,
                       comm),
              {"MPI_Reduce_scatter", [=, call = mpi.reduce_scatter] {
                 mpi_checked(call(in, out, counts->data(), type, op, comm), "MPI_Reduce_scatter");
               }}};
    }
    case Collective::all_to_all:
      return {built_in("MPI_Alltoall", mpi.alltoall, in, n, type, out, n, type, comm)};
    case Collective::scan:
      return {built_in("MPI_Scan", mpi.scan, in, out, n, type, op, comm)};
    case Collective::exscan:
      return {built_in("MPI_Exscan", mpi.exscan, in, out, n, type, op, comm)};
    case Collective::barrier:
      return {built_in("MPI_Barrier", mpi.barrier, comm)};
  }
  return {};
}

/// MPI has no avg: a sum and a plain loop.
template <class T>
void divide(void* data, std::int64_t count, int ranks) {
  if constexpr (!is_narrow<T>) {
    using Divisor = std::conditional_t<std::is_unsigned_v<T>, std::uint64_t,
                                       std::conditional_t<std::is_integral_v<T>, std::int64_t, T>>;
    T* const values = static_cast<T*>(data);
    const auto divisor = static_cast<Divisor>(ranks);
    for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<T>(values[i] / divisor);
  }
}

}  // namespace

std::vector<BuiltIn> mpi_built_ins(const Case& subject, int rank, const void* input, void* output,
                                   Entry entry) {
  const bool reduces = reducing(subject.collective());
  const MPI_Datatype type = mpi_type(subject.type, reduces);
  const std::int64_t most = std::max(subject.problem.total_count(), subject.problem.count);
  if (type == MPI_DATATYPE_NULL || most > std::numeric_limits<int>::max()) return {};
  const Functions& mpi = entry == Entry::program ? program_functions : library_functions;
  const Buffers buffers{input, output};
  if (subject.tensor) {
    if (subject.collective() == Collective::all_to_all) {
      return {exchange(*subject.tensor, subject.ranks(), type, buffers, mpi)};
    }
    return {join(*subject.tensor, subject.ranks(), type, size_of(subject.type), buffers, mpi)};
  }
  const MPI_Op op = mpi_op(subject.op);
  std::vector<BuiltIn> all = subject.problem.uneven()
                                 ? uneven(subject, rank, type, op, buffers, mpi)
                                 : even(subject, type, op, buffers, mpi);
  if (!reduces || subject.op != OpKind::avg) return all;
  const std::int64_t count = subject.output_count(rank);
  for (BuiltIn& one : all) {
    one.run = [=, run = one.run, datatype = subject.type, ranks = subject.ranks()] {
      run();
      with_type(datatype, [&](auto* p) { divide<Pointee<decltype(p)>>(output, count, ranks); });
    };
  }
  return all;
}

void mpi_checked(int code, const char* function) {
  if (code == MPI_SUCCESS) return;
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  text.resize(static_cast<std::size_t>(length));
  throw Error(ErrorCode::transport,
              fmt::format("expected {} to succeed, found it fail: {}", function, text));
}

}  // namespace baton::cli
