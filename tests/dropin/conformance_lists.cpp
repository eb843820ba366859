#include <algorithm>
#include <memory>

#include "conformance.hpp"

// Lists of counts, displacements and datatypes of nonblocking collectives, overwritten and freed as
// soon as the call has returned. MPI allows that only at the end, but mpi4py and others do it.

namespace dropin {

namespace {

/// A list of one call, on a page of its own as far as the allocator can.
class List {
 public:
  explicit List(const std::vector<int>& values)
      : size_(values.size()), values_(std::make_unique<int[]>(size_)) {
    std::ranges::copy(values, values_.get());
  }
  const int* data() const { return values_.get(); }
  void destroy() {
    std::fill_n(values_.get(), size_, -1000000);
    values_.reset();
  }

 private:
  std::size_t size_;
  std::unique_ptr<int[]> values_;
};

/// Blocks of unequal counts with an element between them, and the lists that say so.
struct Blocks {
  /// Block i has counts[i] elements.
  explicit Blocks(std::vector<int> sizes) : counts(std::move(sizes)), at(counts.size()) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      at[i] = end + 1;
      end = at[i] + counts[i];
    }
  }
  std::vector<int> counts, at;
  int end = 0;
};

/// An element is two ints, `stride` ints after the one before: without gaps for 2.
struct Elements {
  MPI_Datatype type;
  int stride;

  void fill(Buffer<int>& buffer, int at, int count, int source, int destination) const {
    for (int i = 0; i < count; ++i)
      for (int k = 0; k < 2; ++k)
        buffer[(at + i) * stride + k] = static_cast<int>(mixed(source, destination, 2 * i + k));
  }
};

int amount(int source, int destination) { return (source + 2 * destination) % 4 * 700; }

std::vector<int> amounts(int size, const std::function<int(int)>& of) {
  std::vector<int> all(size);
  for (int peer = 0; peer < size; ++peer) all[peer] = of(peer);
  return all;
}

void uneven(Results& results, const Elements& elements, int rank, int size, bool in_place) {
  const int root = size - 1;
  const Blocks own(amounts(size, [](int peer) { return amount(peer, 0); }));
  const Blocks to(amounts(size, [&](int peer) {
    return in_place ? amount(std::min(rank, peer), std::max(rank, peer)) : amount(rank, peer);
  }));
  const Blocks from(amounts(size, [&](int peer) {
    return in_place ? amount(std::min(rank, peer), std::max(rank, peer)) : amount(peer, rank);
  }));
  const auto room = [&](const Blocks& blocks) {
    return Buffer<int>(static_cast<std::size_t>(blocks.end + 1) * elements.stride);
  };
  const auto blocks = [&](Buffer<int>& buffer, const Blocks& of, bool only_mine,
                          const std::function<std::pair<int, int>(int)>& ends) {
    for (int peer = 0; peer < size; ++peer)
      if (!only_mine || peer == rank)
        elements.fill(buffer, of.at[peer], of.counts[peer], ends(peer).first, ends(peer).second);
  };
  const auto to_all = [&](int peer) { return std::pair(peer, 0); };

  Buffer<int> mine(static_cast<std::size_t>(own.counts[rank]) * elements.stride);
  elements.fill(mine, 0, own.counts[rank], rank, 0);
  Buffer<int> everyone = room(own), gathered = room(own), all_gathered = room(own), scattered(mine),
              scattered_expected(mine);
  blocks(everyone, own, false, to_all);
  std::fill_n(scattered.data(), scattered.size(), Buffer<int>::untouched());
  for (std::size_t i = 0; i < scattered.size(); ++i)
    if (static_cast<int>(i) % elements.stride >= 2) scattered_expected[i] = scattered[i];
  Buffer<int> sent = room(to), received = room(from), received_expected = room(from);
  blocks(in_place ? received : sent, to, false, [&](int peer) { return std::pair(rank, peer); });
  blocks(received_expected, from, false, [&](int peer) { return std::pair(peer, rank); });
  if (in_place) {
    if (rank == root) blocks(gathered, own, true, to_all);
    blocks(all_gathered, own, true, to_all);
  }

  const MPI_Datatype t = elements.type;
  std::deque<List> lists;
  const auto list = [&](const std::vector<int>& values) {
    return lists.emplace_back(values).data();
  };
  MPI_Request requests[4];
  results.succeeds(MPI_Igatherv(in_place && rank == root ? MPI_IN_PLACE : mine.data(),
                                own.counts[rank], t, gathered.data(), list(own.counts),
                                list(own.at), t, root, MPI_COMM_WORLD, &requests[0]),
                   "Igatherv");
  const bool stays = in_place && rank == root;
  results.succeeds(MPI_Iscatterv(everyone.data(), list(own.counts), list(own.at), t,
                                 stays ? MPI_IN_PLACE : scattered.data(), own.counts[rank], t, root,
                                 MPI_COMM_WORLD, &requests[1]),
                   "Iscatterv");
  results.succeeds(MPI_Iallgatherv(in_place ? MPI_IN_PLACE : mine.data(), own.counts[rank], t,
                                   all_gathered.data(), list(own.counts), list(own.at), t,
                                   MPI_COMM_WORLD, &requests[2]),
                   "Iallgatherv");
  results.succeeds(MPI_Ialltoallv(in_place ? MPI_IN_PLACE : sent.data(), list(to.counts),
                                  list(to.at), t, received.data(), list(from.counts), list(from.at),
                                  t, MPI_COMM_WORLD, &requests[3]),
                   "Ialltoallv");
  for (List& each : lists) each.destroy();
  results.succeeds(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE), "Waitall");
  if (rank == root) results.expect(gathered, everyone, "Igatherv");
  if (!stays) results.expect(scattered, scattered_expected, "Iscatterv");
  results.expect(all_gathered, everyone, "Iallgatherv");
  results.expect(received, received_expected, "Ialltoallv");
}

