#pragma once
/// What every communicator owes its callers, whatever its transport: each collective with each
/// algorithm, against references that work index by index from all ranks' inputs. Every rank of the
/// communicator calls the same function with the same scope.

#include <string>
#include <string_view>

#include "baton/communicator.hpp"
#include "baton/schedule.hpp"
#include "values.hpp"

namespace support {

/// What to go through.
struct Scope {
  Counts counts;    ///< elements per rank
  Counts segments;  ///< bytes; 0: not cut
  Counts roots;
};

/// The counts at which algorithms go wrong, cut into none and small pieces, with every root of
/// small groups.
Scope thorough(int size);
/// The same in fewer combinations, for ranks that cost more.
Scope brief(int size);

namespace conformance {

/// broadcast, reduce, gather, scatter.
void rooted(baton::Communicator& c, const Scope& scope);
/// all_reduce, reduce_scatter, scan, exscan.
void reductions(baton::Communicator& c, const Scope& scope);
/// all_gather, all_to_all.
void exchanges(baton::Communicator& c, const Scope& scope);
/// Nobody leaves a barrier before all have come.
void barriers(baton::Communicator& c);
/// Counts that differ between ranks, zeros among them, and blocks at given offsets.
void uneven(baton::Communicator& c, const Scope& scope);
/// all_gather along every dimension of small tensors.
void tensor_all_gather(baton::Communicator& c);
/// all_to_all for every pair of dimensions of small tensors of rank 1 to 4.
void tensor_all_to_all(baton::Communicator& c);
/// Every operation on every datatype that it is defined on.
void types(baton::Communicator& c);
/// Users' operations, commutative and not, with every algorithm that keeps rank order.
void user_operations(baton::Communicator& c);

/// Calls `body(choice)` for the default choice, and for each algorithm that serves the problem with
/// each segment.
template <class Body>
void for_choices(const baton::Communicator& c, const baton::Problem& problem, const Scope& scope,
                 const Body& body) {
  body(baton::Choice{});
  for (const baton::Algorithm* algorithm : c.registry().of(problem.collective)) {
    if (!baton::refusal(*algorithm, problem).empty()) continue;
    for (const std::int64_t segment : scope.segments) {
      body(baton::Choice{algorithm->name, segment});
    }
  }
}

/// A problem of the collective, as far as an algorithm's domain is concerned.
baton::Problem problem_of(const baton::Communicator& c, baton::Collective collective);

/// "all_reduce ring, segment 12 B, 7 elements, in place, rank 2 of 5".
std::string where(const baton::Communicator& c, baton::Collective collective,
                  const baton::Choice& choice, std::int64_t count, std::string_view more = {});

}  // namespace conformance
}  // namespace support
