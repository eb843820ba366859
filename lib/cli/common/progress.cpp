#include "progress.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>

namespace baton::cli {

Progress::Progress(std::int64_t total, bool forced)
    : total_(total), on_(forced || isatty(STDERR_FILENO) != 0) {}

void Progress::show(std::int64_t done, std::string_view what) {
  if (!on_) return;
  fmt::print(stderr, "\r\033[K[{}/{}] {}", done, total_, what);
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace baton::cli
