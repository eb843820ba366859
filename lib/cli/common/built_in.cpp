#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "baton/mpi.hpp"
#include "typed.hpp"
#include "world.hpp"

namespace baton::cli {
namespace {

MPI_Datatype mpi_type(Datatype type, bool reduced) {
  const std::pair<Datatype, MPI_Datatype> types[] = {
      {Datatype::i8, MPI_INT8_T},    {Datatype::u8, MPI_UINT8_T},  {Datatype::i32, MPI_INT32_T},
      {Datatype::u32, MPI_UINT32_T}, {Datatype::i64, MPI_INT64_T}, {Datatype::u64, MPI_UINT64_T},
      {Datatype::f32, MPI_FLOAT},    {Datatype::f64, MPI_DOUBLE}};
  for (const auto& [ours, theirs] : types) {
    if (ours == type) return theirs;
  }
  if (reduced) return MPI_DATATYPE_NULL;  // 8- and 16-bit floats can be moved only
  return size_of(type) == 1 ? MPI_UINT8_T : MPI_UINT16_T;
}

MPI_Op mpi_op(OpKind op) {
  const std::pair<OpKind, MPI_Op> ops[] = {
      {OpKind::prod, MPI_PROD},      {OpKind::min, MPI_MIN},
      {OpKind::max, MPI_MAX},        {OpKind::logical_and, MPI_LAND},
      {OpKind::logical_or, MPI_LOR}, {OpKind::logical_xor, MPI_LXOR},
      {OpKind::bit_and, MPI_BAND},   {OpKind::bit_or, MPI_BOR},
      {OpKind::bit_xor, MPI_BXOR}};
  for (const auto& [ours, theirs] : ops) {
    if (ours == op) return theirs;
  }
  return MPI_SUM;
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

using Slice = std::shared_ptr<const Derived>;

/// Part `i` of `parts` of a tensor, cut along `dim`.
Slice slice(const Shape& shape, int dim, int parts, int i, MPI_Datatype type) {
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
  return std::make_shared<const Derived>(made);
}

/// All parts of a tensor, cut along `dim`.
struct Slices {
  Slices(const Shape& shape, int dim, int parts, MPI_Datatype type) {
    for (int i = 0; i < parts; ++i) {
      own.push_back(slice(shape, dim, parts, i, type));
      types.push_back(own.back()->get());
    }
  }
  std::vector<Slice> own;
  std::vector<MPI_Datatype> types;
};

using Ints = std::shared_ptr<const std::vector<int>>;

Ints ints(const std::vector<std::int64_t>& values) {
  return std::make_shared<const std::vector<int>>(values.begin(), values.end());
}
Ints ints(int ranks, std::int64_t value) {
  return ints(std::vector<std::int64_t>(static_cast<std::size_t>(ranks), value));
}

/// An argument of a call that is repeated, as MPI takes it.
template <class T>
const T& bare(const T& argument) {
  return argument;
}
const int* bare(const Ints& argument) { return argument->data(); }
const MPI_Datatype* bare(const std::shared_ptr<const Slices>& argument) {
  return argument->types.data();
}
MPI_Datatype bare(const Slice& argument) { return argument->get(); }

/// A function of MPI and its name.
template <class F>
struct Function {
  const char* name;
  F* call;

  template <class... Arguments>
  BuiltIn on(const Arguments&... arguments) const {
    return {name, [f = *this, arguments...] { mpi_checked(f.call(bare(arguments)...), f.name); }};
  }
};
template <class F>
Function(const char*, F*) -> Function<F>;

/// MPI_NAME or PMPI_NAME, whichever `entry` means.
#define BATON_MPI(NAME) \
  Function { "MPI_" #NAME, entry == Entry::program ? MPI_##NAME : PMPI_##NAME }

/// all_gather of tensors: every block is a slice of the output, one slice's width after the last.
Slice joined_block(const TensorShapes& shapes, int ranks, MPI_Datatype type, std::size_t element) {
  const Slice first = slice(shapes.output, shapes.gather_dim, ranks, 0, type);
  const std::int64_t width = shapes.input.product(shapes.gather_dim, shapes.input.rank()) *
                             static_cast<std::int64_t>(element);
  MPI_Datatype made = MPI_DATATYPE_NULL;
  mpi_checked(MPI_Type_create_resized(first->get(), 0, static_cast<MPI_Aint>(width), &made),
              "MPI_Type_create_resized");
  return std::make_shared<const Derived>(made);
}

std::vector<BuiltIn> of_tensors(const Case& e, MPI_Datatype type, const void* in, void* out,
                                Entry entry) {
  const TensorShapes& shapes = *e.tensor;
  const int ranks = e.ranks();
  const MPI_Comm comm = MPI_COMM_WORLD;
  if (e.collective() == Collective::all_gather) {
    return {BATON_MPI(Allgather).on(in, static_cast<int>(shapes.input.elements()), type, out, 1,
                                    joined_block(shapes, ranks, type, size_of(e.type)), comm)};
  }
  const Ints ones = ints(ranks, 1), zeros = ints(ranks, 0);
  const auto slices = [&](const Shape& shape, int dim) {
    return std::make_shared<const Slices>(shape, dim, ranks, type);
  };
  return {BATON_MPI(Alltoallw).on(in, ones, zeros, slices(shapes.input, shapes.scatter_dim), out,
                                  ones, zeros, slices(shapes.output, shapes.gather_dim), comm)};
}

/// The uneven forms, for schedules of a user.
std::vector<BuiltIn> uneven(const Case& e, int rank, MPI_Datatype type, MPI_Op op, const void* in,
                            void* out, Entry entry) {
  const auto& blocks = e.problem.input_blocks ? *e.problem.input_blocks : *e.problem.output_blocks;
  const Ints n = ints(blocks.counts), at = ints(blocks.offsets);
  const int own = (*n)[static_cast<std::size_t>(rank)], root = e.problem.root;
  const MPI_Comm comm = MPI_COMM_WORLD;
  switch (e.collective()) {
    case Collective::gather:
      return {BATON_MPI(Gatherv).on(in, own, type, out, n, at, type, root, comm)};
    case Collective::scatter:
      return {BATON_MPI(Scatterv).on(in, n, at, type, out, own, type, root, comm)};
    case Collective::all_gather:
      return {BATON_MPI(Allgatherv).on(in, own, type, out, n, at, type, comm)};
    case Collective::reduce_scatter:
      return {BATON_MPI(Reduce_scatter).on(in, out, n, type, op, comm)};
    default:
      return {};
  }
}

std::vector<BuiltIn> even(const Case& e, MPI_Datatype type, MPI_Op op, const void* in, void* out,
                          Entry entry) {
  const auto n = static_cast<int>(e.problem.count);
  const int root = e.problem.root;
  const MPI_Comm comm = MPI_COMM_WORLD;
  switch (e.collective()) {
    case Collective::broadcast:
      return {BATON_MPI(Bcast).on(out, n, type, root, comm)};
    case Collective::reduce:
      return {BATON_MPI(Reduce).on(in, out, n, type, op, root, comm)};
    case Collective::all_reduce:
      return {BATON_MPI(Allreduce).on(in, out, n, type, op, comm)};
    case Collective::gather:
      return {BATON_MPI(Gather).on(in, n, type, out, n, type, root, comm)};
    case Collective::scatter:
      return {BATON_MPI(Scatter).on(in, n, type, out, n, type, root, comm)};
    case Collective::all_gather:
      return {BATON_MPI(Allgather).on(in, n, type, out, n, type, comm)};
    case Collective::reduce_scatter:
      return {BATON_MPI(Reduce_scatter_block).on(in, out, n, type, op, comm),
              BATON_MPI(Reduce_scatter).on(in, out, ints(e.ranks(), n), type, op, comm)};
    case Collective::all_to_all:
      return {BATON_MPI(Alltoall).on(in, n, type, out, n, type, comm)};
    case Collective::scan:
      return {BATON_MPI(Scan).on(in, out, n, type, op, comm)};
    case Collective::exscan:
      return {BATON_MPI(Exscan).on(in, out, n, type, op, comm)};
    case Collective::barrier:
      return {BATON_MPI(Barrier).on(comm)};
    case Collective::program:
      break;
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
  if (subject.tensor) return of_tensors(subject, type, input, output, entry);
  const MPI_Op op = mpi_op(subject.op);
  std::vector<BuiltIn> all = subject.problem.uneven()
                                 ? uneven(subject, rank, type, op, input, output, entry)
                                 : even(subject, type, op, input, output, entry);
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
