#pragma once
/// Waiting for a request, with something else to look at meanwhile.

#include <functional>

#include "baton/communicator.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// Request::wait() that calls `meanwhile` before each time that it would leave the core to others.
/// It may use any communicator, this one too. What it throws is thrown, and the request is still
/// under way.
void wait(Request& request, const std::function<void()>& meanwhile);

}  // namespace baton
#pragma GCC visibility pop
