#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "function.hpp"

namespace baton::pmpi {

/// What the program called, and what became of it. For any thread.
class Stats {
 public:
  struct Key {
    Function function;
    bool nonblocking;
    int ranks;              ///< of the communicator
    std::int64_t bytes;     ///< the least power of two that is not less; 0: none
    std::string algorithm;  ///< or, of a call that was passed on, why
    bool passed_on;
    auto operator<=>(const Key&) const = default;
  };
  /// `bytes` are rounded up here. Of nonblocking calls, `seconds` are from start to completion.
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
