#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "function.hpp"

namespace baton::pmpi {

/// MPI's name, for example "MPI_Allreduce" or "MPI_Iallreduce".
std::string mpi_name(Function function, bool nonblocking);

/// The program's calls and how they were run. For any thread.
class Stats {
 public:
  struct Key {
    std::string function;   ///< MPI's name
    int ranks;              ///< of the communicator
    std::int64_t bytes;     ///< rounded up to a power of two; 0: none
    std::string algorithm;  ///< or the reason for passing the call on
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

}  // namespace baton::pmpi