/// The same of MPI_Ialltoallw, with its list of datatypes; these are freed, too.
void of_datatypes(Results& results, const Elements& elements, int rank, int size, bool in_place) {
  const auto ends = [&](int peer) { return std::pair(std::min(rank, peer), std::max(rank, peer)); };
  const Blocks to(amounts(size, [&](int peer) {
    return in_place ? amount(ends(peer).first, ends(peer).second) : amount(rank, peer);
  }));
  const Blocks from(amounts(size, [&](int peer) {
    return in_place ? amount(ends(peer).first, ends(peer).second) : amount(peer, rank);
  }));
  Buffer<int> sent(static_cast<std::size_t>(to.end + 1) * elements.stride),
      received(static_cast<std::size_t>(from.end + 1) * elements.stride), expected(received);
  for (int peer = 0; peer < size; ++peer) {
    elements.fill(in_place ? received : sent, to.at[peer], to.counts[peer], rank, peer);
    elements.fill(expected, from.at[peer], from.counts[peer], peer, rank);
  }
  const auto bytes = [&](std::vector<int> at) {
    for (int& each : at) each *= elements.stride * static_cast<int>(sizeof(int));
    return at;
  };
  MPI_Datatype freed;
  MPI_Type_dup(elements.type, &freed);
  std::deque<List> lists;
  const auto list = [&](const std::vector<int>& values) {
    return lists.emplace_back(values).data();
  };
  auto types = std::make_unique<std::vector<MPI_Datatype>>(size, freed);
  MPI_Request request;
  results.succeeds(
      MPI_Ialltoallw(in_place ? MPI_IN_PLACE : sent.data(), list(to.counts), list(bytes(to.at)),
                     types->data(), received.data(), list(from.counts), list(bytes(from.at)),
                     types->data(), MPI_COMM_WORLD, &request),
      "Ialltoallw");
  for (List& each : lists) each.destroy();
  MPI_Type_free(&freed);
  for (MPI_Datatype& type : *types) type = MPI_DATATYPE_NULL;
  types.reset();
  results.succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE), "Wait");
  results.expect(received, expected, "Ialltoallw");
}

/// Sums of uneven blocks.
void reduced(Results& results, const Elements& elements, MPI_Op op, int rank, int size,
             bool in_place) {
  const std::vector<int> counts = amounts(size, [](int peer) { return amount(peer, 1); });
  int total = 0, at = 0;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) at = total;
    total += counts[peer];
  }
  const int stride = elements.stride;
  Buffer<int> in(static_cast<std::size_t>(total) * stride);
  for (int i = 0; i < total; ++i)
    for (int k = 0; k < 2; ++k) in[i * stride + k] = rank + 3 * i + k;
  Buffer<int> out(static_cast<std::size_t>(counts[rank]) * stride), expected = in_place ? in : out;
  for (int i = 0; i < counts[rank]; ++i)
    for (int k = 0; k < 2; ++k)
      expected[i * stride + k] = size * (size - 1) / 2 + size * (3 * (at + i) + k);
  List list(counts);
  MPI_Request request;
  results.succeeds(
      MPI_Ireduce_scatter(in_place ? MPI_IN_PLACE : in.data(), in_place ? in.data() : out.data(),
                          list.data(), elements.type, op, MPI_COMM_WORLD, &request),
      "Ireduce_scatter");
  list.destroy();
  results.succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE), "Wait");
  results.expect(in_place ? in : out, expected, "Ireduce_scatter");
}

template <int stride>
void sum_of_pairs(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i)
    for (int k = 0; k < 2; ++k)
      static_cast<int*>(inout)[i * stride + k] += static_cast<int*>(in)[i * stride + k];
}

}  // namespace

void lists(Suite& suite) {
  const int rank = suite.rank(), size = suite.size();
  MPI_Datatype pair, padded;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_create_resized(pair, 0, 3 * sizeof(int), &padded);
  MPI_Type_commit(&pair);
  MPI_Type_commit(&padded);
  MPI_Op sum, padded_sum;
  MPI_Op_create(sum_of_pairs<2>, 1, &sum);
  MPI_Op_create(sum_of_pairs<3>, 1, &padded_sum);
  for (const bool in_place : {false, true}) {
    const std::string end = in_place ? ", in place" : "";
    const auto run = [&](const char* name, const std::function<void(Results&)>& body) {
      suite.run_beyond_library("lists/" + (name + end), body);
    };
    run("uneven", [&](Results& r) { uneven(r, {pair, 2}, rank, size, in_place); });
    run("uneven with gaps", [&](Results& r) { uneven(r, {padded, 3}, rank, size, in_place); });
    run("of datatypes", [&](Results& r) { of_datatypes(r, {pair, 2}, rank, size, in_place); });
    run("of datatypes with gaps", [&](Results& r) {
      of_datatypes(r, {padded, 3}, rank, size, in_place);
    });
    run("reduced", [&](Results& r) { reduced(r, {pair, 2}, sum, rank, size, in_place); });
    run("reduced with gaps", [&](Results& r) {
      reduced(r, {padded, 3}, padded_sum, rank, size, in_place);
    });
  }
  for (MPI_Op* op : {&sum, &padded_sum}) MPI_Op_free(op);
  for (MPI_Datatype* type : {&pair, &padded}) MPI_Type_free(type);
}

}  // namespace dropin
