#include "context.hpp"

#include <utility>

namespace baton::communicator {

Context::Context(std::unique_ptr<Transport> made, Options given)
    : transport(std::move(made)),
      options(std::move(given)),
      can(transport->capabilities()),
      rank(transport->rank()),
      size(transport->size()),
      hosts(host_grouping(can.hosts)),
      registry(options.registry ? options.registry
                                : std::make_shared<const Registry>(Registry::builtin())),
      network({.cores = can.cores}) {
  options.registry = registry;
  options.timeout = limited(options.timeout);
}

Context::Context(std::unique_ptr<Transport> made, const Context& like)
    : Context(std::move(made), like.options) {
  options.trace.clear();  // the recording communicator writes the file
  table = like.table;
  if (table) section = table->find(selecting::scope_of(*transport, hosts.get()));
}

}  // namespace baton::communicator
