#include <algorithm>
#include <array>
#include <utility>

#include "baton/error.hpp"
#include "baton/memory.hpp"
#include "world.hpp"

namespace nccl_stand_in {
namespace {

using namespace baton;

OpKind kind_of(ncclRedOp_t op) {
  constexpr OpKind kinds[] = {OpKind::sum, OpKind::prod, OpKind::max, OpKind::min, OpKind::avg};
  return kinds[op];
}

/// Of all ranks' numbers.
Bytes reduced(Datatype type, std::size_t count, int size, ncclRedOp_t op) {
  Bytes all = numbers(type, count, 0);
  const OpKind kind = kind_of(op);
  const auto fold = host::reference_fold(kind == OpKind::avg ? OpKind::sum : kind, type);
  for (int rank = 1; rank < size; ++rank) {
    const Bytes other = numbers(type, count, rank);
    fold(all.data(), all.data(), other.data(), count);
  }
  if (kind == OpKind::avg) host::reference_divide(type)(all.data(), count, size);
  return all;
}

Bytes joined(Datatype type, std::size_t count, int size) {
  Bytes all;
  for (int rank = 0; rank < size; ++rank) {
    const Bytes one = numbers(type, count, rank);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

Bytes block(const Bytes& all, std::size_t bytes, int index) {
  const std::byte* const begin = all.data() + bytes * static_cast<std::size_t>(index);
  return {begin, begin + bytes};
}

/// Buffers of one call on one rank. In place, one lies in the other.
struct Buffers {
  std::byte *send, *recv;
};

/// Runs one collective on all ranks, out of place and in place, and compares the outputs.
struct Trial {
  World& world;
  Datatype type;
  std::size_t count;

  /// `input` and `expected` are of a rank; empty: nothing is expected. `at`: where the smaller
  /// buffer lies in the larger one in place, in bytes.
  template <class Input, class Expected, class At, class Call>
  void run(const Input& input, const Expected& expected, const At& at, const Call& call) {
    for (const bool in_place : {false, true}) {
      CAPTURE(in_place);
      std::vector<std::pair<Buffers, std::byte*>> all;  // with the memory
      for (const Rank& one : world.own()) {
        const Bytes in = input(one.rank), out = expected(one.rank);
        const std::size_t room = std::max(in.size(), out.size());
        if (!in_place) {
          std::byte* const memory = one.put(Bytes(in.size() + out.size() + 512, std::byte{0x5a}));
          std::byte* const recv = memory + (in.size() + 255) / 256 * 256;
          std::ranges::copy(in, one.on().host_view(memory));
          all.push_back({{memory, recv}, memory});
        } else {
          std::byte* const memory = one.put(Bytes(room + 1, std::byte{0x5a}));
          const std::size_t inside = at(one.rank);
          std::byte* const send = memory + (in.size() < out.size() ? inside : 0);
          std::byte* const recv = memory + (out.size() < in.size() ? inside : 0);
          std::ranges::copy(in, one.on().host_view(send));
          all.push_back({{send, recv}, memory});
        }
      }
      std::size_t i = 0;
      world.together([&](const Rank& one) { return call(one, all[i++].first); });
      world.synchronize();
      i = 0;
      for (const Rank& one : world.own()) {
        CAPTURE(one.rank);
        const Bytes out = expected(one.rank);
        CHECK(one.got(all[i].first.recv, out.size()) == out);
        one.free(all[i++].second);
      }
    }
  }
};

void reductions(World& world, ncclDataType_t datatype, ncclRedOp_t op, std::size_t count) {
  const Datatype type = datatype_of(datatype);
  const int size = world.size();
  const auto n = static_cast<std::size_t>(size);
  CAPTURE(std::string(name(type)));
  CAPTURE(op);
  CAPTURE(count);
  Trial trial{world, type, count};
  const std::size_t bytes = count * size_of(type);
  const auto own = [&](int rank) { return numbers(type, count, rank); };
  const auto nowhere = [](int) { return std::size_t{0}; };
  trial.run(
      own, [&](int) { return reduced(type, count, size, op); }, nowhere,
      [&](const Rank& one, const Buffers& at) {
        return ncclAllReduce(at.send, at.recv, count, datatype, op, one.comm, one.stream);
      });
  trial.run([&](int rank) { return numbers(type, count * n, rank); },
            [&](int rank) { return block(reduced(type, count * n, size, op), bytes, rank); },
            [&](int rank) { return bytes * static_cast<std::size_t>(rank); },
            [&](const Rank& one, const Buffers& at) {
              return ncclReduceScatter(at.send, at.recv, count, datatype, op, one.comm, one.stream);
            });
  const int root = size - 1;
  trial.run(
      own, [&](int rank) { return rank == root ? reduced(type, count, size, op) : Bytes(); },
      nowhere,
      [&](const Rank& one, const Buffers& at) {
        return ncclReduce(at.send, one.rank == root ? at.recv : nullptr, count, datatype, op, root,
                          one.comm, one.stream);
      });
}

void movements(World& world, ncclDataType_t datatype, std::size_t count, int root) {
  const Datatype type = datatype_of(datatype);
  const int size = world.size();
  const auto n = static_cast<std::size_t>(size);
  CAPTURE(std::string(name(type)));
  CAPTURE(count);
  CAPTURE(root);
  Trial trial{world, type, count};
  const std::size_t bytes = count * size_of(type);
  const auto own = [&](int rank) { return numbers(type, count, rank); };
  const auto own_block = [&](int rank) { return bytes * static_cast<std::size_t>(rank); };
  const auto nowhere = [](int) { return std::size_t{0}; };
  const Bytes all = joined(type, count, size);
  for (const bool old_name : {false, true})
    trial.run(
        own, [&](int) { return numbers(type, count, root); }, nowhere,
        [&](const Rank& one, const Buffers& at) {
          if (old_name && at.send == at.recv)
            return ncclBcast(at.recv, count, datatype, root, one.comm, one.stream);
          return ncclBroadcast(at.send, at.recv, count, datatype, root, one.comm, one.stream);
        });
  trial.run(
      own, [&](int) { return all; }, own_block,
      [&](const Rank& one, const Buffers& at) {
        return ncclAllGather(at.send, at.recv, count, datatype, one.comm, one.stream);
      });
  trial.run([&](int rank) { return numbers(type, count * n, rank); },
            [&](int rank) {
              Bytes parts;
              for (int from = 0; from < size; ++from) {
                const Bytes part = block(numbers(type, count * n, from), bytes, rank);
                parts.insert(parts.end(), part.begin(), part.end());
              }
              return parts;
            },
            nowhere,
            [&](const Rank& one, const Buffers& at) {
              return ncclAlltoAll(at.send, at.recv, count, datatype, one.comm, one.stream);
            });
  trial.run(
      own, [&](int rank) { return rank == root ? all : Bytes(); }, own_block,
      [&](const Rank& one, const Buffers& at) {
        return ncclGather(at.send, one.rank == root ? at.recv : nullptr, count, datatype, root,
                          one.comm, one.stream);
      });
  trial.run([&](int rank) { return rank == root ? all : Bytes(); }, own, own_block,
            [&](const Rank& one, const Buffers& at) {
              return ncclScatter(one.rank == root ? at.send : nullptr, at.recv, count, datatype,
                                 root, one.comm, one.stream);
            });
}

}  // namespace

void every_collective(const Layout& layout) {
  World world(layout);
  const auto size = static_cast<std::size_t>(world.size());
  for (const std::size_t count :
       {std::size_t{1}, size, size + 1, std::size_t{7}, std::size_t{1009}, std::size_t{40000}}) {
    reductions(world, ncclFloat32, ncclSum, count);
    for (const int root : {0, world.size() - 1}) movements(world, ncclInt32, count, root);
  }
  // Calls of nothing need no buffers.
  world.together([](const Rank& one) {
    return ncclAllReduce(nullptr, nullptr, 0, ncclFloat, ncclSum, one.comm, one.stream);
  });
  world.together([](const Rank& one) {
    return ncclAllGather(nullptr, nullptr, 0, ncclFloat, one.comm, one.stream);
  });
  world.together([](const Rank& one) {
    return ncclSend(nullptr, 0, ncclFloat, one.rank, one.comm, one.stream);
  });
}

void every_datatype_and_op(const Layout& layout) {
  World world(layout);
  for (int type = 0; type < ncclNumTypes; ++type) {
    for (int op = 0; op < ncclNumOps; ++op)
      reductions(world, static_cast<ncclDataType_t>(type), static_cast<ncclRedOp_t>(op), 13);
    movements(world, static_cast<ncclDataType_t>(type), 5, 0);
  }
}

void refused_first(const Layout& layout) {
  World world(layout);
  constexpr std::size_t count = 6;
  const std::size_t all = count * static_cast<std::size_t>(world.size());
  const Bytes zero(all * 4);
  struct Own {
    std::byte *data, *out;
    ncclRedOp_t op;
    std::size_t allocated;
  };
  std::vector<Own> own;
  Bytes host = numbers(Datatype::f32, all, 7);
  const Bytes host_before = host;
  for (const Rank& one : world.own()) {
    own.push_back({one.put(numbers(Datatype::f32, all, one.rank)), one.put(zero), {}, 0});
    float factor = 3;
    ok(ncclRedOpCreatePreMulSum(&own.back().op, &factor, ncclFloat, ncclScalarHostImmediate,
                                one.comm));
  }
  for (Own& its : own) {
    const auto i = static_cast<std::size_t>(&its - own.data());
    its.allocated = world.own()[i].on().allocated();
  }
  // Of every rank, since ranks of one process wait for each other.
  const auto refused = [&](const std::vector<std::string>& parts, const auto& call) {
    for (int round = 0; round < 3; ++round) {
      ok(ncclGroupStart());
      for (std::size_t i = 0; i < own.size(); ++i) ok(call(world.own()[i], own[i]));
      failed(ncclGroupEnd(), ncclInvalidArgument, parts);
    }
    world.synchronize();
    for (std::size_t i = 0; i < own.size(); ++i) {
      const Rank& one = world.own()[i];
      CHECK(one.got(own[i].data, all * 4) == numbers(Datatype::f32, all, one.rank));
      CHECK(one.got(own[i].out, all * 4) == zero);
      // Communicators of earlier cases may still give memory back.
      CHECK(one.on().allocated() <= own[i].allocated);
    }
    CHECK(host == host_before);
  };
  refused({"input in the memory of", "the host's"}, [&](const Rank& one, const Own& its) {
    return ncclAllReduce(host.data(), its.out, count, ncclFloat, its.op, one.comm, one.stream);
  });
  refused({"stream", "default"}, [&](const Rank& one, const Own& its) {
    return ncclAllReduce(its.data, its.out, count, ncclFloat, its.op, one.comm, nullptr);
  });
  refused({"output in the memory of", "the host's"}, [&](const Rank& one, const Own& its) {
    return ncclReduceScatter(its.data, host.data(), count, ncclFloat, its.op, one.comm, one.stream);
  });
  refused({"aligned", "2 bytes off"}, [&](const Rank& one, const Own& its) {
    return ncclReduce(its.data + 2, its.out, count - 1, ncclFloat, its.op, 0, one.comm, one.stream);
  });
  refused({"in the memory of", "the host's"}, [&](const Rank& one, const Own& its) {
    return ncclBroadcast(its.data, host.data(), count, ncclFloat, 0, one.comm, one.stream);
  });
  if (world.size() == 1)  // else others wait for the root
    refused({"in the memory of", "the host's"}, [&](const Rank& one, const Own& its) {
      return ncclBroadcast(host.data(), its.out, count, ncclFloat, 0, one.comm, one.stream);
    });
  refused({"stream", "default"}, [&](const Rank& one, const Own& its) {
    return ncclBroadcast(its.data, its.out, count, ncclFloat, 0, one.comm, nullptr);
  });
  world.meet();  // nothing of this broke anything
  // Products do not fit into the devices' memory.
  const std::size_t much = (std::size_t{3} << 20) / static_cast<std::size_t>(world.size());
  std::vector<std::byte*> in, out;
  std::vector<std::pair<const Rank*, std::byte*>> filling;
  for (const Rank& one : world.own()) {
    in.push_back(one.on().allocate(much * 4 * static_cast<std::size_t>(world.size())));
    out.push_back(one.on().allocate(much * 4));
  }
  for (const Rank& one : world.own()) try {
      for (;;) filling.emplace_back(&one, one.on().allocate(std::size_t{8} << 20));
    } catch (const Error&) {  // full
    }
  const auto too_much = [&](ncclResult_t code, const std::vector<std::string>& parts) {
    ok(ncclGroupStart());
    for (std::size_t i = 0; i < own.size(); ++i)
      ok(ncclReduceScatter(in[i], out[i], much, ncclFloat, own[i].op, world.own()[i].comm,
                           world.own()[i].stream));
    failed(ncclGroupEnd(), code, parts);
  };
  too_much(ncclUnhandledCudaError, {"memory", "too little"});
  too_much(ncclRemoteError, {"usable communicator", "too little"});
  for (const auto& [one, memory] : filling) one->free(memory);
  for (std::size_t i = 0; i < own.size(); ++i)
    for (std::byte* const memory : {in[i], out[i], own[i].data, own[i].out})
      world.own()[i].free(memory);
}

}  // namespace nccl_stand_in
