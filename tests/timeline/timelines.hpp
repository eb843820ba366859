#pragma once
/// Timelines for the tests of what makes and draws them.

#include <memory>
#include <string_view>
#include <vector>

#include "baton/schedule/passes.hpp"
#include "baton/timeline.hpp"
#include "support/schedules.hpp"

namespace support {

struct Layout {
  bool in_place = false;
  std::int64_t segment = 0;               ///< elements
  std::vector<std::int64_t> counts = {};  ///< of each rank's block
  std::int64_t rows = 1;                  ///< of an all_to_all's input, of an all_gather's output
};

inline std::shared_ptr<const std::vector<baton::Schedule>> shared_schedules(
    baton::Collective collective, std::string_view algorithm, int size, std::int64_t count,
    const Layout& layout = {}) {
  const baton::Registry registry = baton::Registry::builtin();
  const baton::Algorithm& its = registry.find(collective, algorithm);
  baton::Problem p = problem(collective, size, 0, count, layout.in_place);
  p.hosts = hosts_for(its, size);
  if (collective == baton::Collective::all_to_all) p.input_rows = layout.rows;
  if (collective == baton::Collective::all_gather) p.output_rows = layout.rows;
  if (!layout.counts.empty()) {
    p.input_blocks = p.output_blocks = baton::Blocks::packed(layout.counts);
  }
  auto all = std::make_shared<std::vector<baton::Schedule>>();
  for (int r = 0; r < size; ++r) {
    baton::Problem own = p.at(r);
    if (its.pipelined) own.blocks = 3;
    all->push_back(baton::segmented(its.generate(own), its.pipelined ? 0 : layout.segment));
  }
  return all;
}

/// Rounds of a built-in algorithm, of 4-byte elements.
inline baton::Timeline rounds(baton::Collective collective, std::string_view algorithm, int size,
                              std::int64_t count, const Layout& layout = {}) {
  return baton::rounds_of(shared_schedules(collective, algorithm, size, count, layout), 4);
}

/// Rounds of schedules from text.
inline baton::Timeline rounds(std::string_view text) {
  return baton::rounds_of(std::make_shared<const std::vector<baton::Schedule>>(baton::parse(text)),
                          4);
}

/// Every built-in algorithm with a problem that it serves, at these numbers of ranks.
template <class Visit>
void for_each_algorithm(std::initializer_list<int> sizes, const Visit& visit) {
  const baton::Registry registry = baton::Registry::builtin();
  for (const baton::Algorithm& algorithm : registry.all()) {
    for (const int size : sizes) {
      const bool barrier = algorithm.collective == baton::Collective::barrier;
      baton::Problem p = problem(algorithm.collective, size, 0, barrier ? 1 : 2 * size + 1);
      p.hosts = hosts_for(algorithm, size);
      if (baton::refusal(algorithm, p).empty()) visit(algorithm, p);
    }
  }
}

}  // namespace support
