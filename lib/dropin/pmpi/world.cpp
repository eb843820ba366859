/// Start and end of MPI, and the program's communicators: each new one gets a private one. Handles
/// that an operation under way needs are freed after its end.

#include <memory>
#include <utility>

#include "progress.hpp"

using namespace baton::pmpi;

namespace {

int opened(int code) {
  if (code == MPI_SUCCESS) DropIn::open();
  return code;
}

/// The group of a communicator, or null.
const Group* group_of(MPI_Comm comm) {
  DropIn* const drop_in = DropIn::now();
  const auto* const group = drop_in ? drop_in->group(comm) : nullptr;
  return group ? group->get() : nullptr;
}

/// Makes communicators from `from`; all its ranks call this.
template <class Make>
int making(MPI_Comm from, MPI_Comm* made, const Make& make) {
  DropIn* const drop_in = DropIn::now();
  if (!drop_in) return make();
  meet(*drop_in, from);
  const int code = make();
  if (code == MPI_SUCCESS && *made != MPI_COMM_NULL) drop_in->attach(*made, group_of(from));
  return code;
}

/// Two duplications under way: of the program's communicator and of its private one.
class PendingDuplicate final : public Pending {
 public:
  explicit PendingDuplicate(std::shared_ptr<Group> parent) : parent_(std::move(parent)) {}

  int start(MPI_Comm comm, MPI_Comm* made) {
    const int code = PMPI_Comm_idup(comm, made, &requests_[0]);
    if (code != MPI_SUCCESS) return code;
    made_ = *made;  // the handle is valid now, the communicator later
    return PMPI_Comm_idup(parent_->own, &own_, &requests_[1]);
  }
  std::shared_ptr<Group> called_on() const override { return parent_; }
  bool complete(int& code) override {
    int over = 0;
    code = PMPI_Testall(2, requests_, &over, MPI_STATUSES_IGNORE);
    if (over == 0 && code == MPI_SUCCESS) return false;
    if (code == MPI_SUCCESS) DropIn::now()->attach(made_, own_, *parent_);
    return true;
  }

 private:
  const std::shared_ptr<Group> parent_;
  MPI_Comm made_ = MPI_COMM_NULL, own_ = MPI_COMM_NULL;
  MPI_Request requests_[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

/// A barrier among `members`, by messages on a private communicator that they share. No collective
/// of ours uses its tag.
void meet(DropIn& drop_in, const Group& shared, MPI_Group members, int tag) {
  int rank = MPI_UNDEFINED, size = 0;
  PMPI_Group_rank(members, &rank);
  PMPI_Group_size(members, &size);
  if (rank == MPI_UNDEFINED) return;
  MPI_Group all = MPI_GROUP_NULL;
  PMPI_Comm_group(shared.own, &all);
  const auto translated = [&](int member) {
    int there = MPI_UNDEFINED;
    PMPI_Group_translate_ranks(members, 1, &member, all, &there);
    return there;
  };
  constexpr int free_tags = 1024;  // of Communicator::send, which the drop-in does not use
  for (int distance = 1; distance < size; distance *= 2) {
    MPI_Request requests[2];
    PMPI_Irecv(nullptr, 0, MPI_BYTE, translated((rank - distance + size) % size), tag % free_tags,
               shared.own, &requests[0]);
    PMPI_Isend(nullptr, 0, MPI_BYTE, translated((rank + distance) % size), tag % free_tags,
               shared.own, &requests[1]);
    for (MPI_Request& request : requests) wait_for(drop_in, request, MPI_STATUS_IGNORE);
  }
  PMPI_Group_free(&all);
}

}  // namespace

namespace baton::pmpi {

void meet(DropIn& drop_in, MPI_Comm comm) {
  int inter = 0;
  if (!drop_in.can_be_pending() || comm == MPI_COMM_NULL ||
      PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS)
    return;
  if (const Group* const group = inter == 0 ? group_of(comm) : nullptr)
    return meet(drop_in, *group);
  // MPI's barrier between two groups waits for the other group only. A rank leaves the second one
  // when all of the other group have left the first, to which all of its own group had come then.
  for (int barriers = inter == 0 ? 1 : 2; barriers > 0; --barriers) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (PMPI_Ibarrier(comm, &request) != MPI_SUCCESS) return;
    wait_for(drop_in, request, MPI_STATUS_IGNORE);
  }
}

void meet(DropIn& drop_in, const Group& group) {
  if (!drop_in.can_be_pending()) return;
  MPI_Group members = MPI_GROUP_NULL;
  PMPI_Comm_group(group.own, &members);
  ::meet(drop_in, group, members, 0);
  PMPI_Group_free(&members);
}

}  // namespace baton::pmpi

extern "C" {

int MPI_Init(int* argc, char*** argv) { return opened(PMPI_Init(argc, argv)); }

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return opened(PMPI_Init_thread(argc, argv, required, provided));
}

int MPI_Finalize() {
  if (DropIn* const drop_in = DropIn::now()) meet(*drop_in, MPI_COMM_WORLD);
  DropIn::close();
  return PMPI_Finalize();
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  return making(comm, made, [&] { return PMPI_Comm_dup(comm, made); });
}

int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made) {
  return making(comm, made, [&] { return PMPI_Comm_dup_with_info(comm, info, made); });
}

