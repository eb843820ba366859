#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "conformance.hpp"
#include "shapes.hpp"

// Derived datatypes in data movement. Ranks describe the same data differently, as elements of
// different datatypes and in different numbers.

namespace dropin {

namespace {

enum class Move {
  bcast,
  gather,
  gatherv,
  scatter,
  scatterv,
  allgather,
  allgatherv,
  alltoall,
  alltoallv
};
constexpr std::pair<Move, const char*> moves[] = {
    {Move::bcast, "bcast"},           {Move::gather, "gather"},     {Move::gatherv, "gatherv"},
    {Move::scatter, "scatter"},       {Move::scatterv, "scatterv"}, {Move::allgather, "allgather"},
    {Move::allgatherv, "allgatherv"}, {Move::alltoall, "alltoall"}, {Move::alltoallv, "alltoallv"}};

/// Where the blocks of all ranks are: one behind the other, or from the last to the first with
/// gaps.
struct Blocks {
  Blocks(const Shape& shape, int size, int count, bool with_displacements)
      : counts(size, count * shape.per_element), at(size), displacements(size) {
    for (int rank = 0; rank < size; ++rank) {
      at[rank] = with_displacements ? (size - 1 - rank) * (count + 1) : rank * count;
      displacements[rank] = at[rank] * shape.per_element;
    }
  }
  std::vector<int> counts, at, displacements;
};

/// What one call reads and writes.
struct Operands {
  Image in, out, expected;
  Blocks from, to;
};

class Mover {
 public:
  Mover(Results& results, int rank, int size) : results_(results), rank_(rank), size_(size) {}

  /// `one` describes a rank's single block, `many` the blocks of all ranks.
  void run(std::pair<Move, const char*> named, const Shape& one, const Shape& many, int count,
           int root, Pending* pending) {
    const auto [move, name] = named;
    const bool displaced = std::string_view(name).ends_with('v');
    const bool at_root = rank_ == root;
    const bool all_in = move == Move::alltoall || move == Move::alltoallv ||
                        (at_root && (move == Move::scatter || move == Move::scatterv));
    const bool all_out = move == Move::allgather || move == Move::allgatherv ||
                         move == Move::alltoall || move == Move::alltoallv ||
                         (at_root && (move == Move::gather || move == Move::gatherv));
    const int room = size_ * (count + 1);
    const Image output(all_out ? many : one, all_out ? room : count);
    const Blocks blocks(many, size_, count, displaced);
    const auto operands = std::make_shared<Operands>(Operands{
        Image(all_in ? many : one, all_in ? room : count), output, output, blocks, blocks});
    auto& [in, out, expected, from, to] = *operands;

    switch (move) {
      case Move::bcast:
        if (at_root) out.store(0, count, root, 0);
        expected.store(0, count, root, 0);
        break;
      case Move::gather:
      case Move::gatherv:
      case Move::allgather:
      case Move::allgatherv:
        in.store(0, count, rank_, 0);
        for (int peer = 0; all_out && peer < size_; ++peer)
          expected.store(to.at[peer], count, peer, 0);
        break;
      case Move::scatter:
      case Move::scatterv:
        for (int peer = 0; at_root && peer < size_; ++peer)
          in.store(from.at[peer], count, root, peer);
        expected.store(0, count, root, rank_);
        break;
      case Move::alltoall:
      case Move::alltoallv:
        for (int peer = 0; peer < size_; ++peer) {
          in.store(from.at[peer], count, rank_, peer);
          expected.store(to.at[peer], count, peer, rank_);
        }
    }
    const std::string what = std::string(name) + ' ' + std::to_string(count) + " of " + one.name +
                             " and " + many.name + (pending ? " nonblocking" : " blocking");
    const auto check = [operands, what, this] {
      results_.expect(operands->out, operands->expected, what);
    };
    MPI_Request* request = pending ? pending->add(check) : nullptr;
    results_.succeeds(call(move, one, many, count, root, *operands, request), what);
    if (!pending) check();
  }

 private:
  /// Calls the one form if there is a request, the other if there is none.
  template <class... Forms, class... Arguments>
  static int either(const Collective<Forms...>& collective, MPI_Request* request,
                    Arguments... arguments) {
    return request ? collective.nonblocking(arguments..., request)
                   : collective.blocking(arguments...);
  }

