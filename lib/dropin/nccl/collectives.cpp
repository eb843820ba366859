/// The collectives and messages, as the program sees them.

#include <initializer_list>
#include <utility>

#include "arguments.hpp"
#include "group.hpp"
#include "platform.hpp"
#include "real.hpp"

namespace {

using namespace baton;
using namespace baton::nccl_abi;

Stream of(cudaStream_t stream) { return stream; }

/// Gives a collective: `use` does it.
ncclResult_t give_use(const Held& member, cudaStream_t stream, Member::Use use) {
  member->require_in_use();
  return give({member, [member, use = std::move(use)] { member->run(use); }, {}, of(stream)});
}

ncclResult_t enqueue(const Held& member, const Call& call, cudaStream_t stream) {
  return give_use(member, stream,
                  [=](StreamCommunicator& ranks) { ranks.enqueue(call, of(stream)); });
}

/// Whether enqueue() takes the call, as far as its arguments say.
bool takes(StreamCommunicator& ranks, const Call& call, Stream stream) {
  try {
    ranks.device().check_stream(stream);
    ranks.chosen(call);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Gives a call to a stream with work before it: `give_all()` does both. If the communicator
/// refuses one of the calls `as_if`, gives it that one alone, so that other ranks learn of it.
template <class GiveAll>
void enqueue_behind(StreamCommunicator& ranks, std::initializer_list<Call> as_if, Stream stream,
                    const GiveAll& give_all) {
  ranks.check();
  for (const Call& call : as_if)
    if (!takes(ranks, call, stream)) return ranks.enqueue(call, stream);
  try {
    give_all();
  } catch (const Error& error) {
    // As enqueue() does: other ranks may wait for this one.
    if (error.code == ErrorCode::memory || error.code == ErrorCode::device)
      ranks.abort(error.what());
    throw;
  }
}

/// A collective that reduces; `call` makes it of an input and an op. `elements`: of the input.
template <class MakeCall>
ncclResult_t reduce(const Held& member, const void* input, void* product, std::size_t elements,
                    ncclDataType_t type, ncclRedOp_t op, cudaStream_t stream,
                    const MakeCall& make_call) {
  if (const auto kind = op_of(op)) return enqueue(member, make_call(input, Op(*kind)), stream);
  Scalings& scalings = member->scalings();
  const auto scalar = scalings.find(op, nccl_abi::datatype_of(type));
  return give_use(member, stream, [=, &scalings](StreamCommunicator& ranks) {
    enqueue_behind(ranks, {make_call(input, sum)}, of(stream), [&] {
      Scalings::Products products(scalings, of(stream));
      const void* const scaled = products.multiply(*scalar, input, product, elements);
      ranks.enqueue(make_call(scaled, sum), of(stream));
    });
  });
}

ncclResult_t message(const Held& member, bool send, const void* data, std::size_t count,
                     ncclDataType_t type, int peer, cudaStream_t stream) {
  if (peer < 0 || peer >= member->size())
    throw Error(ErrorCode::invalid_argument, "expected a peer from 0 to " +
                                                 std::to_string(member->size() - 1) + ", found " +
                                                 std::to_string(peer));
  const StreamMessage one{
      send,      const_cast<void*>(data), count_of(count), nccl_abi::datatype_of(type), peer,
      of(stream)};
  member->require_in_use();
  if (count == 0) return ncclSuccess;
  check_pointer(data, "a buffer");
  return give({member, {}, one});
}

}  // namespace

extern "C" {

ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  return taken(
      comm,
      [&](const Held& member) {
        const Datatype type = nccl_abi::datatype_of(datatype);
        const std::int64_t n = count_of(count);
        return n == 0
                   ? ncclSuccess
                   : reduce(member, sendbuff, recvbuff, count, datatype, op, stream,
                            [=](const void* input, Op its) {
                              return calls::all_reduce({input, n, type}, {recvbuff, n, type}, its);
                            });
      },
      BATON_PASSED_ON(ncclAllReduce, sendbuff, recvbuff, count, datatype, op, comm, stream));
}
BATON_SECOND_NAME(ncclAllReduce);

ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return taken(
      comm,
      [&](const Held& member) {
        const Datatype type = nccl_abi::datatype_of(datatype);
        const std::int64_t n = count_of(count);
        check_root(root, member->size());
        void* const product = member->rank() == root ? recvbuff : nullptr;
        return n == 0
                   ? ncclSuccess
                   : reduce(
                         member, sendbuff, product, count, datatype, op, stream,
                         [=](const void* input, Op its) {
                           return calls::reduce({input, n, type}, {recvbuff, n, type}, its, root);
                         });
      },
      BATON_PASSED_ON(ncclReduce, sendbuff, recvbuff, count, datatype, op, root, comm, stream));
}
BATON_SECOND_NAME(ncclReduce);

ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                               ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) {
  return taken(
      comm,
      [&](const Held& member) {
        const Datatype type = nccl_abi::datatype_of(datatype);
        const std::int64_t n = count_of(recvcount, member->size()), all = n * member->size();
        return n == 0 ? ncclSuccess
                      : reduce(member, sendbuff, nullptr, static_cast<std::size_t>(all), datatype,
                               op, stream, [=](const void* input, Op its) {
                                 return calls::reduce_scatter({input, all, type},
                                                              {recvbuff, n, type}, its);
                               });
      },
      BATON_PASSED_ON(ncclReduceScatter, sendbuff, recvbuff, recvcount, datatype, op, comm,
                      stream));
}
BATON_SECOND_NAME(ncclReduceScatter);

ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return taken(
      comm,
      [&](const Held& member) {
        const Datatype type = nccl_abi::datatype_of(datatype);
        const std::int64_t n = count_of(count);
        check_root(root, member->size());
        if (n == 0) return ncclSuccess;
        const bool copies = member->rank() == root && sendbuff != recvbuff;
        if (copies) check_pointer(sendbuff, "a buffer to send");
        check_pointer(recvbuff, "a buffer to receive");
        const Call call = calls::broadcast(Data{recvbuff, n, type}, root);
        if (!copies) return enqueue(member, call, stream);
        void* const from = const_cast<void*>(sendbuff);
        return give_use(member, stream, [=](StreamCommunicator& ranks) {
          const Call as_sent = calls::broadcast(Data{from, n, type}, root);
          enqueue_behind(ranks, {as_sent, call}, of(stream), [&] {
            Rows rows;
            rows.at[0] = static_cast<std::byte*>(recvbuff);
            rows.at[1] = static_cast<std::byte*>(from);
            rows.block = n;
            ranks.device().copy(std::span(&rows, 1), size_of(type), of(stream));
            ranks.enqueue(call, of(stream));
          });
        });
      },
      BATON_PASSED_ON(ncclBroadcast, sendbuff, recvbuff, count, datatype, root, comm, stream));
}
BATON_SECOND_NAME(ncclBroadcast);

