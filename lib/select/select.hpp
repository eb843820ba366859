#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "../cost/cost.hpp"
#include "baton/options.hpp"
#include "table.hpp"

namespace baton::selecting {

/// Which algorithm a call runs, in which pieces, and why.
struct Selection {
  const Algorithm* algorithm = nullptr;
  std::int64_t segment = 0;  ///< bytes; 0: not cut
  std::string reason;
};

/// Bytes of message pieces that are tried where the caller leaves the choice; 0: not cut.
std::span<const std::int64_t> segment_candidates();

/// Chooses by the caller's choice, else the option's, else the table's, if one is given and serves,
/// else the least estimate. Depends only on what
/// is equal on all ranks. Throws Error(invalid_argument) for an unknown algorithm, listing those
/// that exist, and for one that does not serve the problem.
Selection select(const Registry& registry, const Problem& problem, std::size_t element_bytes,
                 const Choice& call, const Choice& option, const TableSection* table = nullptr,
                 const costs::NetworkParameters& network = {});

/// The schedule of a selection, cut as it says.
Schedule scheduled(const Selection& selection, const Problem& problem, std::size_t element_bytes);

/// The same before segmented() cuts it into pieces() elements.
Schedule whole(const Selection& selection, const Problem& problem, std::size_t element_bytes);
std::int64_t pieces(const Selection& selection, std::size_t element_bytes);

}  // namespace baton::selecting
