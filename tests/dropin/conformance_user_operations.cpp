#include <algorithm>
#include <memory>

#include "conformance.hpp"

// Operations of the program's own, on datatypes whose elements lie in memory in ways that must be
// kept: with gaps, in another order, below the address of the element.

namespace dropin {

namespace {

/// The map x -> ax + b, modulo 2^32.
struct Map {
  std::uint32_t a, b;
};

/// First `left`, then `right`: not commutative.
Map composed(Map left, Map right) { return {left.a * right.a, left.b * right.a + right.b}; }
Map added(Map left, Map right) { return {left.a + right.a, left.b + right.b}; }

/// Where the two numbers of an element are, in words from its address.
struct Layout {
  const char* name;
  int a, b;
  int begin, extent;  // of the datatype, in words
  MPI_Datatype type = MPI_DATATYPE_NULL;
};

// What operations find their operand's layout by; MPI passes them nothing else.
std::vector<Layout> layouts;
bool foreign_datatype = false;

template <Map (*fold)(Map, Map)>
void operation(void* in, void* inout, int* length, MPI_Datatype* type) {
  const auto layout = std::ranges::find(layouts, *type, &Layout::type);
  if (layout == layouts.end()) {
    foreign_datatype = true;
    return;
  }
  const auto* left = static_cast<const std::uint32_t*>(in);
  auto* right = static_cast<std::uint32_t*>(inout);
  for (int i = 0; i < *length; ++i, left += layout->extent, right += layout->extent) {
    const Map result =
        fold({left[layout->a], left[layout->b]}, {right[layout->a], right[layout->b]});
    right[layout->a] = result.a;
    right[layout->b] = result.b;
  }
}

void make_layouts() {
  layouts = {{"contiguous", 0, 1, 0, 2},
             {"gapped", 1, 4, 0, 6},
             {"swapped", 1, 0, 0, 2},
             {"below", -2, 1, -2, 5}};
  for (Layout& layout : layouts) {
    const int at[] = {layout.a, layout.b};
    MPI_Datatype pair;
    MPI_Type_create_indexed_block(2, 1, at, MPI_UINT32_T, &pair);
    MPI_Type_create_resized(pair, layout.begin * MPI_Aint{4}, layout.extent * MPI_Aint{4},
                            &layout.type);
    MPI_Type_commit(&layout.type);
    MPI_Type_free(&pair);
  }
}

/// Elements of a layout; everything around them untouched.
class Maps {
 public:
  Maps(const Layout& layout, int count) : layout_(layout), words_(count * layout.extent) {}
  void store(int i, Map map) {
    words_[at(i) + layout_.a] = map.a;
    words_[at(i) + layout_.b] = map.b;
  }
  void copy(int i, Maps& from, int j) {
    store(i, {from.words_[from.at(j) + layout_.a], from.words_[from.at(j) + layout_.b]});
  }
  void* data() { return words_.data() - layout_.begin; }
  operator std::span<const std::byte>() const { return words_; }  // NOLINT: free

 private:
  std::size_t at(int i) const { return i * layout_.extent - layout_.begin; }
  const Layout& layout_;
  Buffer<std::uint32_t> words_;
};

enum class Reduction { reduce, allreduce, reduce_scatter, reduce_scatter_block, scan, exscan };
constexpr const char* reduction_names[] = {
    "reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan"};

struct Operands {
  Maps in, out, expected;
  std::vector<int> counts;
};

class Reductions {
 public:
  Reductions(Results& results, const Layout& layout, MPI_Op op, Map (*fold)(Map, Map), int rank,
             int size)
      : results_(results), layout_(layout), op_(op), fold_(fold), rank_(rank), size_(size) {}

