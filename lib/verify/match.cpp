#include <fmt/core.h>

#include <algorithm>

#include "findings.hpp"
#include "program.hpp"

namespace baton::proving {

// The verifier matches messages with its own code on purpose: if lib/schedule paired them wrongly,
// all other readers would be wrong together.
//
// The k-th send from a to b in a lane matches the k-th receive at b from a in that lane; or, in
// order of issue, the k-th in all lanes. Sends are collected per destination. A destination's
// receives take them from one queue per (source, lane), or per source.
bool Program::match(By by, Findings& findings) {
  const auto ranks = static_cast<std::uint32_t>(size());
  std::uint32_t lanes = 1;
  bucket_.assign(ranks + 1, 0);
  for (const Schedule& schedule : schedules_) {
    for (const Step& step : schedule.steps()) {
      if (!step.message()) continue;
      if (by == By::lane) lanes = std::max<std::uint32_t>(lanes, step.lane + 1u);
      if (step.kind == StepKind::send) ++bucket_[static_cast<std::size_t>(step.peer) + 1];
    }
  }
  for (std::uint32_t b = 0; b < ranks; ++b) bucket_[b + 1] += bucket_[b];
  sends_.resize(bucket_[ranks]);
  next_.assign(step_count(), none);
  for (std::uint32_t s = 0; s < step_count(); ++s) {
    if (steps_[s].kind != StepKind::send) continue;
    const Step& step = schedules_[steps_[s].rank].steps()[s - base_[steps_[s].rank]];
    sends_[bucket_[static_cast<std::size_t>(step.peer)]++] = s;
  }
  // bucket_[b] is now the end of b's bucket.

  bool matched = true;
  const auto queue_of = [&](std::uint32_t source, std::uint32_t s) {
    return std::size_t{source} * lanes + (by == By::lane ? steps_[s].lane : 0);
  };
  const auto lonely = [&](std::uint32_t s, std::string_view what) {
    matched = false;
    findings.add(Flaw::unmatched, static_cast<int>(steps_[s].rank), step_in_rank(s),
                 [&] { return fmt::format("{} has no {} on its peer", phrase(s), what); });
  };
  head_.assign(std::size_t{ranks} * lanes, none);
  tail_.assign(std::size_t{ranks} * lanes, none);
  for (std::uint32_t b = 0; b < ranks; ++b) {
    const std::uint32_t begin = b == 0 ? 0 : bucket_[b - 1], end = bucket_[b];
    for (std::uint32_t i = begin; i < end; ++i) {
      const std::uint32_t s = sends_[i];
      const std::size_t queue = queue_of(steps_[s].rank, s);
      (head_[queue] == none ? head_[queue] : next_[tail_[queue]]) = s;
      tail_[queue] = s;
    }
    for (std::uint32_t s = base_[b]; s < base_[b + 1]; ++s) {
      if (steps_[s].kind != StepKind::recv) continue;
      const Step& step = schedules_[b].steps()[s - base_[b]];
      std::uint32_t& front = head_[queue_of(static_cast<std::uint32_t>(step.peer), s)];
      if (front == none) {
        lonely(s, "send");
        continue;
      }
      const std::uint32_t send = front;
      front = next_[send];
      steps_[s].partner = send;
      steps_[send].partner = s;
      if (steps_[s].lane != steps_[send].lane) {
        matched = false;
        findings.add(Flaw::unmatched, static_cast<int>(b), step_in_rank(s), [&] {
          return fmt::format(
              "{} of lane {} meets {} of lane {}: the two ranks post their messages in different "
              "orders",
              phrase(s), steps_[s].lane, phrase(send), steps_[send].lane);
        });
      } else if (steps_[s].length != steps_[send].length) {
        matched = false;
        findings.add(Flaw::unmatched, static_cast<int>(b), step_in_rank(s), [&] {
          return fmt::format("{} expects {} elements, but {} sends {}", phrase(s),
                             steps_[s].length * unit_, phrase(send), steps_[send].length * unit_);
        });
      }
    }
    for (std::uint32_t i = begin; i < end; ++i) {
      const std::uint32_t s = sends_[i];
      head_[queue_of(steps_[s].rank, s)] = none;
      if (steps_[s].partner == none) lonely(s, "recv");
    }
  }
  return matched;
}

}  // namespace baton::proving
