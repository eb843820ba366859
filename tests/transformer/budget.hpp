#pragma once
/// What a block says that it sends, against what is counted outside of the library.

#include <functional>

#include "baton/communicator.hpp"

namespace support {

/// For every way to cut a block over the communicator's ranks, forward, backward and the sum of
/// gradients send what the budget says, message by message and byte by byte. `sent` counts what
/// this rank has sent so far. Collective.
void check_budget(baton::Communicator& world, const std::function<baton::Traffic()>& sent);

}  // namespace support
