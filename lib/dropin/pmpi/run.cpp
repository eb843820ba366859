/// Runs the program's collectives by ours, or by the MPI library's.

#include <algorithm>
#include <chrono>
#include <memory>

#include "baton/version.hpp"
#include "drop_in.hpp"
#include "function.hpp"
#include "progress.hpp"

namespace baton::pmpi {
namespace {

constexpr const char* no_private_one = "a communicator without a private one";

/// Calls the MPI library's collective, so that our operations can advance meanwhile. All ranks must
/// choose the same form, blocking or not, so the choice depends on settings alone.
int pass_on(DropIn* drop_in, const MpiCall& call, const char* why) {
  if (!drop_in) return own(call);
  const auto begin = std::chrono::steady_clock::now();
  int code = MPI_SUCCESS;
  if (drop_in->can_be_pending()) {
    MPI_Request request = MPI_REQUEST_NULL;
    code = own(call, &request);
    if (code == MPI_SUCCESS) code = wait_for(*drop_in, request, MPI_STATUS_IGNORE);
  } else {
    code = own(call);
  }
  if (Stats* const stats = drop_in->stats()) {
    int size = 0;
    if (call.comm != MPI_COMM_NULL) PMPI_Comm_size(call.comm, &size);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    stats->add({call.function, false, size, 0, why, true}, taken.count());
  }
  return code;
}

int start_passed_on(DropIn* drop_in, const MpiCall& call, MPI_Request* request, const char* why) {
  const int code = own(call, request);
  if (Stats* const stats = drop_in ? drop_in->stats() : nullptr) {
    int size = 0;
    if (call.comm != MPI_COMM_NULL) PMPI_Comm_size(call.comm, &size);
    stats->add({call.function, true, size, 0, why, true}, 0);
  }
  return code;
}

/// The algorithm of a prepared call, for statistics.
std::string algorithm_of(Group& group, const Job& job) {
  const std::lock_guard lock(group.mutex);
  return group.communicator.chosen(job.call()).algorithm;
}

/// Runs a prepared job to its end.
void run_job(DropIn& drop_in, Group& group, Job& job) {
  if (!drop_in.pending()) {
    const std::lock_guard lock(group.mutex);
    group.communicator.run(job.call());
    return;
  }
  Request request;
  {
    const std::lock_guard lock(group.mutex);
    request = group.communicator.start(job.call());
  }
  drop_in.until([&] {
    const std::lock_guard lock(group.mutex);
    return request.test();
  });
}

/// The count that each rank receives in a reduce-scatter; negative if counts differ.
int equal_count(const MpiCall& call, int ranks) {
  const int first = call.recv_counts[0];
  return std::all_of(call.recv_counts, call.recv_counts + ranks,
                     [&](int count) { return count == first; })
             ? first
             : -1;
}

/// A short way for calls whose buffers need no conversion.
bool run_plain(DropIn& drop_in, Group& group, const MpiCall& call) {
  if (drop_in.pending() || drop_in.stats()) return false;
  Communicator& communicator = group.communicator;
  const auto use = [&](const auto& collective) {
    const auto lock = drop_in.use(group);
    collective();
    return true;
  };
  if (call.function == Function::barrier) return use([&] { communicator.barrier(); });
  const TypeInfo* const type = drop_in.datatypes().find_predefined(call.recv_type);
  const int recv_count =
      call.function == Function::reduce_scatter ? equal_count(call, group.size) : call.recv_count;
  if (!type || !type->dense || recv_count < 0 || call.recv == MPI_IN_PLACE) return false;
  const std::int64_t count = recv_count;
  const std::int64_t bytes = count * type->size;
  const bool in_place = call.send == MPI_IN_PLACE;
  switch (call.function) {
    case Function::bcast:
      if (call.root < 0 || call.root >= group.size) return false;
      return use([&] { communicator.broadcast(Data(call.recv, bytes, Datatype::u8), call.root); });
    case Function::allreduce: {
      const auto op = native_op(call.op);
      if (!op || (op->groups & type->group) == 0 || type->native == Datatype::user) return false;
      return use([&] {
        communicator.all_reduce(ConstData(in_place ? call.recv : call.send, count, type->native),
                                Data(call.recv, count, type->native), op->kind);
      });
    }
    case Function::reduce_scatter:
    case Function::reduce_scatter_block: {
      const auto op = native_op(call.op);
      if (!op || (op->groups & type->group) == 0 || type->native == Datatype::user || in_place)
        return false;
      return use([&] {
        communicator.reduce_scatter(ConstData(call.send, count * group.size, type->native),
                                    Data(call.recv, count, type->native), op->kind);
      });
    }
    case Function::allgather:
    case Function::alltoall: {
      if (in_place) return false;
      const TypeInfo* const from = drop_in.datatypes().find_predefined(call.send_type);
      if (!from || !from->dense || call.send_count < 0) return false;
      const Data output(call.recv, bytes * group.size, Datatype::u8);
      const std::int64_t sent = call.send_count * from->size;
      if (call.function == Function::allgather)
        return use(
            [&] { communicator.all_gather(ConstData(call.send, sent, Datatype::u8), output); });
      return use([&] {
        communicator.all_to_all(ConstData(call.send, sent * group.size, Datatype::u8), output);
      });
    }
    default:
      return false;
  }
}

}  // namespace

int run(const MpiCall& call) {
  DropIn* const drop_in = DropIn::now();
  if (!drop_in || !drop_in->takes(call.function)) return pass_on(drop_in, call, "the settings");
  const auto* const found = drop_in->group(call.comm);
  if (!found) return pass_on(drop_in, call, no_private_one);
  Group* const group = found->get();
  try {
    if (run_plain(*drop_in, *group, call)) return MPI_SUCCESS;
    const auto begin = std::chrono::steady_clock::now();
    Job job;
    if (const char* const why = job.prepare(call, *group, drop_in->datatypes()))
      return pass_on(drop_in, call, why);
    Stats* const stats = drop_in->stats();
    const std::string algorithm = stats ? algorithm_of(*group, job) : "";
    if (const int code = job.before(); code != MPI_SUCCESS) return raise(call.comm, code);
    run_job(*drop_in, *group, job);
    if (stats) {
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
      stats->add({call.function, false, group->size, job.bytes(), algorithm, false}, taken.count());
    }
    return raise(call.comm, job.after());
  } catch (const Error& error) {
    return raise(call.comm, code_of(error));
  }
}

int start(const MpiCall& call, MPI_Request* request) {
  DropIn* const drop_in = DropIn::now();
  if (!drop_in || !drop_in->takes_nonblocking(call.function))
    return start_passed_on(drop_in, call, request, "the settings");
  const auto* const group = drop_in->group(call.comm);
  if (!group) return start_passed_on(drop_in, call, request, no_private_one);
  try {
    auto pending = std::make_unique<PendingCollective>(*group);
    if (const char* const why = pending->job().prepare(call, **group, drop_in->datatypes()))
      return start_passed_on(drop_in, call, request, why);
    if (drop_in->stats()) pending->algorithm = algorithm_of(**group, pending->job());
    if (const int code = pending->job().before(); code != MPI_SUCCESS)
      return raise(call.comm, code);
    pending->start(call);
    return raise(call.comm, drop_in->add(std::move(pending), request));
  } catch (const Error& error) {
    return raise(call.comm, code_of(error));
  }
}

}  // namespace baton::pmpi

/// Tells programs that the drop-in is loaded, and its version.
extern "C" const char* baton_pmpi_version();
extern "C" const char* baton_pmpi_version() { return baton::version(); }
