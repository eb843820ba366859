#pragma once

#include "baton/schedule.hpp"

namespace baton::algorithms {

/// Among `radix` ranks that stand `stride` apart, each sends its sum to all others at once and
/// folds all, in rank order; so they have the same bits. Takes radix - 1 rounds, and as many
/// messages of the vector's length, each received into scratch of its own.
inline void exchange_and_fold(ScheduleBuilder& builder, const Problem& p, int stride, int radix) {
  const Region all = builder.work();
  const int digit = p.rank / stride % radix, first = p.rank - digit * stride;
  const Region room = builder.scratch((radix - 1) * p.count);
  const auto from = [&](int other) {  // where the sum of the rank with this digit lies
    const int place = other < digit ? other : other - 1;
    return other == digit ? all : contiguous(room.buffer, room.offset + place * p.count, p.count);
  };
  for (int j = 1; j < radix; ++j) {
    const int to = (digit + j) % radix, source = (digit - j + radix) % radix;
    builder.send(first + to * stride, all);
    builder.recv(first + source * stride, from(source));
    builder.end_round();
  }
  Region sum = from(0);
  for (int other = 1; other < radix; ++other) {
    const Region next = other >= digit ? all : sum;
    builder.fold(next, sum, from(other));
    sum = next;
  }
}

}  // namespace baton::algorithms
