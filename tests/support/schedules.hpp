#pragma once
/// Schedules for the tests of what makes and changes them.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "baton/schedule.hpp"
#include "baton/schedule/text.hpp"
#include "baton/verify.hpp"

namespace support {

inline baton::Problem problem(baton::Collective collective, int size, int rank, std::int64_t count,
                              bool in_place = false) {
  baton::Problem p;
  p.collective = collective;
  p.size = size;
  p.rank = rank;
  p.count = count;
  p.in_place = in_place;
  return p;
}

/// Hosts of two ranks each for algorithms that group ranks by host, none for others.
inline std::shared_ptr<const baton::Hosts> hosts_for(const baton::Algorithm& algorithm, int size) {
  if (!algorithm.hierarchical) return nullptr;
  std::vector<int> hosts;
  for (int r = 0; r < size; ++r) hosts.push_back(r / 2);
  return baton::host_grouping(hosts);
}

/// The problem of every rank.
inline std::vector<baton::Problem> problems(const baton::Problem& p) {
  std::vector<baton::Problem> all;
  for (int rank = 0; rank < p.size; ++rank) all.push_back(p.at(rank));
  return all;
}

inline std::vector<baton::Schedule> schedules(const baton::Algorithm& algorithm,
                                              const std::vector<baton::Problem>& problems) {
  std::vector<baton::Schedule> all;
  for (const baton::Problem& p : problems) all.push_back(algorithm.generate(p));
  return all;
}

/// The steps as text, one per line: "send 1 output[0:4]".
inline std::string steps(const baton::Schedule& schedule) {
  std::string text;
  for (std::size_t i = 0; i < schedule.steps().size(); ++i) {
    text += (i == 0 ? "" : "\n") + baton::print(schedule, i);
  }
  return text;
}

/// What the verifier finds, or "".
inline std::string flaws(const std::vector<baton::Schedule>& schedules,
                         const std::vector<baton::Problem>& problems) {
  const baton::Proof proof = baton::verify(schedules, problems);
  return proof.holds() ? std::string() : proof.findings[0].sentence;
}

}  // namespace support
