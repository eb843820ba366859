/// Runs the program's collectives by ours, or by the MPI library's.

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string>

#include "baton/version.hpp"
#include "drop_in.hpp"
#include "function.hpp"
#include "passed_on.hpp"
#include "progress.hpp"

namespace baton::pmpi {
namespace {

constexpr const char* no_private_one = "a communicator without a private one";
constexpr const char* the_settings = "the settings";

/// Makes a call by the MPI library's blocking function. All ranks of the communicator come first,
/// and operations of ours advance until then: no rank in the call then waits for one that waits for
/// an operation of ours.
int pass_on(DropIn* drop_in, const MpiCall& call, const char* why) {
  if (!drop_in) return call.own(call, nullptr);
  return counted(mpi_name(call.function, false), call.comm, why, [&] {
    meet(*drop_in, call.comm);
    return call.own(call, nullptr);
  });
}

/// The sentence about a call that no MPI library accepts; empty: the library must decide.
std::string refusal_of(const MpiCall& call, int size) {
  const std::string name(mpi_name(call.function, false));
  const Collective collective = functions[static_cast<std::size_t>(call.function)].collective;
  if (rooted(collective) && (call.root < 0 || call.root >= size))
    return fmt::format("{}: expected a root from 0 to {}, found {}", name, size - 1, call.root);
  const bool significant = collective != Collective::gather && collective != Collective::scatter;
  if (significant && call.recv_count < 0)
    return fmt::format("{}: expected a count of at least 0, found {}", name, call.recv_count);
  return {};
}

void report_wrong(const MpiCall& call, const Group& group) {
  const std::string sentence = refusal_of(call, group.size);
  if (!sentence.empty()) report_if_fatal(group, sentence);
}

/// The same for a call that looks wrong, perhaps on this rank alone: the MPI library refuses it at
/// once. If it does not, the call is such on all ranks and ends as a nonblocking one.
int pass_on_wrong(DropIn& drop_in, const MpiCall& call, const char* why) {
  return counted(mpi_name(call.function, false), call.comm, why, [&] {
    if (!drop_in.can_be_pending()) return call.own(call, nullptr);
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = call.own(call, &request);
    return code != MPI_SUCCESS ? code : wait_for(drop_in, request, MPI_STATUS_IGNORE);
  });
}

int start_passed_on(const MpiCall& call, MPI_Request* request, const char* why) {
  const int code = call.own(call, request);
  count_passed_on(mpi_name(call.function, true), call.comm, why);
  return code;
}

/// Raises the error that memory, as for copies of data with gaps, is missing.
int raise_no_memory(const MpiCall& call, const Group& group, bool nonblocking) {
  report_if_fatal(group, fmt::format("{}: expected memory for copies of the data, found too little",
                                     mpi_name(call.function, nonblocking)));
  return raise(call.comm, MPI_ERR_NO_MEM);
}

/// The algorithm of a call that has run or has been started.
std::string algorithm_of(Group& group, const Call& call) {
  const std::lock_guard lock(group.mutex);
  return group.communicator.chosen(call).algorithm;
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

/// The count that each rank receives in a reduce-scatter; negative if counts differ or are missing.
std::int64_t equal_count(const MpiCall& call, int ranks) {
  if (!call.recv_counts) return -1;
  const std::int64_t first = call.recv_counts[0];
  for (int i = 1; i < ranks; ++i) {
    if (call.recv_counts[i] != first) return -1;
  }
  return first;
}

/// Describes the collectives that run_plain() runs.
struct Description {
  Call call;
  void barrier() { call = calls::barrier(); }
  void broadcast(Data data, int root) { call = calls::broadcast(data, root); }
  void all_reduce(ConstData input, Data output, Op op) {
    call = calls::all_reduce(input, output, op);
  }
  void all_gather(ConstData input, Data output) { call = calls::all_gather(input, output); }
  void reduce_scatter(ConstData input, Data output, Op op) {
    call = calls::reduce_scatter(input, output, op);
  }
  void all_to_all(ConstData input, Data output) { call = calls::all_to_all(input, output); }
};

/// A short way for calls whose buffers need no conversion.
bool run_plain(DropIn& drop_in, Group& group, const MpiCall& call) {
  if (drop_in.pending()) return false;
  // collective(c) calls one collective of c, a Communicator or a Description.
  const auto use = [&](std::int64_t bytes, const auto& collective) {
    Stats* const stats = drop_in.stats();
    const Stopwatch watch(stats);
    {
      const auto lock = drop_in.use(group);
      collective(group.communicator);
    }
    if (!stats) return true;
    const double seconds = watch.seconds();
    Description description;
    collective(description);
    stats->add({mpi_name(call.function, false), group.size, bytes,
                algorithm_of(group, description.call), false},
               seconds);
    return true;
  };
  if (call.function == Function::barrier) return use(0, [](auto& c) { c.barrier(); });
  const TypeInfo* const type = drop_in.datatypes().find_predefined(call.recv_type);
  const std::int64_t count =
      call.function == Function::reduce_scatter ? equal_count(call, group.size) : call.recv_count;
  if (!type || !type->dense || count < 0 || call.recv == MPI_IN_PLACE) return false;
  const std::int64_t bytes = count * type->size;
  const bool in_place = call.send == MPI_IN_PLACE;
  switch (call.function) {
    case Function::bcast:
      if (call.root < 0 || call.root >= group.size) return false;
      return use(bytes,
                 [&](auto& c) { c.broadcast(Data(call.recv, bytes, Datatype::u8), call.root); });
    case Function::allreduce: {
      const auto op = native_op(call.op);
      if (!op || (op->groups & type->group) == 0 || type->native == Datatype::user) return false;
      return use(bytes, [&](auto& c) {
        c.all_reduce(ConstData(in_place ? call.recv : call.send, count, type->native),
                     Data(call.recv, count, type->native), op->kind);
      });
    }
    case Function::reduce_scatter:
    case Function::reduce_scatter_block: {
      const auto op = native_op(call.op);
      if (!op || (op->groups & type->group) == 0 || type->native == Datatype::user || in_place)
        return false;
      return use(bytes * group.size, [&](auto& c) {
        c.reduce_scatter(ConstData(call.send, count * group.size, type->native),
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
      const std::int64_t most = std::max(sent, bytes) * group.size;
      if (call.function == Function::allgather)
        return use(
            most, [&](auto& c) { c.all_gather(ConstData(call.send, sent, Datatype::u8), output); });
      return use(most, [&](auto& c) {
        c.all_to_all(ConstData(call.send, sent * group.size, Datatype::u8), output);
      });
    }
    default:
      return false;
  }
}

}  // namespace

int run(const MpiCall& call) {
  DropIn* const drop_in = DropIn::now();
  if (!drop_in || !drop_in->takes(call.function)) return pass_on(drop_in, call, the_settings);
  const auto* const found = drop_in->group(call.comm);
  if (!found) return pass_on(drop_in, call, no_private_one);
  Group* const group = found->get();
  try {
    if (run_plain(*drop_in, *group, call)) return MPI_SUCCESS;
    Stats* const stats = drop_in->stats();
    const Stopwatch watch(stats);
    Job job;
    if (const char* const why = job.prepare(call, *group, drop_in->datatypes())) {
      report_wrong(call, *group);
      return pass_on_wrong(*drop_in, call, why);
    }
    if (const int code = job.before(); code != MPI_SUCCESS) return raise(call.comm, code);
    run_job(*drop_in, *group, job);
    const int code = job.after();
    if (stats) {
      const double seconds = watch.seconds();
      stats->add({mpi_name(call.function, false), group->size, job.bytes(),
                  algorithm_of(*group, job.call()), false},
                 seconds);
    }
    return raise(call.comm, code);
  } catch (const Error& error) {
    return raise(call.comm, code_of(error, *group));
  } catch (const std::bad_alloc&) {
    return raise_no_memory(call, *group, false);
  }
}

int start(const MpiCall& call, MPI_Request* request) {
  DropIn* const drop_in = DropIn::now();
  if (!drop_in || !drop_in->takes_nonblocking(call.function))
    return start_passed_on(call, request, the_settings);
  const auto* const group = drop_in->group(call.comm);
  if (!group) return start_passed_on(call, request, no_private_one);
  try {
    auto pending = std::make_unique<PendingCollective>(*group);
    if (const char* const why = pending->job().prepare(call, **group, drop_in->datatypes())) {
      report_wrong(call, **group);
      return start_passed_on(call, request, why);
    }
    if (const int code = pending->job().before(); code != MPI_SUCCESS)
      return raise(call.comm, code);
    pending->start(call);
    if (drop_in->stats()) pending->algorithm = algorithm_of(**group, pending->job().call());
    return raise(call.comm, drop_in->add(std::move(pending), request));
  } catch (const Error& error) {
    return raise(call.comm, code_of(error, **group));
  } catch (const std::bad_alloc&) {
    return raise_no_memory(call, **group, true);
  }
}

Stats* statistics() {
  DropIn* const drop_in = DropIn::now();
  return drop_in ? drop_in->stats() : nullptr;
}

void count_passed_on(std::string_view name, MPI_Comm comm, const char* why, double seconds) {
  Stats* const stats = statistics();
  if (!stats) return;
  int size = 0;
  if (comm != MPI_COMM_NULL) PMPI_Comm_size(comm, &size);
  stats->add({name, size, 0, why, true}, seconds);
}

void count_persistent(std::string_view name, MPI_Comm comm) {
  if (DropIn* const drop_in = DropIn::now()) drop_in->note_persistent();
  count_passed_on(name, comm, not_taken_over);
}

}  // namespace baton::pmpi

/// Tells programs that the drop-in is loaded, and its version.
extern "C" const char* baton_pmpi_version();
extern "C" const char* baton_pmpi_version() { return baton::version(); }
