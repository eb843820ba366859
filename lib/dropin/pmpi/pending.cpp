#include "pending.hpp"

#include "drop_in.hpp"

namespace baton::pmpi {

PendingCollective::~PendingCollective() {
  DropIn* const drop_in = DropIn::now();
  if (kept_ && drop_in) {
    drop_in->release(mpi_.op, mpi_.recv_type);
    drop_in->release(MPI_OP_NULL, mpi_.send_type);
    for (MPI_Datatype type : types_) drop_in->release(MPI_OP_NULL, type);
  }
}

void PendingCollective::start(const MpiCall& call) {
  mpi_ = call;
  DropIn& drop_in = *DropIn::now();
  drop_in.keep(mpi_.op, mpi_.recv_type);
  drop_in.keep(MPI_OP_NULL, mpi_.send_type);
  for (const MPI_Datatype* types : {mpi_.send_types, mpi_.recv_types}) {
    if (types && (types == mpi_.recv_types || mpi_.send != MPI_IN_PLACE))
      types_.insert(types_.end(), types, types + group_->size);
  }
  for (MPI_Datatype type : types_) drop_in.keep(MPI_OP_NULL, type);
  kept_ = true;
  job_.keep_lists();
  watch_ = Stopwatch(drop_in.stats());
  const std::lock_guard lock(group_->mutex);
  request_ = group_->communicator.start(job_.call());
}

bool PendingCollective::complete(int& code) {
  if (!request_.done()) return false;
  try {
    request_.test();
    code = job_.after();
  } catch (const Error& error) {
    code = code_of(error, *group_);
  }
  DropIn& drop_in = *DropIn::now();
  if (Stats* const stats = drop_in.stats()) {
    stats->add({mpi_name(mpi_.function, true), group_->size, job_.bytes(), algorithm, false},
               watch_.seconds());
  }
  return true;
}

}  // namespace baton::pmpi