int MPI_Comm_idup(MPI_Comm comm, MPI_Comm* made, MPI_Request* request) {
  DropIn* const drop_in = DropIn::now();
  const auto* const parent = drop_in ? drop_in->group(comm) : nullptr;
  if (!parent) return PMPI_Comm_idup(comm, made, request);
  auto pending = std::make_unique<PendingDuplicate>(*parent);
  const int code = pending->start(comm, made);
  return code != MPI_SUCCESS ? code : drop_in->add(std::move(pending), request);
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* made) {
  return making(comm, made, [&] { return PMPI_Comm_split(comm, color, key, made); });
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made) {
  return making(comm, made, [&] { return PMPI_Comm_split_type(comm, type, key, info, made); });
}

int MPI_Comm_create(MPI_Comm comm, MPI_Group members, MPI_Comm* made) {
  return making(comm, made, [&] { return PMPI_Comm_create(comm, members, made); });
}

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group members, int tag, MPI_Comm* made) {
  DropIn* const drop_in = DropIn::now();
  const Group* const shared = group_of(comm);
  if (shared && drop_in->can_be_pending()) ::meet(*drop_in, *shared, members, tag);
  const int code = PMPI_Comm_create_group(comm, members, tag, made);
  constexpr int numbers = 32767;
  if (drop_in && code == MPI_SUCCESS) drop_in->attach(*made, shared, 1 + tag % numbers);
  return code;
}

int MPI_Cart_create(MPI_Comm comm, int dimensions, const int* extents, const int* periodic,
                    int reorder, MPI_Comm* made) {
  return making(comm, made, [&] {
    return PMPI_Cart_create(comm, dimensions, extents, periodic, reorder, made);
  });
}

int MPI_Cart_sub(MPI_Comm comm, const int* remaining, MPI_Comm* made) {
  return making(comm, made, [&] { return PMPI_Cart_sub(comm, remaining, made); });
}

int MPI_Graph_create(MPI_Comm comm, int nodes, const int* index, const int* edges, int reorder,
                     MPI_Comm* made) {
  return making(comm, made,
                [&] { return PMPI_Graph_create(comm, nodes, index, edges, reorder, made); });
}

int MPI_Dist_graph_create(MPI_Comm comm, int n, const int* sources, const int* degrees,
                          const int* destinations, const int* weights, MPI_Info info, int reorder,
                          MPI_Comm* made) {
  return making(comm, made, [&] {
    return PMPI_Dist_graph_create(comm, n, sources, degrees, destinations, weights, info, reorder,
                                  made);
  });
}

int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int in, const int* sources,
                                   const int* source_weights, int out, const int* destinations,
                                   const int* destination_weights, MPI_Info info, int reorder,
                                   MPI_Comm* made) {
  return making(comm, made, [&] {
    return PMPI_Dist_graph_create_adjacent(comm, in, sources, source_weights, out, destinations,
                                           destination_weights, info, reorder, made);
  });
}

int MPI_Intercomm_create(MPI_Comm comm, int leader, MPI_Comm peer_comm, int remote_leader, int tag,
                         MPI_Comm* made) {
  DropIn* const drop_in = DropIn::now();
  if (drop_in && drop_in->can_be_pending()) {
    // Both groups must be here before a rank blocks.
    meet(*drop_in, comm);
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    if (rank == leader) {
      MPI_Request requests[2];
      PMPI_Irecv(nullptr, 0, MPI_BYTE, remote_leader, tag, peer_comm, &requests[0]);
      PMPI_Isend(nullptr, 0, MPI_BYTE, remote_leader, tag, peer_comm, &requests[1]);
      for (MPI_Request& request : requests) wait_for(*drop_in, request, MPI_STATUS_IGNORE);
    }
    meet(*drop_in, comm);
  }
  return PMPI_Intercomm_create(comm, leader, peer_comm, remote_leader, tag, made);
}

int MPI_Intercomm_merge(MPI_Comm comm, int high, MPI_Comm* made) {
  return making(comm, made, [&] { return PMPI_Intercomm_merge(comm, high, made); });
}

int MPI_Comm_set_name(MPI_Comm comm, const char* name) {
  const int code = PMPI_Comm_set_name(comm, name);
  DropIn* const drop_in = DropIn::now();
  const auto* const group = drop_in && code == MPI_SUCCESS ? drop_in->group(comm) : nullptr;
  if (group && *name != '\0') {
    const auto lock = drop_in->use(**group);
    (*group)->communicator.set_name(name);
  }
  return code;
}

int MPI_Comm_disconnect(MPI_Comm* comm) {
  if (DropIn* const drop_in = DropIn::now()) meet(*drop_in, *comm);
  return PMPI_Comm_disconnect(comm);
}

int MPI_Op_free(MPI_Op* op) {
  DropIn* const drop_in = DropIn::now();
  return drop_in ? drop_in->free_op(op) : PMPI_Op_free(op);
}

int MPI_Type_free(MPI_Datatype* type) {
  DropIn* const drop_in = DropIn::now();
  return drop_in ? drop_in->free_type(type) : PMPI_Type_free(type);
}

}  // extern "C"
