#include "place.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <string>

#include "../base/hash.hpp"

namespace baton::transport {

Place own_place() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) name[0] = '\0';
  std::string boot;  // stays empty without such a file: then host names decide
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  using base::hash;
  const std::uint64_t machine = hash(boot.empty() ? name.data() : boot.c_str());
  return {hash(name.data(), machine), machine, sysconf(_SC_NPROCESSORS_ONLN)};
}

std::vector<int> hosts_in(std::span<const Place> places) {
  std::map<std::uint64_t, int> numbers;
  std::vector<int> hosts;
  for (const Place& place : places) {
    hosts.push_back(numbers.emplace(place.host, static_cast<int>(numbers.size())).first->second);
  }
  return hosts;
}

bool crowded(std::span<const Place> places, int rank) {
  const std::uint64_t own = places[static_cast<std::size_t>(rank)].machine;
  const auto ranks = std::count_if(places.begin(), places.end(),
                                   [&](const Place& place) { return place.machine == own; });
  return ranks > places[static_cast<std::size_t>(rank)].cores;
}

int shared_cores(std::span<const Place> places) {
  const bool one = std::ranges::all_of(
      places, [&](const Place& place) { return place.machine == places.front().machine; });
  if (!one) return 0;
  return static_cast<int>(std::ranges::min(places, {}, &Place::cores).cores);
}

}  // namespace baton::transport
