#pragma once
/// Meshes and tokens that tests of language models share.

#include <fmt/core.h>

#include <string>
#include <vector>

#include "transformer/data/text.hpp"
#include "transformer/mesh.hpp"
#include "transformer/random.hpp"

namespace support {

using namespace baton;
using namespace baton::transformer;

/// How a mesh cuts a model.
struct Cut {
  int dp, tp, sp;
  bool sequence_parallel;

  std::string text() const {
    return fmt::format("dp {} tp {}{} sp {}", dp, tp, sequence_parallel ? " with sequence" : "",
                       sp);
  }
  Mesh mesh(Communicator& world) const {
    return {world, {{Axis::dp, dp}, {Axis::sp, sp}, {Axis::tp, tp}}};
  }
};

/// All cuts over so many ranks.
inline std::vector<Cut> cuts_of(int ranks) {
  std::vector<Cut> cuts;
  for (int tp = 1; tp <= ranks; ++tp) {
    for (int sp = 1; sp <= ranks / tp; ++sp) {
      if (ranks % (tp * sp) != 0) continue;
      cuts.push_back({ranks / tp / sp, tp, sp, false});
      if (tp > 1) cuts.push_back({ranks / tp / sp, tp, sp, true});
    }
  }
  return cuts;
}

/// Tokens and targets, the same for the same arguments.
inline TokenBatch random_batch(std::int64_t vocabulary, const Shape& shape,
                               std::uint64_t seed = 8) {
  TokenBatch batch;
  batch.shape = shape;
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    const auto at = static_cast<std::uint64_t>(2 * i);
    const auto below = static_cast<std::uint32_t>(vocabulary);
    batch.ids.push_back(static_cast<std::int32_t>(Random{seed}.word(at) % below));
    batch.targets.push_back(static_cast<std::int32_t>(Random{seed}.word(at + 1) % below));
  }
  return batch;
}

}  // namespace support
