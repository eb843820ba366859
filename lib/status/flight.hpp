#pragma once
/// The last operations of ranks as a recording.

#include <span>
#include <string>

#include "page.hpp"

namespace baton::status {

/// A trace file's bytes, which read_trace() reads: a computation for each operation that the pages
/// remember, named "all_reduce of 10 f32, sum (ring)". The ranks are those of the largest
/// communicator; operations of others are in the row of their thread. Operations of one rank that
/// overlap follow each other in it. Empty where there is no page.
std::string recording_of(std::span<const Standing> pages);

}  // namespace baton::status
