#pragma once
/// What transports between processes are tested with beside the contract: whole collectives, and
/// threads that each have groups of their own.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "baton/communicator.hpp"
#include "support/conformance.hpp"
#include "support/ranks.hpp"

namespace cases {

/// Every collective, of few elements.
inline void collectives(baton::Communicator& c) {
  using namespace support::conformance;
  const support::Scope scope = support::brief(c.size());
  rooted(c, scope);
  reductions(c, scope);
  exchanges(c, scope);
  barriers(c);
  uneven(c, {{5}, {0}, {0}});
}

/// Of so many that messages are long, whole and in pieces.
inline void long_collectives(baton::Communicator& c) {
  using namespace support::conformance;
  const support::Scope large{{70'001}, {0, 64 << 10}, {c.size() - 1}};
  rooted(c, large);
  reductions(c, large);
  exchanges(c, {{20'011}, {0, 64 << 10}, {}});
}

/// Where Capabilities::concurrent: each thread splits a group of its own, and reduces in it.
inline void threads_with_groups(baton::Transport& t, int threads) {
  std::vector<std::unique_ptr<baton::Transport>> parts;
  for (int i = 0; i < threads; ++i) parts.push_back(t.split(0, 0));
  std::vector<std::jthread> all;
  for (int i = 0; i < threads; ++i)
    all.emplace_back([&, i] {
      baton::Communicator c(std::move(parts[static_cast<std::size_t>(i)]), support::test_options());
      for (int round = 0; round < 20; ++round) {
        baton::Communicator half = c.split(c.rank() % 2, c.rank());
        std::vector<int> small(7, i + 1), large(50'000, i + round);
        c.all_reduce(small, baton::sum);
        half.all_reduce(large, baton::sum);
        CHECK(small == std::vector<int>(7, (i + 1) * c.size()));
        CHECK(large == std::vector<int>(50'000, (i + round) * half.size()));
      }
    });
}

/// Where Capabilities::probes: a probe names the sender of a message that nobody has asked for.
inline void probes(baton::Communicator& c) {
  constexpr int tag = 5, other = 6;
  CHECK(c.probe(tag) == -1);
  c.barrier();
  std::int32_t own = c.rank(), got = -1;
  if (c.rank() != 0) {
    c.send(std::span(&own, 1), 0, tag);
  } else {
    std::vector<int> found;
    while (static_cast<int>(found.size()) < c.size() - 1) {
      CHECK(c.probe(other) == -1);
      const int source = c.probe(tag);
      if (source < 0) continue;
      c.recv(std::span(&got, 1), source, tag);
      CHECK(got == source);
      found.push_back(source);
    }
    std::ranges::sort(found);
    for (int r = 1; r < c.size(); ++r) CHECK(found[static_cast<std::size_t>(r - 1)] == r);
    CHECK(c.probe(tag) == -1);
  }
  c.barrier();
  CHECK(std::string(support::error_of([&] { c.probe(-1); }).what())
            .find("expected a tag from 0 to") != std::string::npos);
}

}  // namespace cases
