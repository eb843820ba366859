#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "../trace/clock.hpp"
#include "../trace/recorder.hpp"

namespace baton {

/// What a communicator and those split from it record, on one rank.
struct Recording {
  explicit Recording(std::size_t events) : recorder(std::make_shared<tracing::Recorder>(events)) {}

  const std::shared_ptr<tracing::Recorder> recorder;
  std::atomic<bool> active = true;  ///< also on communicators that other threads use
  int rank = 0, ranks = 1;          ///< of the communicator that records
  int host = 0;
  std::vector<int> clocks;  ///< of each rank, the lowest one that has the same clock
  std::optional<tracing::ClockSample> before;

  int clock() const { return clocks[static_cast<std::size_t>(rank)]; }
};

/// Throws Error(invalid_argument) where the file cannot be written.
void write_trace(const std::string& file, std::string_view bytes);

/// A name for the next recording that this process's communicators make to `file`: that name, then
/// FILE-2 and so on.
std::string next_trace_name(const std::string& file);

}  // namespace baton
