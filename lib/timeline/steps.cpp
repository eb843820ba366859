#include "steps.hpp"

#include <algorithm>
#include <tuple>

namespace baton::timing {

Steps::Steps(std::span<const Schedule> schedules) : schedules_(schedules), base_{0} {
  for (std::size_t r = 0; r < schedules.size(); ++r) {
    const auto steps = static_cast<std::uint32_t>(schedules[r].steps().size());
    base_.push_back(base_.back() + steps);
    rank_.insert(rank_.end(), steps, static_cast<std::int32_t>(r));
  }
  match();
}

/// The k-th send from a to b in a lane is the k-th receive at b from a in that lane.
void Steps::match() {
  struct End {
    std::int32_t from, to;
    std::uint8_t lane;
    std::uint32_t s;
    auto stream() const { return std::tuple(from, to, lane); }
    bool operator<(const End& other) const {
      return std::tuple(from, to, lane, s) < std::tuple(other.from, other.to, other.lane, other.s);
    }
  };
  std::vector<End> sends, recvs;
  for (std::uint32_t s = 0; s < count(); ++s) {
    const Step& its = step(s);
    if (its.kind == StepKind::send) sends.push_back({rank(s), its.peer, its.lane, s});
    if (its.kind == StepKind::recv) recvs.push_back({its.peer, rank(s), its.lane, s});
  }
  std::sort(sends.begin(), sends.end());
  std::sort(recvs.begin(), recvs.end());
  partner_.assign(count(), none);
  for (auto send = sends.begin(), recv = recvs.begin();
       send != sends.end() && recv != recvs.end();) {
    if (send->stream() == recv->stream()) {
      partner_[send->s] = recv->s;
      partner_[recv->s] = send->s;
      ++send;
      ++recv;
    } else if (send->stream() < recv->stream()) {
      ++send;
    } else {
      ++recv;
    }
  }
}

std::vector<std::uint32_t> Steps::order() const {
  std::vector<std::uint32_t> waits(count(), 0), begin(std::size_t{count()} + 1, 0);
  const auto for_each_wait = [&](const auto& visit) {  // (who waits, for whom)
    for (std::uint32_t s = 0; s < count(); ++s) {
      for (const std::uint32_t d : schedule(s).dependencies(index(s))) visit(s, at(rank(s), d));
      if (step(s).kind == StepKind::recv && partner(s) != none) visit(s, partner(s));
    }
  };
  for_each_wait([&](std::uint32_t s, std::uint32_t d) {
    ++waits[s];
    ++begin[d + 1];
  });
  for (std::uint32_t s = 0; s < count(); ++s) begin[s + 1] += begin[s];
  std::vector<std::uint32_t> waiting(begin.back()), next(begin.begin(), begin.end() - 1);
  for_each_wait([&](std::uint32_t s, std::uint32_t d) { waiting[next[d]++] = s; });

  std::vector<std::uint32_t> order;
  order.reserve(count());
  for (std::uint32_t s = 0; s < count(); ++s) {
    const bool lonely = step(s).kind == StepKind::recv && partner(s) == none;
    if (waits[s] == 0 && !lonely) order.push_back(s);
    if (lonely) waits[s] = none;  // never ready
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::uint32_t k = begin[order[i]]; k < begin[order[i] + 1]; ++k) {
      if (--waits[waiting[k]] == 0) order.push_back(waiting[k]);
    }
  }
  return order;
}

}  // namespace baton::timing
