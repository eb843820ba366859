#pragma once

#include <cstdint>
#include <string_view>

namespace baton::cli {

/// One line on standard error that says how far a long run is; it vanishes at the end. Silent
/// where standard error is no terminal, unless forced. Not for several threads at once.
class Progress {
 public:
  Progress(std::int64_t total, bool forced);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// "[3/17] what"
  void show(std::int64_t done, std::string_view what);
  void clear();  ///< before anything else is printed

 private:
  std::int64_t total_;
  bool on_, shown_ = false;
};

}  // namespace baton::cli
