#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "baton/memory.hpp"
#include "world.hpp"

namespace nccl_stand_in {

using namespace baton;
using namespace std::chrono_literals;

namespace {

Bytes ints(std::size_t count, int rank) { return numbers(Datatype::i32, count, rank); }

/// An all-to-all of messages, to oneself, too; each rank's messages to rank p have `count` + p.
void exchange(World& world, std::size_t count, bool receive_first) {
  const auto size = static_cast<std::size_t>(world.size());
  const std::size_t room = (count + size) * 4;
  std::vector<std::byte*> sent, received;
  for (const Rank& one : world.own()) {
    sent.push_back(one.put(ints(count + size, one.rank)));
    received.push_back(one.put(Bytes(room * size)));
  }
  std::size_t i = 0;
  world.together([&](const Rank& one) {
    for (int peer = 0; peer < world.size(); ++peer) {
      const auto send = [&] {
        ok(ncclSend(sent[i], count + static_cast<std::size_t>(peer), ncclInt32, peer, one.comm,
                    one.stream));
      };
      if (!receive_first) send();
      ok(ncclRecv(received[i] + room * static_cast<std::size_t>(peer),
                  count + static_cast<std::size_t>(one.rank), ncclInt32, peer, one.comm,
                  one.stream));
      if (receive_first) send();
    }
    ++i;
    return ncclSuccess;
  });
  world.synchronize();
  for (i = 0; i < sent.size(); ++i) {
    const Rank& one = world.own()[i];
    const std::size_t n = count + static_cast<std::size_t>(one.rank);
    for (int peer = 0; peer < world.size(); ++peer)
      CHECK(one.got(received[i] + room * static_cast<std::size_t>(peer), n * 4) == ints(n, peer));
    one.free(sent[i]);
    one.free(received[i]);
  }
}

}  // namespace

void messages(const Layout& layout) {
  World world(layout);
  for (const std::size_t count : {1, 17, 50000})
    for (const bool receive_first : {false, true}) exchange(world, count, receive_first);
  // A ring beside a collective, in one group, several times before anybody waits.
  const int size = world.size();
  constexpr std::size_t count = 100;
  std::vector<std::byte*> own, sums, from;
  for (const Rank& one : world.own()) {
    own.push_back(one.put(ints(count, one.rank)));
    sums.push_back(one.put(Bytes(count * 4)));
    from.push_back(one.put(Bytes(count * 4)));
  }
  for (int round = 0; round < 5; ++round) {
    std::size_t i = 0;
    world.together([&](const Rank& one) {
      ok(ncclSend(own[i], count, ncclInt32, (one.rank + 1) % size, one.comm, one.stream));
      ok(ncclAllReduce(own[i], sums[i], count, ncclInt32, ncclMax, one.comm, one.stream));
      ok(ncclRecv(from[i], count, ncclInt32, (one.rank + size - 1) % size, one.comm, one.stream));
      ++i;
      return ncclSuccess;
    });
  }
  world.synchronize();
  for (std::size_t i = 0; i < own.size(); ++i) {
    const Rank& one = world.own()[i];
    CHECK(one.got(from[i], count * 4) == ints(count, (one.rank + size - 1) % size));
    Bytes most = ints(count, 0);
    for (int rank = 1; rank < size; ++rank)
      host::reference_fold(OpKind::max, Datatype::i32)(most.data(), most.data(),
                                                       ints(count, rank).data(), count);
    CHECK(one.got(sums[i], count * 4) == most);
  }
}

void lone_messages(const Layout& layout) {
  // From the first rank to the last one.
  World world(layout);
  const int size = world.size();
  if (size == 1) return;
  constexpr std::size_t count = 100;
  std::vector<std::thread> threads;
  for (const Rank& one : world.own())
    threads.emplace_back([&] {
      std::byte* const data = one.put(ints(count, one.rank));
      if (one.rank == 0) ok(ncclSend(data, count, ncclInt32, size - 1, one.comm, one.stream));
      if (one.rank == size - 1) ok(ncclRecv(data, count, ncclInt32, 0, one.comm, one.stream));
      one.synchronize();
      if (one.rank == size - 1) CHECK(one.got(data, count * 4) == ints(count, 0));
    });
  for (std::thread& thread : threads) thread.join();
  world.meet();
}

void several_streams(const Layout& layout) {
  World world(layout);
  const int size = world.size();
  constexpr std::size_t count = 100, bytes = count * sizeof(std::int32_t);
  const Bytes data = ints(count, 1), last(bytes, std::byte{7});
  struct More {
    cudaStream_t stream;  // a second one
    std::byte *x, *y, *z;
  };
  std::vector<More> more;
  for (const Rank& one : world.own())
    more.push_back(
        {make_stream(one.device), one.put(data), one.put(Bytes(bytes)), one.put(Bytes(bytes))});
  const auto write = [&](const Rank& one, cudaStream_t stream, std::byte* to, const Bytes& what,
                         std::chrono::milliseconds after) {
    one.on().run(stream, [=, view = one.on().host_view(to)] {
      std::this_thread::sleep_for(after);
      std::memcpy(view, what.data(), what.size());
    });
  };
  const auto check = [&](std::byte* More::*at, const Bytes& expected) {
    for (std::size_t i = 0; i < more.size(); ++i) {
      const Rank& one = world.own()[i];
      one.synchronize();
      one.on().synchronize(more[i].stream);
      CHECK(one.got(more[i].*at, bytes) == expected);
    }
  };
  // Earlier work of one stream comes before the calls of the other.
  for (std::size_t i = 0; i < more.size(); ++i)
    write(world.own()[i], world.own()[i].stream, more[i].y, data, 50ms);
  std::size_t next = 0;
  world.together([&](const Rank& one) {
    const More& its = more[next++];
    ok(ncclAllReduce(its.y, its.z, count, ncclInt32, ncclMax, one.comm, its.stream));
    return ncclAllReduce(its.x, its.x, count, ncclInt32, ncclMax, one.comm, one.stream);
  });
  check(&More::z, data);
  check(&More::x, data);
  // Later work of one stream comes after the calls of the other.
  for (std::size_t i = 0; i < more.size(); ++i)
    write(world.own()[i], more[i].stream, more[i].z, Bytes(bytes), 50ms);
  next = 0;
  world.together([&](const Rank& one) {
    const More& its = more[next++];
    ok(ncclRecv(its.z, count, ncclInt32, (one.rank + size - 1) % size, one.comm, its.stream));
    return ncclSend(its.y, count, ncclInt32, (one.rank + 1) % size, one.comm, one.stream);
  });
  for (std::size_t i = 0; i < more.size(); ++i)
    write(world.own()[i], world.own()[i].stream, more[i].z, last, 0ms);
  check(&More::z, last);
  check(&More::y, data);
}

void to_oneself(const Layout& layout) {
  World world(layout);
  for (const Rank& one : world.own()) {
    std::byte* const data = one.put(ints(20, one.rank));
    const auto send = [&] { return ncclSend(data, 5, ncclInt32, one.rank, one.comm, one.stream); };
    const auto receive = [&] {
      return ncclRecv(data + 40, 5, ncclInt32, one.rank, one.comm, one.stream);
    };
    failed(send(), ncclInvalidUsage, {"itself", "found 0 receives and 1 sends"});
    failed(receive(), ncclInvalidUsage, {"itself", "found 1 receives and 0 sends"});
    ok(ncclGroupStart());
    for (const auto result : {send(), receive(), send()}) ok(result);
    failed(ncclGroupEnd(), ncclInvalidUsage, {"found 1 receives and 2 sends"});
    one.synchronize();
    CHECK(one.got(data, 80) == ints(20, one.rank));
  }
  exchange(world, 10, false);
}

void scaled_sums(const Layout& layout) {
  World world(layout);
  const int size = world.size();
  const auto n = static_cast<std::size_t>(size);
  for (const ncclDataType_t datatype : {ncclFloat32, ncclFloat16, ncclInt32, ncclFloat64})
    for (const std::size_t count : {1, 255, 256, 700})
      for (const bool on_device : {false, true}) {
        const Datatype type = datatype_of(datatype);
        CAPTURE(std::string(name(type)));
        CAPTURE(count);
        CAPTURE(on_device);
        const std::size_t bytes = count * size_of(type);
        // Rank r multiplies by what numbers() gives as element r of rank 1.
        const Bytes factors = numbers(type, n + 1, 1);
        const auto times = [&](int rank, std::size_t elements) {
          Bytes in = numbers(type, elements, rank);
          for (std::size_t i = 0; i < elements; ++i) {
            std::byte* const at = in.data() + i * size_of(type);
            host::reference_fold(OpKind::prod, type)(
                at, at, factors.data() + static_cast<std::size_t>(rank) * size_of(type), 1);
          }
          return in;
        };
        const auto sum_of = [&](std::size_t elements) {
          Bytes all = times(0, elements);
          for (int rank = 1; rank < size; ++rank)
            host::reference_fold(OpKind::sum, type)(all.data(), all.data(),
                                                    times(rank, elements).data(), elements);
          return all;
        };
        std::vector<std::byte*> in, all, out, part, scalars;
        std::vector<ncclRedOp_t> ops;
        for (const Rank& one : world.own()) {
          in.push_back(one.put(numbers(type, count * n, one.rank)));
          all.push_back(one.put(numbers(type, count, one.rank)));
          out.push_back(one.put(Bytes(bytes)));
          part.push_back(one.put(Bytes(bytes)));
          Bytes scalar(factors.begin() + static_cast<std::ptrdiff_t>(
                                             static_cast<std::size_t>(one.rank) * size_of(type)),
                       factors.end());
          scalars.push_back(one.put(scalar));
          ops.emplace_back();
          ok(ncclRedOpCreatePreMulSum(
              &ops.back(), on_device ? scalars.back() : scalar.data(), datatype,
              on_device ? ncclScalarDevice : ncclScalarHostImmediate, one.comm));
          CHECK(ops.back() >= ncclNumOps);
        }
        std::size_t i = 0;
        world.together([&](const Rank& one) {
          ok(ncclReduceScatter(in[i], part[i], count, datatype, ops[i], one.comm, one.stream));
          ok(ncclReduce(all[i], out[i], count, datatype, ops[i], 0, one.comm, one.stream));
          ok(ncclAllReduce(all[i], all[i], count, datatype, ops[i], one.comm, one.stream));
          return ncclRedOpDestroy(ops[i++], one.comm);
        });
        world.synchronize();
        const Bytes whole = sum_of(count * n);
        for (i = 0; i < in.size(); ++i) {
          const Rank& one = world.own()[i];
          const auto first =
              static_cast<std::ptrdiff_t>(bytes * static_cast<std::size_t>(one.rank));
          CHECK(one.got(part[i], bytes) ==
                Bytes(whole.begin() + first,
                      whole.begin() + first + static_cast<std::ptrdiff_t>(bytes)));
          CHECK(one.got(all[i], bytes) == sum_of(count));
          if (one.rank == 0) CHECK(one.got(out[i], bytes) == sum_of(count));
          for (std::byte* const memory : {in[i], all[i], out[i], part[i], scalars[i]})
            one.free(memory);
          failed(ncclAllReduce(all[i], all[i], count, datatype, ops[i], one.comm, one.stream),
                 ncclInvalidArgument, {"ncclRedOpCreatePreMulSum"});
        }
      }
}

void scalings_come_and_go(const Layout& layout) {
  World world(layout);
  const auto made = [](const Rank& one, float factor) {
    ncclRedOp_t op{};
    ok(ncclRedOpCreatePreMulSum(&op, &factor, ncclFloat, ncclScalarHostImmediate, one.comm));
    return op;
  };
  // Another communicator's thread may take or give back a block meanwhile, but not hundreds.
  constexpr std::size_t number = 1000, some = 100;
  world.each([&](const Rank& one) {
    const std::size_t before = one.on().host_blocks();
    for (std::size_t i = 0; i < number; ++i)
      ok(ncclRedOpDestroy(made(one, static_cast<float>(i)), one.comm));
    CHECK(one.on().host_blocks() < before + some);
  });
  // Each has its own factor, also while those before it are under way.
  constexpr std::size_t calls = 20, count = 300;
  const auto filled = [](float value) {
    const std::vector<float> all(count, value);
    const auto* const first = reinterpret_cast<const std::byte*>(all.data());
    return Bytes(first, first + count * sizeof(float));
  };
  std::vector<std::byte*> data;
  world.each([&](const Rank& one) {
    for (std::size_t i = 0; i < calls; ++i) data.push_back(one.put(filled(1)));
  });
  for (std::size_t i = 0; i < calls; ++i) {
    std::size_t rank = 0;
    world.together([&](const Rank& one) {
      std::byte* const its = data[rank++ * calls + i];
      const ncclRedOp_t op = made(one, static_cast<float>(i + 1));
      const ncclResult_t code = ncclAllReduce(its, its, count, ncclFloat, op, one.comm, one.stream);
      ok(ncclRedOpDestroy(op, one.comm));
      return code;
    });
  }
  world.synchronize();
  std::size_t next = 0;
  world.each([&](const Rank& one) {
    for (std::size_t i = 0; i < calls; ++i) {
      CHECK(one.got(data[next], count * sizeof(float)) ==
            filled(static_cast<float>(i + 1) * static_cast<float>(world.size())));
      one.free(data[next++]);
    }
  });
}

void parts(const Layout& layout) {
  World world(layout);
  const int size = world.size();
  // Even and odd ranks, in reverse order; the last rank is in neither.
  const auto color = [&](int rank) {
    return rank == size - 1 && size > 1 ? NCCL_SPLIT_NOCOLOR : rank % 2;
  };
  std::vector<ncclComm_t> made(world.own().size());
  std::size_t i = 0;
  world.together([&](const Rank& one) {
    return ncclCommSplit(one.comm, color(one.rank), -one.rank, &made[i++], nullptr);
  });
  std::vector<Rank> inside;
  int others = 0;
  for (i = 0; i < made.size(); ++i) {
    Rank one = world.own()[i];
    CHECK((made[i] == nullptr) == (color(one.rank) < 0));
    if (made[i] == nullptr) continue;
    int members = 0, higher = 0;
    for (int rank = 0; rank < size; ++rank) {
      if (color(rank) != color(one.rank)) continue;
      ++members;
      higher += rank > one.rank ? 1 : 0;
    }
    int found = -1, device = -1;
    ok(ncclCommCount(made[i], &others));
    ok(ncclCommUserRank(made[i], &found));
    ok(ncclCommCuDevice(made[i], &device));
    CHECK(others == members);
    CHECK(found == higher);
    CHECK(device == one.device);
    one.comm = made[i];
    inside.push_back(one);
  }
  {
    World half(size, inside);
    std::vector<std::byte*> data;
    for (const Rank& one : half.own()) data.push_back(one.put(ints(9, one.rank)));
    i = 0;
    half.together([&](const Rank& one) {
      std::byte* const its = data[i++];
      return ncclBroadcast(its, its, 9, ncclInt32, 0, one.comm, one.stream);
    });
    half.synchronize();
    for (i = 0; i < data.size(); ++i) {
      const Rank& one = half.own()[i];
      int root = one.rank;  // the highest rank of its color
      for (int rank = one.rank; rank < size; ++rank)
        if (color(rank) == color(one.rank)) root = rank;
      CHECK(one.got(data[i], 36) == ints(9, root));
    }
  }
  world.meet();
  if (size < 3) return;
  // All but rank 1, which does not take part.
  int excluded[] = {1};
  std::vector<ncclComm_t> shrunk(world.own().size());
  ok(ncclGroupStart());
  for (i = 0; i < shrunk.size(); ++i)
    if (world.own()[i].rank != 1)
      ok(ncclCommShrink(world.own()[i].comm, excluded, 1, &shrunk[i], nullptr,
                        NCCL_SHRINK_DEFAULT));
  ok(ncclGroupEnd());
  std::vector<Rank> rest;
  for (i = 0; i < shrunk.size(); ++i) {
    Rank one = world.own()[i];
    if (one.rank == 1) continue;
    int found = -1;
    ok(ncclCommUserRank(shrunk[i], &found));
    CHECK(found == (one.rank == 0 ? 0 : one.rank - 1));
    one.comm = shrunk[i];
    rest.push_back(one);
  }
  World fewer(size - 1, rest);
  fewer.meet();
}

void groups(const Layout& layout) {
  World first(layout), second(layout);
  // Groups nest, and hold calls of several communicators.
  std::vector<std::byte*> a, b;
  for (const Rank& one : first.own()) {
    a.push_back(one.put(ints(20, one.rank)));
    b.push_back(one.put(ints(20, one.rank)));
  }
  const auto broadcast = [](const Rank& one, std::byte* data, int root) {
    return ncclBroadcast(data, data, 20, ncclInt32, root, one.comm, one.stream);
  };
  ok(ncclGroupStart());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ok(ncclGroupStart());
    ok(broadcast(first.own()[i], a[i], 0));
    ok(ncclGroupEnd());
    ok(broadcast(second.own()[i], b[i], second.size() - 1));
  }
  for (std::size_t i = 0; i < a.size(); ++i)  // nothing has begun
    CHECK(first.own()[i].got(a[i], 80) == ints(20, first.own()[i].rank));
  ok(ncclGroupEnd());
  first.synchronize();
  second.synchronize();
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(first.own()[i].got(a[i], 80) == ints(20, 0));
    CHECK(second.own()[i].got(b[i], 80) == ints(20, second.size() - 1));
  }
  // A wrong call spoils its group, on every rank before anything is sent.
  ok(ncclGroupStart());
  for (std::size_t i = 0; i < a.size(); ++i) ok(broadcast(first.own()[i], b[i], 0));
  failed(broadcast(first.own()[0], a[0], -1), ncclInvalidArgument, {"root from 0", "-1"});
  CHECK(ncclGroupEnd() == ncclInvalidArgument);
  first.meet();
  for (std::size_t i = 0; i < a.size(); ++i)
    CHECK(first.own()[i].got(b[i], 80) == ints(20, second.size() - 1));
  // A simulated group does nothing.
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  ok(ncclGroupStart());
  for (std::size_t i = 0; i < a.size(); ++i) ok(broadcast(first.own()[i], b[i], 0));
  ok(ncclGroupSimulateEnd(&info));
  first.meet();
  CHECK(first.own()[0].got(b[0], 80) == ints(20, second.size() - 1));
  failed(ncclGroupEnd(), ncclInvalidUsage, {"open group"});
}

}  // namespace nccl_stand_in