ncclResult_t ncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  return ncclBroadcast(buff, buff, count, datatype, root, comm, stream);
}
BATON_SECOND_NAME(ncclBcast);

ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  return taken(
      comm,
      [&](const Held& member) {
        const Datatype type = nccl_abi::datatype_of(datatype);
        const std::int64_t n = count_of(sendcount, member->size());
        if (n == 0) return ncclSuccess;
        return enqueue(
            member,
            calls::all_gather({sendbuff, n, type}, Data{recvbuff, n * member->size(), type}),
            stream);
      },
      BATON_PASSED_ON(ncclAllGather, sendbuff, recvbuff, sendcount, datatype, comm, stream));
}
BATON_SECOND_NAME(ncclAllGather);

ncclResult_t ncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                          ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  return taken(
      comm,
      [&](const Held& member) {
        const Datatype type = nccl_abi::datatype_of(datatype);
        const std::int64_t n = count_of(count, member->size()) * member->size();
        if (n == 0) return ncclSuccess;
        return enqueue(member, calls::all_to_all({sendbuff, n, type}, Data{recvbuff, n, type}),
                       stream);
      },
      BATON_PASSED_ON(ncclAlltoAll, sendbuff, recvbuff, count, datatype, comm, stream));
}
BATON_SECOND_NAME(ncclAlltoAll);

ncclResult_t ncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  return taken(
      comm,
      [&](const Held& member) {
        const Datatype type = nccl_abi::datatype_of(datatype);
        const std::int64_t n = count_of(count, member->size());
        check_root(root, member->size());
        if (n == 0) return ncclSuccess;
        return enqueue(
            member,
            calls::gather({sendbuff, n, type}, Data{recvbuff, n * member->size(), type}, root),
            stream);
      },
      BATON_PASSED_ON(ncclGather, sendbuff, recvbuff, count, datatype, root, comm, stream));
}
BATON_SECOND_NAME(ncclGather);

ncclResult_t ncclScatter(const void* sendbuff, void* recvbuff, size_t count,
                         ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream) {
  return taken(
      comm,
      [&](const Held& member) {
        const Datatype type = nccl_abi::datatype_of(datatype);
        const std::int64_t n = count_of(count, member->size());
        check_root(root, member->size());
        if (n == 0) return ncclSuccess;
        return enqueue(
            member,
            calls::scatter({sendbuff, n * member->size(), type}, Data{recvbuff, n, type}, root),
            stream);
      },
      BATON_PASSED_ON(ncclScatter, sendbuff, recvbuff, count, datatype, root, comm, stream));
}
BATON_SECOND_NAME(ncclScatter);

ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return taken(
      comm,
      [&](const Held& member) {
        return message(member, true, sendbuff, count, datatype, peer, stream);
      },
      BATON_PASSED_ON(ncclSend, sendbuff, count, datatype, peer, comm, stream));
}
BATON_SECOND_NAME(ncclSend);

ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return taken(
      comm,
      [&](const Held& member) {
        return message(member, false, recvbuff, count, datatype, peer, stream);
      },
      BATON_PASSED_ON(ncclRecv, recvbuff, count, datatype, peer, comm, stream));
}
BATON_SECOND_NAME(ncclRecv);

}  // extern "C"
