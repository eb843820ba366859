#pragma once
/// Programs, which compute and send, for the tests of all readers of schedules.

#include <string>
#include <vector>

#include "baton/schedule.hpp"
#include "baton/schedule/text.hpp"

namespace support {

/// Two stages on two ranks, two micro-batches: all forward, then all backward.
constexpr const char* two_stages = R"(baton-schedule 1
collective program
algorithm gpipe
size 2
input 0
output 0
rank 0
compute 1000 forward 0F0 writes scratch[0:4]
send 1 scratch[0:4]
compute 1000 forward 0F1 writes scratch[4:4]
send 1 scratch[4:4]
recv 1 scratch[8:4] lane 1
compute 2000 backward 0B0 reads scratch[8:4]
recv 1 scratch[12:4] lane 1
compute 2000 backward 0B1 reads scratch[12:4]
rank 1
recv 0 scratch[0:4]
compute 1000 forward 1F0 reads scratch[0:4]
recv 0 scratch[4:4]
compute 1000 forward 1F1 reads scratch[4:4]
compute 2000 backward 1B0 writes scratch[8:4]
send 0 scratch[8:4] lane 1
compute 2000 backward 1B1 writes scratch[12:4]
send 0 scratch[12:4] lane 1
)";

/// Every rank computes, takes part in an all-reduce of `count` elements, and computes with the
/// result.
inline baton::Schedule compute_reduce_compute(const baton::Algorithm& all_reduce, int size,
                                              int rank, std::int64_t count, int lane = 0) {
  baton::Problem program;
  program.collective = baton::Collective::program;
  program.size = size;
  program.rank = rank;
  baton::ScheduleBuilder builder(program);
  const baton::Region gradients = builder.scratch(count), sums = builder.scratch(count);
  builder.compute({"loss", baton::ComputationKind::backward, 1000}, {}, {gradients});
  baton::Problem part = program;
  part.collective = baton::Collective::all_reduce;
  part.count = count;
  std::vector<int> ranks;
  for (int r = 0; r < size; ++r) ranks.push_back(r);
  builder.lane(lane);
  builder.embed(all_reduce.generate(part), ranks, {gradients}, {sums});
  builder.lane(0);
  builder.compute({"AdamW", baton::ComputationKind::optimizer, 500}, {sums});
  return builder.build("step");
}

}  // namespace support