  /// Starts it and leaves it to `pending`, or makes it and checks it at once.
  void run(Reduction reduction, const Call& call, Pending* pending) {
    const int count = call.count, root = call.root;
    const bool scattered =
        reduction == Reduction::reduce_scatter || reduction == Reduction::reduce_scatter_block;
    const int in_count = scattered ? count * size_ : count;
    const bool has_result = reduction == Reduction::reduce   ? rank_ == root
                            : reduction == Reduction::exscan ? rank_ > 0
                                                             : true;
    const bool here = call.in_place && (reduction != Reduction::reduce || rank_ == root);
    const int begin = scattered ? rank_ * count : 0;
    const int ranks = reduction == Reduction::scan     ? rank_ + 1
                      : reduction == Reduction::exscan ? rank_
                                                       : size_;
    const auto operands =
        std::make_shared<Operands>(Operands{Maps(layout_, in_count), Maps(layout_, count),
                                            Maps(layout_, count), std::vector<int>(size_, count)});
    for (int i = 0; i < in_count; ++i) operands->in.store(i, input(rank_, i));
    for (int i = 0; has_result && i < count; ++i) {
      Map sum = input(0, begin + i);
      for (int peer = 1; peer < ranks; ++peer) sum = fold_(sum, input(peer, begin + i));
      operands->expected.store(i, sum);
    }
    const std::string what = std::string(layout_.name) + ' ' +
                             reduction_names[static_cast<int>(reduction)] + ' ' +
                             std::to_string(count) + (here ? " in place" : "") +
                             (pending ? " nonblocking" : " blocking");
    const auto check = [=, this] {
      // In place, what lies behind the result is undefined.
      for (int i = 0; here && has_result && i < count; ++i) operands->out.copy(i, operands->in, i);
      if (has_result || !here) results_.expect(operands->out, operands->expected, what);
    };
    const void* in = here ? MPI_IN_PLACE : operands->in.data();
    void* out = here ? operands->in.data() : operands->out.data();
    if (pending) {
      results_.succeeds(
          start(reduction, in, out, count, operands->counts.data(), root, pending->add(check)),
          what);
    } else {
      results_.succeeds(make(reduction, in, out, count, operands->counts.data(), root), what);
      check();
    }
  }

 private:
  static Map input(int rank, int i) {
    return {static_cast<std::uint32_t>(mixed(rank, i)), static_cast<std::uint32_t>(mixed(i, rank))};
  }

  int start(Reduction reduction, const void* in, void* out, int count, const int* counts, int root,
            MPI_Request* request) const {
    const MPI_Comm world = MPI_COMM_WORLD;
    const MPI_Datatype t = layout_.type;
    switch (reduction) {
      case Reduction::reduce:
        return MPI_Ireduce(in, out, count, t, op_, root, world, request);
      case Reduction::allreduce:
        return MPI_Iallreduce(in, out, count, t, op_, world, request);
      case Reduction::reduce_scatter:
        return MPI_Ireduce_scatter(in, out, counts, t, op_, world, request);
      case Reduction::reduce_scatter_block:
        return MPI_Ireduce_scatter_block(in, out, count, t, op_, world, request);
      case Reduction::scan:
        return MPI_Iscan(in, out, count, t, op_, world, request);
      case Reduction::exscan:
        return MPI_Iexscan(in, out, count, t, op_, world, request);
    }
    return MPI_ERR_OTHER;
  }

  int make(Reduction reduction, const void* in, void* out, int count, const int* counts,
           int root) const {
    const MPI_Comm world = MPI_COMM_WORLD;
    const MPI_Datatype t = layout_.type;
    switch (reduction) {
      case Reduction::reduce:
        return MPI_Reduce(in, out, count, t, op_, root, world);
      case Reduction::allreduce:
        return MPI_Allreduce(in, out, count, t, op_, world);
      case Reduction::reduce_scatter:
        return MPI_Reduce_scatter(in, out, counts, t, op_, world);
      case Reduction::reduce_scatter_block:
        return MPI_Reduce_scatter_block(in, out, count, t, op_, world);
      case Reduction::scan:
        return MPI_Scan(in, out, count, t, op_, world);
      case Reduction::exscan:
        return MPI_Exscan(in, out, count, t, op_, world);
    }
    return MPI_ERR_OTHER;
  }

