#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "function.hpp"

namespace baton::pmpi {

/// MPI's name, for example "MPI_Allreduce" or "MPI_Iallreduce". Allocates nothing.
std::string_view mpi_name(Function function, bool nonblocking);

/// The program's calls and how they were run. For any thread.
class Stats {
 public:
  struct Key {
    std::string_view function;  ///< MPI's name, which outlives the statistics
    int ranks;                  ///< of the communicator
    std::int64_t bytes;         ///< rounded up to a power of two; 0: none
    std::string algorithm;      ///< or the reason for passing the call on
    bool passed_on;
    auto operator<=>(const Key&) const = default;
  };
  /// Rounds up `bytes`. For nonblocking calls, `seconds` run from start to completion.
  void add(Key key, double seconds);
  /// The table.
  std::string text() const;

 private:
  struct Sum {
    std::int64_t calls = 0;
    double seconds = 0;
  };
  mutable std::mutex mutex_;
  std::map<Key, Sum> sums_;
};

/// The time since its construction. Without statistics it reads no clock.
class Stopwatch {
 public:
  explicit Stopwatch(const Stats* stats) {
    if (stats) begin_ = Clock::now();
  }
  double seconds() const {
    return begin_ ? std::chrono::duration<double>(Clock::now() - *begin_).count() : 0;
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> begin_;
};

}  // namespace baton::pmpi
