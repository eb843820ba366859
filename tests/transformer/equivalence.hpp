#pragma once
/// A block whole on one rank against the same block cut over a mesh.

#include <map>
#include <string>

#include "transformer/accelerator.hpp"
#include "transformer/block.hpp"

namespace support {

struct BlockCase {
  baton::transformer::BlockConfig config;
  std::int64_t batch = 2, seq = 8;
  int dp = 1, tp = 1, sp = 1;
  bool sequence_parallel = false;
};

/// Largest differences, each relative to the largest element of what is expected, by name: "y",
/// "dx" and the names of the parameters.
using Differences = std::map<std::string, double>;

/// Changes a form before it runs, on every rank.
template <class T>
using Rewire = std::function<void(typename baton::transformer::TransformerBlock<T>::Form&)>;

/// Where a rank computes the parallel form; the whole block is always on the host.
struct Place {
  baton::transformer::Accelerator* accelerator = nullptr;  ///< null: the host, too
  baton::StreamCommunicator* communicator = nullptr;
};
/// Over both of a rank's communicators, if it has two.
baton::transformer::Mesh mesh_of(baton::Communicator& world, const Place& place,
                                 const std::vector<std::pair<baton::transformer::Axis, int>>& axes);

/// Forward and backward of random x and dy, dp times tp times sp being the communicator's size.
/// Collective; every rank gets its own differences. `sync` false leaves gradients unsummed.
template <class T>
Differences differences(baton::Communicator& world, const BlockCase& c,
                        const Rewire<T>& rewire = {}, bool sync = true, const Place& place = {});

double largest(const Differences& differences);
std::string text(const BlockCase& c);

/// The cases that every number of ranks is tried with: all ways to cut it into axes, even and odd
/// extents, causal or not, grouped heads, dropout.
std::vector<BlockCase> cases_for(int ranks);

}  // namespace support
