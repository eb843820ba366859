#pragma once
/// The ranks that activations and gradients are exchanged among.

#include "baton/communicator.hpp"
#include "baton/stream.hpp"

namespace baton::transformer {

/// Some ranks: by a communicator for the host's memory, and where ranks have accelerators, by
/// another for theirs. Without any, this rank alone.
struct Group {
  Communicator* host = nullptr;
  StreamCommunicator* device = nullptr;

  Group(Communicator* host = nullptr, StreamCommunicator* device = nullptr)  // NOLINT: a group
      : host(host), device(device) {}
  int size() const { return host ? host->size() : 1; }
  int rank() const { return host ? host->rank() : 0; }
  /// Starts a call on memory where Arrays lie now. On an accelerator it is given to its stream, and
  /// the request is complete. Throws Error(invalid_argument) where an accelerator's group has no
  /// communicator for its memory.
  Request start(const Call& call) const;
};

}  // namespace baton::transformer
