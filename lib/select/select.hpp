#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "../cost/cost.hpp"
#include "baton/options.hpp"
#include "table.hpp"

namespace baton::selecting {

/// The algorithm and segment of a call, and the reason for the choice.
struct Selection {
  const Algorithm* algorithm = nullptr;
  std::int64_t segment = 0;  ///< bytes; 0: not cut
  std::string reason;
};

/// Sizes of message pieces in bytes that are tried if the caller leaves the choice; 0: not cut.
std::span<const std::int64_t> segment_candidates();

/// Chooses by the caller's choice, else the option's, else the table's, if a table is given and
/// serves the call, else the least estimate. Depends only on data that is equal on all ranks.
/// Throws Error(invalid_argument) for an unknown algorithm, with a list of the known ones, and for
/// one that does not serve the problem.
Selection select(const Registry& registry, const Problem& problem, std::size_t element_bytes,
                 const Choice& call, const Choice& option, const TableSection* table = nullptr,
                 const costs::NetworkParameters& network = {});

/// The algorithm of that name. Throws Error(invalid_argument) as select() does.
const Algorithm& serving(const Registry& registry, const Problem& problem,
                         const std::string& algorithm_name);

/// The schedule of a selection, cut into its segments.
Schedule scheduled(const Selection& selection, const Problem& problem, std::size_t element_bytes);

/// The same before segmented() cuts it into pieces() elements.
Schedule whole(const Selection& selection, const Problem& problem, std::size_t element_bytes);
std::int64_t pieces(const Selection& selection, std::size_t element_bytes);

}  // namespace baton::selecting
