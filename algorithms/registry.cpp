#include "baton/schedule.hpp"

namespace baton {

// Each algorithm's file defines its generator and its cost; its row is below.

// --- broadcast, reduce, gather, scatter, scan, exscan, barrier: generators, costs

// --- all_reduce, reduce_scatter: generators, costs

// --- all_gather, all_to_all: generators, costs

Registry Registry::builtin() {
  Registry table;
  // --- broadcast, reduce, gather, scatter, scan, exscan, barrier: rows

  // --- all_reduce, reduce_scatter: rows

  // --- all_gather, all_to_all: rows

  return table;
}

}  // namespace baton
