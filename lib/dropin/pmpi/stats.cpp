#include "stats.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>

namespace baton::pmpi {
namespace {

using Name = std::array<char, 32>;

/// "MPI_" and the name with a capital letter.
constexpr Name with_prefix(std::string_view first, std::string_view rest) {
  Name text{'M', 'P', 'I', '_'};
  std::copy(rest.begin(), rest.end(), std::copy(first.begin(), first.end(), text.begin() + 4));
  text[4] = static_cast<char>(text[4] - 'a' + 'A');
  return text;
}

/// Of the blocking and of the nonblocking form, indexed by Function.
constexpr auto mpi_names = [] {
  std::array<std::array<Name, 2>, function_count> names{};
  for (std::size_t i = 0; i < function_count; ++i)
    names[i] = {with_prefix("", functions[i].name), with_prefix("i", functions[i].name)};
  return names;
}();

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

std::string_view mpi_name(Function function, bool nonblocking) {
  const auto& pair = mpi_names[static_cast<std::size_t>(function)];
  return pair[nonblocking ? 1 : 0].data();
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
