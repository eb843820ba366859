#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "world.hpp"

namespace baton::ucx {

/// All ranks' blocks in rank order, through rank 0, which listens at "host:port". Collective.
/// Throws as ucx_transport() does.
std::vector<Bytes> exchange_at(const std::string& address, int rank, int size, const Bytes& own,
                               std::chrono::milliseconds limit);

}  // namespace baton::ucx