  static int call(Move move, const Shape& one, const Shape& many, int count, int root,
                  Operands& operands, MPI_Request* request) {
    const MPI_Comm world = MPI_COMM_WORLD;
    void *const in = operands.in.data(), *const out = operands.out.data();
    const auto& [counts, at, displacements] = operands.to;
    const MPI_Datatype t = one.type, u = many.type;
    const int n = count * one.per_element, m = count * many.per_element;
    switch (move) {
      case Move::bcast:
        return either(bcast, request, out, n, t, root, world);
      case Move::gather:
        return either(gather, request, in, n, t, out, m, u, root, world);
      case Move::gatherv:
        return either(gatherv, request, in, n, t, out, counts.data(), displacements.data(), u, root,
                      world);
      case Move::scatter:
        return either(scatter, request, in, m, u, out, n, t, root, world);
      case Move::scatterv:
        return either(scatterv, request, in, counts.data(), displacements.data(), u, out, n, t,
                      root, world);
      case Move::allgather:
        return either(allgather, request, in, n, t, out, m, u, world);
      case Move::allgatherv:
        return either(allgatherv, request, in, n, t, out, counts.data(), displacements.data(), u,
                      world);
      case Move::alltoall:
        return either(alltoall, request, in, m, u, out, m, u, world);
      case Move::alltoallv:
        return either(alltoallv, request, in, counts.data(), displacements.data(), u, out,
                      counts.data(), displacements.data(), u, world);
    }
    return MPI_ERR_OTHER;
  }

  Results& results_;
  int rank_, size_;
};

/// More data than any buffer inside the MPI library, with a gap after every second int.
void large(Results& results, int rank, int size) {
  constexpr int blocks = 60000;
  MPI_Datatype gapped;
  MPI_Type_vector(blocks, 2, 3, MPI_INT, &gapped);
  MPI_Type_commit(&gapped);
  for (int root : {0, size - 1})
    for (bool as_ints : {false, true}) {
      // The root sends one element, the others receive it as one or as many ints.
      const bool ints = as_ints && rank != root;
      Buffer<int> data(3 * blocks), expected(3 * blocks);
      for (int i = 0; i < 2 * blocks; ++i) {
        const auto value = static_cast<int>(mixed(root, i));
        if (rank == root) data[i / 2 * 3 + i % 2] = value;
        expected[ints ? i : i / 2 * 3 + i % 2] = value;
      }
      results.succeeds(MPI_Bcast(data.data(), ints ? 2 * blocks : 1, ints ? MPI_INT : gapped, root,
                                 MPI_COMM_WORLD),
                       "large bcast");
      results.expect(data, expected, "large bcast");
    }
  MPI_Type_free(&gapped);
}

/// Datatypes of absolute addresses, whose buffer is MPI_BOTTOM.
void from_the_bottom(Results& results, int rank, int size) {
  int here[2] = {}, gap = 0, there = 0;
  const int lengths[] = {2, 1};
  MPI_Aint addresses[2];
  MPI_Get_address(here, &addresses[0]);
  MPI_Get_address(&there, &addresses[1]);
  MPI_Datatype scattered;
  MPI_Type_create_hindexed(2, lengths, addresses, MPI_INT, &scattered);
  MPI_Type_commit(&scattered);
  const auto set = [&](int of) {
    here[0] = 10 * of;
    here[1] = 10 * of + 1;
    there = 10 * of + 2;
  };
  const auto expect = [&](int of, const char* what) {
    results.expect(here[0], 10 * of, what);
    results.expect(here[1], 10 * of + 1, what);
    results.expect(there, 10 * of + 2, what);
    results.expect(gap, 0, what);
  };
  for (const int root : {0, size - 1}) {
    set(rank);
    results.succeeds(MPI_Bcast(MPI_BOTTOM, 1, scattered, root, MPI_COMM_WORLD), "Bcast");
    expect(root, "Bcast at MPI_BOTTOM");
    set(rank);
    MPI_Request request;
    results.succeeds(MPI_Ibcast(MPI_BOTTOM, 1, scattered, root, MPI_COMM_WORLD, &request),
                     "Ibcast");
    results.succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE), "Wait");
    expect(root, "Ibcast at MPI_BOTTOM");
    std::vector<int> all(3 * static_cast<std::size_t>(size), -1);
    set(rank);
    results.succeeds(
        MPI_Gather(MPI_BOTTOM, 1, scattered, all.data(), 3, MPI_INT, root, MPI_COMM_WORLD),
        "Gather");
    for (int i = 0; rank == root && i < 3 * size; ++i)
      results.expect(all[static_cast<std::size_t>(i)], 10 * (i / 3) + i % 3, "Gather");
    for (int i = 0; i < 3 * size; ++i) all[static_cast<std::size_t>(i)] = 10 * (i / 3) + i % 3;
    set(-1);
    results.succeeds(
        MPI_Scatter(all.data(), 3, MPI_INT, MPI_BOTTOM, 1, scattered, root, MPI_COMM_WORLD),
        "Scatter");
    expect(rank, "Scatter to MPI_BOTTOM");
  }
  MPI_Type_free(&scattered);
}

int errors = 0;
void count_error(MPI_Comm*, int*, ...) { ++errors; }

