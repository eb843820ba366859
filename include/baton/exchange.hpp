#pragma once
/// How processes that have no transport yet tell each other where they are.

#include <cstddef>
#include <functional>
#include <vector>

#pragma GCC visibility push(default)
namespace baton {

/// Takes this rank's block and returns the blocks of all ranks, in rank order. Collective. Blocks
/// may differ in length; they have a few hundred bytes.
using Exchange =
    std::function<std::vector<std::vector<std::byte>>(const std::vector<std::byte>& own)>;

}  // namespace baton
#pragma GCC visibility pop