  Results& results_;
  const Layout& layout_;
  MPI_Op op_;
  Map (*fold_)(Map, Map);
  int rank_, size_;
};

/// Whether the MPI library alone is known to fail.
bool library_fails(const Layout& layout, Reduction reduction, const Call& call) {
  // Both spoil their heap where an element is longer than from its first to its last byte: Open MPI
  // 4.1 with one that begins below its address, MPICH 4.0 in reduce-scatters.
  if (layout.begin < 0) return true;
  if (mpi_library == MpiLibrary::openmpi) return false;
  if (reduction == Reduction::reduce_scatter || reduction == Reduction::reduce_scatter_block)
    return layout.extent > 2;
  // It reads from MPI_IN_PLACE.
  return call.form == Form::blocking && reduction == Reduction::reduce && call.in_place &&
         call.root != 0;
}

/// Nonblocking ones of many counts, blocking ones of two; those at which the library fails, or the
/// others.
std::vector<std::pair<Reduction, Call>> calls(const Layout& layout, int size, bool fail) {
  std::vector<std::pair<Reduction, Call>> calls;
  const auto add = [&](Reduction reduction, Call call) {
    if (library_fails(layout, reduction, call) == fail) calls.emplace_back(reduction, call);
  };
  for (Reduction reduction :
       {Reduction::reduce, Reduction::allreduce, Reduction::reduce_scatter,
        Reduction::reduce_scatter_block, Reduction::scan, Reduction::exscan}) {
    for (int count : {0, 1, 7, 300, 5003})
      for (bool in_place : {false, true})
        add(reduction, {Form::nonblocking, count, count % size, in_place});
    for (int count : {7, 300})
      for (int root = 0; root < (reduction == Reduction::reduce ? size : 1); ++root)
        if (size <= 4 || mixed(root, count) % 3 == 0)
          add(reduction, {Form::blocking, count, root, (root + count) % 2 == 1});
  }
  return calls;
}

}  // namespace

void user_operations(Suite& suite) {
  make_layouts();
  const struct {
    const char* name;
    MPI_User_function* function;
    Map (*fold)(Map, Map);
    bool commutative;
  } operations[] = {{"commutative", operation<added>, added, true},
                    {"ordered", operation<composed>, composed, false},
                    // Said to be ordered, so that it is folded like one, though it is not.
                    {"ordered_sum", operation<added>, added, false}};
  for (const auto& user : operations)
    for (const Layout& layout : layouts) {
      const auto all = [&](const std::vector<std::pair<Reduction, Call>>& chosen) {
        return [&](Results& results) {
          MPI_Op op;
          MPI_Op_create(user.function, user.commutative, &op);
          Reductions reductions(results, layout, op, user.fold, suite.rank(), suite.size());
          Pending pending;
          for (const auto& [reduction, call] : chosen)
            if (call.form == Form::nonblocking) reductions.run(reduction, call, &pending);
          pending.complete(results);
          for (const auto& [reduction, call] : chosen)
            if (call.form == Form::blocking) reductions.run(reduction, call, nullptr);
          MPI_Op_free(&op);
          results.expect(foreign_datatype, false,
                         "an operation is given a datatype not the call's");
        };
      };
      const auto test = std::string("user_operations/") + user.name + '/' + layout.name;
      const auto kept = calls(layout, suite.size(), false);
      const auto failing = calls(layout, suite.size(), true);
      if (!kept.empty()) suite.run(test, all(kept));
      if (!failing.empty()) suite.run_beyond_library(test, all(failing));
    }
  for (Layout& layout : layouts) MPI_Type_free(&layout.type);
  layouts.clear();
}

}  // namespace dropin
