#include <doctest/doctest.h>

#include "baton/verify.hpp"
#include "communicator/arguments.hpp"
#include "support/ops.hpp"
#include "support/values.hpp"

using namespace baton;
using namespace baton::execute;
using namespace support;

namespace {

std::vector<double> a(100), b(100);

Data in(std::int64_t count, Datatype type = Datatype::f32) { return {a.data(), count, type}; }
Data out(std::int64_t count, Datatype type = Datatype::f32) { return {b.data(), count, type}; }

PlanKey key_of(const Call& call, int rank = 1, int size = 3) {
  communicator::Arguments arguments;
  arguments.bind(call, rank, size);
  PlanKey key;
  arguments.append_to(key);
  return key;
}

Call with_counts(Call call, const Counts& send, const Counts& recv, const Counts& offsets = {}) {
  call.send_counts = send;
  call.recv_counts = recv;
  call.recv_offsets = offsets;
  return call;
}

}  // namespace

TEST_CASE("calls that need different plans have different keys") {
  const Counts even{2, 2, 2}, other{1, 2, 3}, gaps{0, 10, 20};
  const Data two[] = {in(4), out(2)}, two_others[] = {in(3), out(3)};
  Call list, other_list;
  list.collective = other_list.collective = Collective::all_reduce;
  list.outputs = two;
  other_list.outputs = two_others;
  const Tensor cube(b.data(), Datatype::f32, Shape{3, 3, 6});
  const ConstTensor block(a.data(), Datatype::f32, Shape{3, 3, 2});
  const std::vector<Call> calls{
      calls::all_reduce(in(6), out(6), sum),
      calls::all_reduce(in(7), out(7), sum),
      calls::all_reduce(in(6), in(6), sum),
      calls::all_reduce(in(6), out(6), avg),
      calls::all_reduce(in(6, Datatype::f64), out(6, Datatype::f64), sum),
      calls::all_reduce(in(6, Datatype::u64), out(6, Datatype::u64), affine_maps),
      list,
      other_list,
      calls::scan(in(6), out(6), sum),
      calls::reduce(in(6), out(6), sum, 1),
      calls::reduce(in(6), out(6), sum, 2),
      calls::broadcast(out(6), 0),
      calls::all_gather(in(2), out(6)),
      calls::all_gather(in(6), out(18)),
      with_counts(calls::all_gather(in(2), out(6)), {}, even),
      with_counts(calls::all_gather(in(2), out(6)), {}, other),
      with_counts(calls::all_gather(in(2), out(50)), {}, even, gaps),
      calls::all_gather(block, cube, 2),
      calls::all_gather(block, Tensor(b.data(), Datatype::f32, Shape{3, 9, 2}), 1),
      calls::all_to_all(in(18), out(18)),
      calls::all_to_all(ConstTensor(a.data(), Datatype::f32, Shape{3, 3, 2}),
                        Tensor(b.data(), Datatype::f32, Shape{3, 1, 6}), 1, 2),
      calls::all_to_all(ConstTensor(a.data(), Datatype::f32, Shape{3, 3, 2}),
                        Tensor(b.data(), Datatype::f32, Shape{9, 1, 2}), 1, 0),
      with_counts(calls::all_to_all(in(6), out(6)), even, even),
      with_counts(calls::all_to_all(in(6), out(6)), other, other),
      calls::barrier(),
  };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    CHECK(key_of(calls[i]) == key_of(calls[i]));
    for (std::size_t j = 0; j < i; ++j) {
      CAPTURE(i);
      CAPTURE(j);
      CHECK(!(key_of(calls[i]) == key_of(calls[j])));
    }
  }
}

TEST_CASE("calls that can share a plan share it") {
  const PlanKey base = key_of(calls::all_reduce(in(6), out(6), sum));
  CHECK(key_of(calls::all_reduce(in(6), out(6), max)) == base);   // one class of operation
  CHECK(key_of(calls::all_reduce(out(6), in(6), prod)) == base);  // addresses are not part of it
  CHECK(key_of(calls::all_reduce(in(6, Datatype::u64), out(6, Datatype::u64), modular_product)) ==
        key_of(calls::all_reduce(in(6, Datatype::u64), out(6, Datatype::u64), sum)));
  CHECK(key_of(calls::all_reduce(in(6, Datatype::u64), out(6, Datatype::u64), matrices)) ==
        key_of(calls::all_reduce(in(6, Datatype::u64), out(6, Datatype::u64), affine_maps)));
}

TEST_CASE("the problem of an uneven call is one that algorithms and verifier understand") {
  const int size = 3;
  const Counts counts{3, 0, 4};
  const Registry registry = Registry::builtin();
  for (const Collective collective : {Collective::gather, Collective::scatter,
                                      Collective::all_gather, Collective::reduce_scatter}) {
    std::vector<Problem> problems;
    for (int rank = 0; rank < size; ++rank) {
      const std::int64_t own = counts[static_cast<std::size_t>(rank)];
      Call call;
      call.collective = collective;
      const bool sends =
          collective == Collective::scatter || collective == Collective::reduce_scatter;
      (sends ? call.send_counts : call.recv_counts) = counts;
      call.input = in(sends ? 7 : own);
      call.output = out(sends ? own : 7);
      communicator::Arguments arguments;
      arguments.bind(call, rank, size);
      problems.push_back(arguments.problem(rank, size));
      CHECK(problems.back().input_blocks == problems.back().output_blocks);
      CHECK(problems.back().count == own);
    }
    for (const Algorithm* algorithm : registry.of(collective)) {
      if (!refusal(*algorithm, problems[0]).empty()) continue;
      const Proof proof = verify(*algorithm, problems);
      CHECK_MESSAGE(proof.holds(), algorithm->name, ": ",
                    (proof.holds() ? std::string() : proof.findings[0].sentence));
    }
  }
}
