#include "algorithms.hpp"

#include <fmt/core.h>

#include <numeric>

#include "baton/error.hpp"
#include "baton/own_algorithms.hpp"
#include "baton/verify.hpp"
#include "cli/common/text.hpp"
#include "select/table.hpp"

namespace baton::cli::tune {
namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 48;
constexpr std::int64_t segments[] = {0,        8 << 10,   16 << 10,  32 << 10,
                                     64 << 10, 128 << 10, 512 << 10, 2 << 20};

/// Throws Error(invalid_argument) if it is more than most_elements.
std::int64_t common_multiple(std::int64_t a, std::int64_t b) {
  const std::int64_t factor = a / std::gcd(a, b);
  if (b > most_elements / factor) {
    refuse(
        fmt::format("expected numbers of elements with a common multiple of at most {}, found {} "
                    "and {}",
                    most_elements, a, b));
  }
  return factor * b;
}

}  // namespace

Algorithms::Algorithms(const TuneCommand& command, int ranks) : registry_(command.data.registry()) {
  for (const std::string& file : command.schedules) {
    CollectiveOptions data;
    data.schedule = file;
    add(data, ranks);
  }
  for (const std::string& file : command.msccl) {
    CollectiveOptions data;
    data.msccl = file;
    add(data, ranks);
  }
}

std::vector<const Algorithm*> Algorithms::own(Collective collective) const {
  std::vector<const Algorithm*> all = registry_.of(collective);
  const auto built_in = Registry::builtin().of(collective).size();
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(built_in));
  return all;
}

std::int64_t Algorithms::unit(Collective collective) const {
  const auto found = units_.find(collective);
  return found == units_.end() ? 1 : found->second;
}

void Algorithms::add(const CollectiveOptions& data, int ranks) {
  std::vector<Schedule> schedules = data.file_schedules();
  try {
    if (const int size = schedules.at(0).size(); size != ranks) {
      refuse(fmt::format("expected schedules for {} ranks, found those for {}", ranks, size));
    }
    if (!data.msccl.empty()) {
      ProvedSchedules proved = proved_for_any_sends(schedules);
      if (!proved.in_order_of_data.empty()) schedules = std::move(proved.in_order_of_data);
    }
    const Algorithm algorithm = algorithm_of(schedules);
    const Problem problem = problems_of(schedules)[0];
    if (rooted(problem.collective) && problem.root != 0) {
      refuse(fmt::format("expected root 0, for which rooted collectives are tuned, found {}",
                         problem.root));
    }
    registry_.add(algorithm);
    std::int64_t& unit = units_.try_emplace(problem.collective, 1).first->second;
    unit = common_multiple(unit, selecting::table_bytes(problem, 1));
  } catch (const Error& error) {
    refuse(fmt::format("{}: {}", data.file(), error.what()));
  }
}

std::vector<std::int64_t> segments_of(const Algorithm& algorithm, std::int64_t bytes) {
  std::vector<std::int64_t> tried;
  for (const std::int64_t segment : segments) {
    if (segment == 0 && algorithm.pipelined) continue;
    // A piece as long as all data cuts no message.
    if (tried.empty() || segment < bytes) tried.push_back(segment);
  }
  return tried;
}

}  // namespace baton::cli::tune
