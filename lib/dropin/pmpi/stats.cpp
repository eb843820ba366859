#include "stats.hpp"

#include <fmt/core.h>

#include <bit>
#include <cctype>

namespace baton::pmpi {
namespace {

std::string human_bytes(std::int64_t bytes) {
  constexpr std::string_view units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && bytes % 1024 == 0 && unit + 1 < std::size(units)) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{} {}", bytes, units[unit]);
}

}  // namespace

std::string mpi_name(Function function, bool nonblocking) {
  std::string name(nonblocking ? "i" : "");
  name += functions[static_cast<std::size_t>(function)].name;
  name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return "MPI_" + name;
}

void Stats::add(Key key, double seconds) {
  if (key.bytes > 0)
    key.bytes = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(key.bytes)));
  const std::lock_guard lock(mutex_);
  Sum& sum = sums_[std::move(key)];
  ++sum.calls;
  sum.seconds += seconds;
}

std::string Stats::text() const {
  const std::lock_guard lock(mutex_);
  std::string text = fmt::format(
      "# baton: collectives of this program, rank 0\n{:<30}{:>6}{:>11}"
      "{:>10}{:>12}{:>13}  {}\n",
      "# function", "ranks", "up to", "calls", "total ms", "us per call", "algorithm");
  for (const auto& [key, sum] : sums_) {
    text += fmt::format("{:<30}{:>6}{:>11}{:>10}{:>12.3f}{:>13.2f}  {}{}\n", key.function,
                        key.ranks, human_bytes(key.bytes), sum.calls, sum.seconds * 1e3,
                        sum.seconds * 1e6 / static_cast<double>(sum.calls),
                        key.passed_on ? "passed on: " : "", key.algorithm);
  }
  if (sums_.empty()) text += "# none\n";
  return text;
}

}  // namespace baton::pmpi
