#include <memory>

#include "conformance.hpp"
#include "datatypes.hpp"

// Every predefined datatype in data movement, and with every operation that MPI defines on it in
// every reduction. All collectives of a datatype are in flight at once.

namespace dropin {

namespace {

constexpr int count = 5;  // elements per rank

/// Elements of a datatype known at run time.
class Elements {
 public:
  Elements(const Datatype& type, int size) : type_(type), bytes_(size * type.extent) {
    for (int i = 0; i < size; ++i) store(i, {});
  }
  void store(int i, Value value) { type_.store(value, at(i)); }
  Value load(int i) const { return type_.load(bytes_.data() + i * type_.extent); }
  void* at(int i) { return bytes_.data() + i * type_.extent; }

 private:
  const Datatype& type_;
  std::vector<char> bytes_;
};

/// A nonblocking collective on its way, its buffers and what it should give.
struct Operands {
  std::string what;
  Elements in, out;
  std::vector<Value> expected;
};

/// Many nonblocking collectives started, then completed together.
class Flight {
 public:
  explicit Flight(const Datatype& type) : type_(type) {}

  /// Buffers that stay where they are until the end of it.
  Operands& board(std::string what, int in, int out) {
    operands_.push_back(std::make_unique<Operands>(
        Operands{std::move(what), Elements(type_, in), Elements(type_, out), {}}));
    requests_.push_back(MPI_REQUEST_NULL);
    return *operands_.back();
  }
  MPI_Request* request() { return &requests_.back(); }

  void land(Results& results) {
    results.succeeds(
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
        type_.name + " Waitall");
    for (const auto& operands : operands_)
      for (std::size_t i = 0; i < operands->expected.size(); ++i) {
        const Value found = operands->out.load(static_cast<int>(i));
        results.expect(found.a, operands->expected[i].a, operands->what);
        results.expect(found.b, operands->expected[i].b, operands->what + ", second part");
      }
  }

 private:
  const Datatype& type_;
  std::vector<std::unique_ptr<Operands>> operands_;
  std::vector<MPI_Request> requests_;
};

void move(Results& results, const Datatype& type, int rank, int size) {
  const auto value = [&](int source, int i) {
    return type.kind == logical ? Value{(source + i) % 2} : Value{(source * 5 + i) % 100};
  };
  const int root = size - 1;
  Flight flight(type);

  Operands& sent = flight.board(type.name + " bcast", 0, count);
  for (int i = 0; i < count; ++i) {
    if (rank == root) sent.out.store(i, value(root, i));
    sent.expected.push_back(value(root, i));
  }
  results.succeeds(
      MPI_Ibcast(sent.out.at(0), count, type.handle, root, MPI_COMM_WORLD, flight.request()),
      sent.what);

  Operands& gathered = flight.board(type.name + " allgather", count, count * size);
  for (int i = 0; i < count; ++i) gathered.in.store(i, value(rank, i));
  for (int peer = 0; peer < size; ++peer)
    for (int i = 0; i < count; ++i) gathered.expected.push_back(value(peer, i));
  results.succeeds(MPI_Iallgather(gathered.in.at(0), count, type.handle, gathered.out.at(0), count,
                                  type.handle, MPI_COMM_WORLD, flight.request()),
                   gathered.what);

  Operands& exchanged = flight.board(type.name + " alltoall", size, size);
  for (int peer = 0; peer < size; ++peer) {
    exchanged.in.store(peer, value(rank, peer));
    exchanged.expected.push_back(value(peer, rank));
  }
  results.succeeds(MPI_Ialltoall(exchanged.in.at(0), 1, type.handle, exchanged.out.at(0), 1,
                                 type.handle, MPI_COMM_WORLD, flight.request()),
                   exchanged.what);
  flight.land(results);
}

/// All reductions of a datatype, of `count` elements per rank, whose inputs and results a model
/// gives.
class Reductions {
 public:
  Reductions(Results& results, const Datatype& type, int rank, int size)
      : results_(results), type_(type), rank_(rank), size_(size) {}

