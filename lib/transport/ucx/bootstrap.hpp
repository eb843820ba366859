#pragma once
/// The exchange of the ranks' addresses.

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "world.hpp"

namespace baton::ucx {

/// Bruck's all-gather among the ranks of `group`, with tag `tag`. `blocks` has equal room for each
/// rank's block, in rank order; this rank's block is already filled in. Collective.
void all_gather(Transport& group, int tag, std::span<std::byte> blocks);

/// All ranks' blocks in rank order, through `group`. Collective.
std::vector<Bytes> exchange_through(Transport& group, const Bytes& own);

/// The same through rank 0, which listens at "host:port". Throws as ucx_transport() does.
std::vector<Bytes> exchange_at(const std::string& address, int rank, int size, const Bytes& own,
                               std::chrono::milliseconds limit);

}  // namespace baton::ucx