/// Datatypes of Fortran kinds, inside others. They are predefined: nobody may free them.
void of_kinds(Results& results, int rank, int size) {
  errors = 0;
  MPI_Errhandler counting;
  MPI_Comm_create_errhandler(count_error, &counting);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, counting);
  MPI_Datatype real, integer;
  MPI_Type_create_f90_real(15, 307, &real);
  MPI_Type_create_f90_integer(9, &integer);
  struct Pair {
    double real;
    int integers[2];
  };
  const int lengths[] = {1, 2};
  const MPI_Aint at[] = {0, sizeof(double)};
  const MPI_Datatype types[] = {real, integer};
  for (int repeated = 0; repeated < 2; ++repeated) {
    MPI_Datatype reals, pair;
    MPI_Type_contiguous(3, real, &reals);
    MPI_Type_create_struct(2, lengths, at, types, &pair);
    for (MPI_Datatype* type : {&reals, &pair}) MPI_Type_commit(type);
    for (int root : {0, size - 1}) {
      std::vector<double> sent(3);
      std::vector<Pair> pairs(1);
      const auto set = [&](int of) {
        for (int i = 0; i < 3; ++i) sent[i] = of + i * .5;
        pairs[0] = {of * .25, {of, -of}};
      };
      set(root);
      const auto expected = std::pair(sent, pairs);
      set(rank);
      for (Form form : {Form::blocking, Form::nonblocking}) {
        results.succeeds(bcast(form, sent.data(), 1, reals, root, MPI_COMM_WORLD), "Bcast");
        results.succeeds(bcast(form, pairs.data(), 1, pair, root, MPI_COMM_WORLD), "Bcast");
        results.expect(sent, expected.first, "reals");
        results.expect(pairs, expected.second, "pairs");
      }
    }
    for (MPI_Datatype* type : {&reals, &pair}) MPI_Type_free(type);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Errhandler_free(&counting);
  results.expect(errors, 0, "errors");
}

/// One element of more bytes than an int can count, with a gap.
void huge(Results& results) {
  constexpr MPI_Aint stride = MPI_Aint{1300} << 20;
  MPI_Datatype type;
  MPI_Type_create_hvector(2, 1200 << 20, stride, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  const std::size_t bytes = 2 * stride;
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  results.expect(data != MAP_FAILED, true, "mmap");
  for (Form form : forms)
    results.succeeds(bcast(form, data, 1, type, 0, MPI_COMM_SELF), "Bcast of a huge element");
  munmap(data, bytes);
  MPI_Type_free(&type);
}

/// Copies without gaps need more memory than there is.
void exhausted(Results& results) {
  MPI_Datatype gapped, row, table;
  MPI_Type_create_resized(MPI_BYTE, 0, 2, &gapped);
  MPI_Type_contiguous(1 << 20, gapped, &row);
  MPI_Type_contiguous(1 << 20, row, &table);
  MPI_Type_commit(&table);
  MPI_Comm alone;
  {
    const Unprofiled making;
    MPI_Comm_dup(MPI_COMM_SELF, &alone);
  }
  MPI_Comm_set_errhandler(alone, MPI_ERRORS_RETURN);
  std::byte in[1], out[1];
  for (Form form : forms) {
    int error = MPI_SUCCESS;
    MPI_Error_class(allgather(form, in, 1 << 10, table, out, 1 << 10, table, alone), &error);
    results.expect(error, MPI_ERR_NO_MEM, "the class of the error");
  }
  MPI_Comm_free(&alone);
  for (MPI_Datatype* type : {&gapped, &row, &table}) MPI_Type_free(type);
}

}  // namespace

void derived_datatypes(Suite& suite) {
  const Shapes shapes;
  const int rank = suite.rank(), size = suite.size();
  const int kinds = static_cast<int>(shapes.all().size());
  for (int first = 0; first < kinds; ++first)
    suite.run(std::string("derived_datatypes/") + shapes.all()[first].name, [&](Results& results) {
      // Rank 0 and who has the blocks of all use this shape, the others another each.
      const Shape& many = shapes.all()[first];
      const Shape& one = shapes.all()[(first + rank * 5) % kinds];
      Mover mover(results, rank, size);
      Pending pending;
      for (const auto& move : moves)
        for (int count : {0, 1, 3})
          for (int root : {0, size - 1})
            mover.run(move, one, root == 0 ? many : one, count, root, &pending);
      pending.complete(results);
      for (const auto& move : moves)
        if (size <= 4 || mixed(first, static_cast<int>(move.first)) % 3 == 0)
          mover.run(move, one, many, 2, first % size, nullptr);
    });
  suite.run("derived_datatypes/large", [&](Results& results) { large(results, rank, size); });
  suite.run("derived_datatypes/bottom",
            [&](Results& results) { from_the_bottom(results, rank, size); });
  suite.run("derived_datatypes/kinds", [&](Results& results) { of_kinds(results, rank, size); });
  suite.run("derived_datatypes/huge", huge);
  suite.run_beyond_library("derived_datatypes/exhausted", exhausted);
}

}  // namespace dropin