  void start_all(const Operation& op) {
    const int root = static_cast<int>(op.name.size()) % size_, all = count * size_;
    const auto start = [&](const char* name, int in, int out, int begin, int ranks, auto call) {
      Operands& operands = flight_.board(type_.name + ' ' + op.name + ' ' + name, in, out);
      for (int i = 0; i < in; ++i) operands.in.store(i, input(op, rank_, i));
      for (int i = 0; ranks > 0 && i < out; ++i)
        operands.expected.push_back(folded(op, begin + i, ranks));
      results_.succeeds(call(operands.in.at(0), operands.out.at(0)), operands.what);
    };
    const std::vector<int> counts(size_, count);
    // Arrays of counts may not change before the end of the operation.
    counts_.push_back(std::make_unique<std::vector<int>>(counts));
    const int* const per_rank = counts_.back()->data();
    const MPI_Datatype t = type_.handle;
    start("reduce", count, rank_ == root ? count : 0, 0, size_, [&](void* in, void* out) {
      return MPI_Ireduce(in, out, count, t, op.handle, root, MPI_COMM_WORLD, flight_.request());
    });
    start("allreduce", count, count, 0, size_, [&](void* in, void* out) {
      return MPI_Iallreduce(in, out, count, t, op.handle, MPI_COMM_WORLD, flight_.request());
    });
    start("reduce_scatter_block", all, count, rank_ * count, size_, [&](void* in, void* out) {
      return MPI_Ireduce_scatter_block(in, out, count, t, op.handle, MPI_COMM_WORLD,
                                       flight_.request());
    });
    start("reduce_scatter", all, count, rank_ * count, size_, [&](void* in, void* out) {
      return MPI_Ireduce_scatter(in, out, per_rank, t, op.handle, MPI_COMM_WORLD,
                                 flight_.request());
    });
    start("scan", count, count, 0, rank_ + 1, [&](void* in, void* out) {
      return MPI_Iscan(in, out, count, t, op.handle, MPI_COMM_WORLD, flight_.request());
    });
    start("exscan", count, count, 0, rank_, [&](void* in, void* out) {
      return MPI_Iexscan(in, out, count, t, op.handle, MPI_COMM_WORLD, flight_.request());
    });
  }

  void all_reduce(const Operation& op) {
    Elements in(type_, count), out(type_, count);
    for (int i = 0; i < count; ++i) in.store(i, input(op, rank_, i));
    const auto what = type_.name + ' ' + op.name + " blocking allreduce";
    results_.succeeds(
        MPI_Allreduce(in.at(0), out.at(0), count, type_.handle, op.handle, MPI_COMM_WORLD), what);
    for (int i = 0; i < count; ++i) {
      results_.expect(out.load(i).a, folded(op, i, size_).a, what);
      results_.expect(out.load(i).b, folded(op, i, size_).b, what + ", second part");
    }
  }

  void land() { flight_.land(results_); }

 private:
  Value input(const Operation& op, int rank, int i) const {
    return op.input(type_.kind, rank, i, size_);
  }
  Value folded(const Operation& op, int i, int ranks) const {
    Value value = input(op, 0, i);
    for (int rank = 1; rank < ranks; ++rank) value = op.fold(type_.kind, value, input(op, rank, i));
    return value;
  }

  Results& results_;
  const Datatype& type_;
  int rank_, size_;
  Flight flight_{type_};
  std::vector<std::unique_ptr<std::vector<int>>> counts_;
};

/// 8 and 16 bits wrap around like all others. Open MPI's own sums saturate on processors with
/// vector instructions for that, so this can only be asked of a drop-in.
template <class T>
void wrap_around(Results& results, MPI_Datatype type, int rank, int size, const char* name) {
  Buffer<T> in(256), out(256), expected(256);
  for (int i = 0; i < 256; ++i) {
    in[i] = static_cast<T>(mixed(rank, i));
    T sum = 0;
    for (int peer = 0; peer < size; ++peer) sum = static_cast<T>(sum + mixed(peer, i));
    expected[i] = sum;
  }
  results.succeeds(MPI_Allreduce(in.data(), out.data(), 256, type, MPI_SUM, MPI_COMM_WORLD), name);
  results.expect(out, expected, name);
}

}  // namespace

void datatypes(Suite& suite) {
  const int rank = suite.rank(), size = suite.size();
  const auto operations = predefined_operations();
  for (const Datatype& type : predefined_datatypes())
    suite.run("datatypes/" + type.name, [&](Results& results) {
      int length = 0;
      MPI_Type_size(type.handle, &length);
      results.expect(length > 0, true, type.name + " has a size");
      move(results, type, rank, size);
      Reductions reductions(results, type, rank, size);
      for (const Operation& op : operations)
        if (op.kinds & type.kind) reductions.start_all(op);
      reductions.land();
      for (const Operation& op : operations)
        if (op.kinds & type.kind && (size <= 4 || op.handle == MPI_SUM)) reductions.all_reduce(op);
    });
  suite.run_beyond_library("datatypes/wrap_around", [&](Results& results) {
    wrap_around<std::int8_t>(results, MPI_INT8_T, rank, size, "INT8_T");
    wrap_around<std::uint8_t>(results, MPI_UINT8_T, rank, size, "UINT8_T");
    wrap_around<std::int16_t>(results, MPI_INT16_T, rank, size, "INT16_T");
    wrap_around<std::uint16_t>(results, MPI_UINT16_T, rank, size, "UINT16_T");
  });
}

}  // namespace dropin
