#include "built_in.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "baton/mpi.hpp"
#include "values.hpp"

namespace baton::cli {
namespace {

MPI_Comm world() { return MPI_COMM_WORLD; }

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

/// all_to_all of tensors: MPI_Alltoallw of subarrays.
std::function<void()> exchange(const TensorShapes& shapes, int ranks, MPI_Datatype type,
                               const Buffers& buffers) {
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
  return [=, keep = std::move(own)] {
    mpi_checked(MPI_Alltoallw(buffers.input, ones.data(), zeros.data(), sent.data(), buffers.output,
                              ones.data(), zeros.data(), received.data(), world()),
                "MPI_Alltoallw");
  };
}

/// all_gather of tensors: every block is a slice of the output, one slice's width after the last.
std::function<void()> join(const TensorShapes& shapes, int ranks, MPI_Datatype type,
                           std::size_t element, const Buffers& buffers) {
  const auto first = slice(shapes.output, shapes.gather_dim, ranks, 0, type);
  const std::int64_t width = shapes.input.product(shapes.gather_dim, shapes.input.rank()) *
                             static_cast<std::int64_t>(element);
  MPI_Datatype made = MPI_DATATYPE_NULL;
  mpi_checked(MPI_Type_create_resized(first->get(), 0, static_cast<MPI_Aint>(width), &made),
              "MPI_Type_create_resized");
  const auto block = std::make_shared<Derived>(made);
  const auto count = static_cast<int>(shapes.input.elements());
  return [=] {
    mpi_checked(MPI_Allgather(buffers.input, count, type, buffers.output, 1, block->get(), world()),
                "MPI_Allgather");
  };
}

/// The uneven forms, for schedules of a user.
std::function<void()> uneven(const Exercise& e, int rank, MPI_Datatype type, MPI_Op op,
                             const Buffers& b) {
  const auto& blocks = e.problem.input_blocks ? *e.problem.input_blocks : *e.problem.output_blocks;
  const std::vector<int> counts(blocks.counts.begin(), blocks.counts.end());
  const std::vector<int> offsets(blocks.offsets.begin(), blocks.offsets.end());
  const int own = counts[static_cast<std::size_t>(rank)], root = e.problem.root;
  switch (e.collective()) {
    case Collective::gather:
      return [=] {
        mpi_checked(MPI_Gatherv(b.input, own, type, b.output, counts.data(), offsets.data(), type,
                                root, world()),
                    "MPI_Gatherv");
      };
    case Collective::scatter:
      return [=] {
        mpi_checked(MPI_Scatterv(b.input, counts.data(), offsets.data(), type, b.output, own, type,
                                 root, world()),
                    "MPI_Scatterv");
      };
    case Collective::all_gather:
      return [=] {
        mpi_checked(MPI_Allgatherv(b.input, own, type, b.output, counts.data(), offsets.data(),
                                   type, world()),
                    "MPI_Allgatherv");
      };
    case Collective::reduce_scatter:
      return [=] {
        mpi_checked(MPI_Reduce_scatter(b.input, b.output, counts.data(), type, op, world()),
                    "MPI_Reduce_scatter");
      };
    default:
      return {};
  }
}

std::function<void()> even(const Exercise& e, MPI_Datatype type, MPI_Op op, const Buffers& b) {
  const auto n = static_cast<int>(e.problem.count);
  const int root = e.problem.root;
  const void* const in = b.input;
  void* const out = b.output;
  switch (e.collective()) {
    case Collective::broadcast:
      return [=] { mpi_checked(MPI_Bcast(out, n, type, root, world()), "MPI_Bcast"); };
    case Collective::reduce:
      return [=] { mpi_checked(MPI_Reduce(in, out, n, type, op, root, world()), "MPI_Reduce"); };
    case Collective::all_reduce:
      return [=] { mpi_checked(MPI_Allreduce(in, out, n, type, op, world()), "MPI_Allreduce"); };
    case Collective::gather:
      return
          [=] { mpi_checked(MPI_Gather(in, n, type, out, n, type, root, world()), "MPI_Gather"); };
    case Collective::scatter:
      return [=] {
        mpi_checked(MPI_Scatter(in, n, type, out, n, type, root, world()), "MPI_Scatter");
      };
    case Collective::all_gather:
      return
          [=] { mpi_checked(MPI_Allgather(in, n, type, out, n, type, world()), "MPI_Allgather"); };
    case Collective::reduce_scatter:
      return [=] {
        mpi_checked(MPI_Reduce_scatter_block(in, out, n, type, op, world()),
                    "MPI_Reduce_scatter_block");
      };
    case Collective::all_to_all:
      return [=] { mpi_checked(MPI_Alltoall(in, n, type, out, n, type, world()), "MPI_Alltoall"); };
    case Collective::scan:
      return [=] { mpi_checked(MPI_Scan(in, out, n, type, op, world()), "MPI_Scan"); };
    case Collective::exscan:
      return [=] { mpi_checked(MPI_Exscan(in, out, n, type, op, world()), "MPI_Exscan"); };
    case Collective::barrier:
      return [] { mpi_checked(MPI_Barrier(world()), "MPI_Barrier"); };
  }
  return {};
}

/// MPI has no avg: a sum and a plain loop.
template <class T>
void divide(void* data, std::int64_t count, int ranks) {
  if constexpr (!is_half<T>) {
    using Divisor = std::conditional_t<std::is_unsigned_v<T>, std::uint64_t,
                                       std::conditional_t<std::is_integral_v<T>, std::int64_t, T>>;
    T* const values = static_cast<T*>(data);
    const auto divisor = static_cast<Divisor>(ranks);
    for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<T>(values[i] / divisor);
  }
}

}  // namespace

std::function<void()> mpi_built_in(const Exercise& exercise, int rank, const void* input,
                                   void* output) {
  const bool reduces = reducing(exercise.collective());
  const MPI_Datatype type = mpi_type(exercise.type, reduces);
  const std::int64_t most = std::max(exercise.problem.total_count(), exercise.problem.count);
  if (type == MPI_DATATYPE_NULL || most > std::numeric_limits<int>::max()) return {};
  const Buffers buffers{input, output};
  if (exercise.tensor) {
    if (exercise.collective() == Collective::all_to_all) {
      return exchange(*exercise.tensor, exercise.ranks(), type, buffers);
    }
    return join(*exercise.tensor, exercise.ranks(), type, size_of(exercise.type), buffers);
  }
  const MPI_Op op = mpi_op(exercise.op);
  const std::function<void()> run = exercise.problem.uneven()
                                        ? uneven(exercise, rank, type, op, buffers)
                                        : even(exercise, type, op, buffers);
  if (!reduces || exercise.op != OpKind::avg) return run;
  const std::int64_t count = exercise.output_count(rank);
  return [=, datatype = exercise.type, ranks = exercise.ranks()] {
    run();
    with_type(datatype, [&](auto* p) { divide<Pointee<decltype(p)>>(output, count, ranks); });
  };
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
