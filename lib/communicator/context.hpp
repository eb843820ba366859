#pragma once

#include <memory>

#include "../cost/cost.hpp"
#include "../select/table.hpp"
#include "baton/options.hpp"
#include "baton/schedule/algorithm.hpp"
#include "baton/schedule/hosts.hpp"
#include "baton/transport.hpp"

namespace baton::communicator {

/// Tags 0 … user_tags - 1 belong to send() and recv(). An operation has one tag for each lane.
inline constexpr int user_tags = 1024, lanes = 8;

/// Facts about a communicator that hold for its whole life, once options and table are agreed.
struct Context {
  Context(std::unique_ptr<Transport> transport, Options options);
  /// With the options and the table of another one.
  Context(std::unique_ptr<Transport> transport, const Context& like);

  const std::unique_ptr<Transport> transport;
  Options options;
  const Capabilities can;  ///< of the transport
  const int rank, size;
  const std::shared_ptr<const Hosts> hosts;  ///< null: all ranks share one
  const std::shared_ptr<const Registry> registry;
  const costs::NetworkParameters network;
  std::shared_ptr<const selecting::Table> table;
  const selecting::TableSection* section = nullptr;  ///< of the table, for this communicator
};

}  // namespace baton::communicator
