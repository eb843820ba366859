/// The data for reductions is exact: any order of folds gives the same bits.

#include "pattern.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "baton/memory.hpp"
#include "dropin/nccl/arguments.hpp"

using namespace baton;
using nccl_pattern::form_of;
using nccl_pattern::Pattern;
using Bytes = std::vector<std::byte>;

namespace {

constexpr std::int64_t count = 97;

int factor(int rank) { return rank % 3 == 1 ? 2 : 1; }

OpKind kind_of(int op) {
  constexpr OpKind kinds[] = {OpKind::sum, OpKind::prod, OpKind::max,
                              OpKind::min, OpKind::sum,  OpKind::sum};
  return kinds[op];
}

Bytes inputs(const Pattern& pattern, int rank) {
  Bytes bytes(static_cast<std::size_t>(count) * form_of(pattern.type).bytes);
  nccl_pattern::fill(bytes.data(), count, pattern.type,
                     [&](std::int64_t i) { return pattern.input(rank, i); });
  return bytes;
}

Bytes folded(OpKind kind, Datatype type, const Bytes& left, const Bytes& right) {
  Bytes into(left.size());
  host::reference_fold(kind, type)(into.data(), left.data(), right.data(),
                                   static_cast<std::size_t>(count));
  return into;
}

/// What the ranks put in, scaled, in this order of ranks, one after the other.
Bytes reduced(const Pattern& pattern, const std::vector<int>& order) {
  const Datatype type = nccl_abi::datatype_of(static_cast<ncclDataType_t>(pattern.type));
  Bytes all;
  for (const int rank : order) {
    Bytes one = inputs(pattern, rank);
    if (pattern.op == ncclNumOps && factor(rank) == 2) one = folded(OpKind::sum, type, one, one);
    all = all.empty() ? one : folded(kind_of(pattern.op), type, all, one);
  }
  if (pattern.op == ncclAvg)
    host::reference_divide(type)(all.data(), static_cast<std::size_t>(count), pattern.ranks);
  return all;
}

std::int64_t wrong(const Pattern& pattern, const Bytes& bytes) {
  return nccl_pattern::wrong(bytes.data(), count, pattern.type,
                             [&](std::int64_t i) { return pattern.result(i); });
}

template <class Check>
void for_each_pattern(Check check) {
  for (int type = 0; type < ncclNumTypes; ++type)
    for (int op = 0; op <= ncclNumOps; ++op)
      for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 16}) {
        CAPTURE(type);
        CAPTURE(op);
        CAPTURE(ranks);
        check(Pattern{type, op, ranks, 5, factor});
      }
}

}  // namespace

TEST_CASE("any order of folds gives the result") {
  for_each_pattern([](const Pattern& pattern) {
    std::vector<int> order;
    for (int rank = 0; rank < pattern.ranks; ++rank) order.push_back(rank);
    CHECK(wrong(pattern, reduced(pattern, order)) == 0);
    std::ranges::reverse(order);
    CHECK(wrong(pattern, reduced(pattern, order)) == 0);
    std::rotate(order.begin(), order.begin() + pattern.ranks / 2, order.end());
    CHECK(wrong(pattern, reduced(pattern, order)) == 0);
  });
}

TEST_CASE("each wrong element is counted") {
  for_each_pattern([](const Pattern& pattern) {
    std::vector<int> order;
    for (int rank = 0; rank < pattern.ranks; ++rank) order.push_back(rank);
    Bytes bytes = reduced(pattern, order);
    const std::size_t size = form_of(pattern.type).bytes;
    bytes.front() ^= std::byte{1};
    bytes[7 * size + size - 1] ^= std::byte{0x80};
    bytes.back() ^= std::byte{4};
    CHECK(wrong(pattern, bytes) == 3);
  });
}

TEST_CASE("the result depends on every rank, on the seed and on where it begins") {
  for_each_pattern([](Pattern pattern) {
    std::set<std::uint64_t> different;
    for (std::int64_t i = 0; i < count; ++i) different.insert(pattern.result(i));
    const bool coarse = pattern.op == ncclAvg && pattern.ranks >= form_of(pattern.type).exact;
    if (coarse) return;  // all is 0 where the type holds no sum of that many
    CHECK(different.size() > 1);
    const auto same = [&](const Pattern& other, std::int64_t shift) {
      std::int64_t equal = 0;
      for (std::int64_t i = 0; i < count; ++i)
        equal += pattern.result(i) == other.result(i + shift);
      return equal;
    };
    CHECK(same(pattern, 1) < count);
    Pattern other = pattern;
    other.seed = 6;
    CHECK(same(other, 0) < count);
    if (pattern.ranks == 1 || pattern.ranks > 8) return;
    for (int left_out = 0; left_out < pattern.ranks; ++left_out) {
      std::vector<int> order;
      for (int rank = 0; rank < pattern.ranks; ++rank)
        if (rank != left_out) order.push_back(rank);
      CHECK(wrong(pattern, reduced(pattern, order)) > 0);
    }
  });
}
