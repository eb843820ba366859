#pragma once
/// Threads that only a fork's parent has.

#include <list>
#include <thread>
#include <utility>

namespace baton::base {

/// Keeps what a fork has copied of its parent's thread: it can neither be joined nor detached
/// there.
inline void leave_to_parent(std::thread thread) {
  static auto& kept = *new std::list<std::thread>;
  kept.push_back(std::move(thread));
}

}  // namespace baton::base
