#pragma once

#include <algorithm>
#include <chrono>
#include <memory>

#include "../cost/cost.hpp"
#include "../select/table.hpp"
#include "baton/options.hpp"
#include "baton/schedule/algorithm.hpp"
#include "baton/schedule/hosts.hpp"
#include "baton/transport.hpp"

namespace baton::communicator {

/// send() and recv() use tags 0 … user_tags - 1. An operation has one tag for each lane; NCCL has
/// as many channels. shrink() uses the last tag.
inline constexpr int user_tags = 1024, lanes = 32;

/// 31 years: a time limit as good as none. Several may be added to any time, in any unit.
inline constexpr std::chrono::seconds longest_limit{1'000'000'000};
inline std::chrono::milliseconds limited(std::chrono::milliseconds limit) {
  return std::min<std::chrono::milliseconds>(limit, longest_limit);
}

/// Facts that hold for a communicator's whole life, once options and table are agreed.
struct Context {
  Context(std::unique_ptr<Transport> transport, Options options);
  /// Takes options and table from another context.
  Context(std::unique_ptr<Transport> transport, const Context& like);

  std::unique_ptr<Transport> transport;  ///< never null, but in with_checksums()
  Options options;
  const Capabilities can;  ///< the transport's
  const int rank, size;
  const std::shared_ptr<const Hosts> hosts;  ///< null: all ranks share one host
  const std::shared_ptr<const Registry> registry;
  const costs::NetworkParameters network;
  std::shared_ptr<const selecting::Table> table;
  const selecting::TableSection* section = nullptr;  ///< the table's section for this communicator
};

}  // namespace baton::communicator
