#pragma once
/// How the ranks of a process group find each other.

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <memory>

#include "baton/transport.hpp"

namespace baton::pytorch {

/// A transport of processes whose addresses go through the store. Collective over the group. Throws
/// Error and what the store throws.
std::unique_ptr<Transport> rendezvous(c10d::Store& store, int rank, int size,
                                      std::chrono::milliseconds timeout);

}  // namespace baton::pytorch
