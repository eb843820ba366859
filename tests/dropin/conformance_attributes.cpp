#include <cstdio>

#include "conformance.hpp"

// Attributes of the program's own are copied and deleted exactly as often as the program copies and
// frees communicators: whoever duplicates a communicator behind its back is seen here.

namespace dropin {

namespace {

struct Calls {
  int copies = 0, deletions = 0;
};

int copy(MPI_Comm, int, void* extra, void* value, void* result, int* flag) {
  ++static_cast<Calls*>(extra)->copies;
  *static_cast<void**>(result) = static_cast<char*>(value) + 1;
  *flag = 1;
  return MPI_SUCCESS;
}

int copy_nothing(MPI_Comm, int, void* extra, void*, void*, int* flag) {
  ++static_cast<Calls*>(extra)->copies;
  *flag = 0;
  return MPI_SUCCESS;
}

int count_deletion(MPI_Comm, int, void*, void* extra) {
  ++static_cast<Calls*>(extra)->deletions;
  return MPI_SUCCESS;
}

void collectives(MPI_Comm communicator) {
  int word = 0, sum = 0;
  MPI_Request request;
  MPI_Bcast(&word, 1, MPI_INT, 0, communicator);
  MPI_Iallreduce(&word, &sum, 1, MPI_INT, MPI_SUM, communicator, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

class Attributes {
 public:
  Attributes(Results& results, MPI_Comm_copy_attr_function* copy) : results_(results) {
    MPI_Comm_create_keyval(copy, count_deletion, &key_, &calls_);
  }
  ~Attributes() { MPI_Comm_free_keyval(&key_); }

  void set(MPI_Comm communicator, std::intptr_t value) {
    MPI_Comm_set_attr(communicator, key_, reinterpret_cast<void*>(value));
  }
  void remove(MPI_Comm communicator) { MPI_Comm_delete_attr(communicator, key_); }

  /// -1 if it has none.
  void expect_value(MPI_Comm communicator, std::intptr_t expected, const std::string& what) {
    void* value = nullptr;
    int flag = 0;
    MPI_Comm_get_attr(communicator, key_, &value, &flag);
    results_.expect(flag ? reinterpret_cast<std::intptr_t>(value) : -1, expected, what);
  }
  void expect_calls(int copies, int deletions, const std::string& what) {
    results_.expect(calls_.copies, copies, what + ": copies");
    results_.expect(calls_.deletions, deletions, what + ": deletions");
  }

 private:
  Results& results_;
  Calls calls_;
  int key_ = MPI_KEYVAL_INVALID;
};

void duplicated(Results& results) {
  Attributes attributes(results, copy);
  attributes.set(MPI_COMM_WORLD, 100);
  collectives(MPI_COMM_WORLD);
  attributes.expect_calls(0, 0, "collectives");

  MPI_Comm once, twice, later, split;
  MPI_Comm_dup(MPI_COMM_WORLD, &once);
  collectives(once);
  attributes.expect_calls(1, 0, "dup");
  attributes.expect_value(once, 101, "dup");
  MPI_Comm_dup(once, &twice);
  collectives(twice);
  attributes.expect_calls(2, 0, "dup of dup");
  attributes.expect_value(twice, 102, "dup of dup");
  MPI_Request request;
  MPI_Comm_idup(twice, &later, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  collectives(later);
  attributes.expect_calls(3, 0, "idup");
  attributes.expect_value(later, 103, "idup");

  MPI_Comm_split(twice, 0, 0, &split);
  collectives(split);
  attributes.expect_calls(3, 0, "split");
  attributes.expect_value(split, -1, "split");
  attributes.set(split, 7);
  attributes.set(split, 8);
  attributes.expect_calls(3, 1, "value replaced");

  MPI_Comm_free(&once);
  attributes.expect_calls(3, 2, "free");
  for (MPI_Comm* made : {&twice, &later, &split}) MPI_Comm_free(made);
  attributes.expect_calls(3, 5, "all freed");
  attributes.remove(MPI_COMM_WORLD);
  attributes.expect_calls(3, 6, "deleted");
}

void not_copied(Results& results) {
  for (auto* function : {MPI_COMM_NULL_COPY_FN, copy_nothing}) {
    const bool counted = function == copy_nothing;
    Attributes attributes(results, function);
    MPI_Comm parent, made;
    MPI_Comm_dup(MPI_COMM_WORLD, &parent);
    attributes.set(parent, 5);
    MPI_Comm_dup(parent, &made);
    collectives(made);
    attributes.expect_calls(counted, 0, "not copied");
    attributes.expect_value(made, -1, "not copied");
    MPI_Comm_free(&made);
    MPI_Comm_free(&parent);
    attributes.expect_calls(counted, 1, "freed");
  }
}

/// Its keyval is freed first: the attribute lives on.
void keyval_freed(Results& results) {
  Calls calls;
  int key;
  MPI_Comm_create_keyval(copy, count_deletion, &key, &calls);
  MPI_Comm parent, made;
  MPI_Comm_dup(MPI_COMM_WORLD, &parent);
  MPI_Comm_set_attr(parent, key, nullptr);
  MPI_Comm_free_keyval(&key);
  MPI_Comm_dup(parent, &made);
  collectives(made);
  MPI_Comm_free(&made);
  MPI_Comm_free(&parent);
  results.expect(calls.copies, 1, "copies");
  results.expect(calls.deletions, 2, "deletions");
}

/// MPI deletes the attributes of MPI_COMM_SELF first thing in MPI_Finalize, and can still be used.
int finalizing(MPI_Comm, int, void*, void*) {
  const int mine = rank_in(MPI_COMM_WORLD) + 1, size = size_of(MPI_COMM_WORLD);
  int sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  const bool right = sum == size * (size + 1) / 2;
  if (!right)
    std::fprintf(stderr, "FAILED attributes/in_finalize on rank %d: sum %d\n", mine - 1, sum);
  if (mine == 1) std::printf("attributes/in_finalize sum %d\n", sum);
  return right ? MPI_SUCCESS : MPI_ERR_OTHER;
}

}  // namespace

void attributes(Suite& suite) {
  suite.run("attributes/duplicated", duplicated);
  suite.run("attributes/not_copied", not_copied);
  suite.run("attributes/keyval_freed", keyval_freed);
  suite.run("attributes/in_finalize", [](Results& results) {
    int key;
    results.succeeds(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finalizing, &key, nullptr),
                     "keyval");
    results.succeeds(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr), "attribute");
  });
}

}  // namespace dropin
