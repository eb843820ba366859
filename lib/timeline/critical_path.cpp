#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "baton/timeline.hpp"
#include "steps.hpp"

namespace baton {
namespace {

constexpr std::size_t most_window = 16;  // how far back to look in a channel, in messages

/// The end of the time in which an event occupies its rank.
std::int64_t busy_until(const Event& event) { return event.message() ? event.start : event.end; }
/// The begin of that time.
std::int64_t busy_from(const Event& event) { return event.message() ? event.posted : event.start; }

/// Walks from the last event back to the first, by two questions.
///
/// Why did an event end at its time? Because of its other end, or because of its begin. Why did it
/// begin then? Because of the latest among its dependencies, the earlier messages of its channel,
/// and the earlier work of its rank.
class Walker {
 public:
  explicit Walker(const Timeline& timeline)
      : timeline_(timeline), own_ranks_(timeline), other_(timeline.events.size(), Event::none) {
    for (const TimedMessage& message : messages_of(timeline)) {
      other_[message.send] = message.recv;
      other_[message.recv] = message.send;
    }
    for (std::uint32_t e = 0; e < timeline.events.size(); ++e) {
      steps_.push_back(e);
      ranks_[event(e).rank].push_back(e);
    }
    std::sort(steps_.begin(), steps_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return key(event(a)) < key(event(b)); });
  }

  std::vector<std::uint32_t> path() {
    std::vector<std::uint32_t> path;
    if (timeline_.events.empty()) return path;
    std::uint32_t last = 0;
    for (std::uint32_t e = 0; e < timeline_.events.size(); ++e) {
      const bool receives = event(e).kind == StepKind::recv;
      if (event(e).end > event(last).end || (event(e).end == event(last).end && receives)) last = e;
    }
    std::vector<std::uint8_t> asked(timeline_.events.size(), 0);  // the questions asked
    for (std::optional<Question> next = Question{last, true}; next;) {
      const auto mark = static_cast<std::uint8_t>(next->end ? 2 : 1);
      if ((asked[next->event] & mark) != 0) break;  // times that contradict each other
      asked[next->event] |= mark;
      if (path.empty() || path.back() != next->event) path.push_back(next->event);
      next = next->end ? why_end(next->event) : why_begin(next->event);
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

 private:
  struct Question {
    std::uint32_t event;
    bool end;  // asks for the reason of its end; otherwise of its begin
  };

  const Event& event(std::uint32_t e) const { return timeline_.events[e]; }
  static std::tuple<std::uint32_t, std::int32_t, std::uint32_t> key(const Event& e) {
    return {e.operation, e.rank, e.step};
  }

  Question why_end(std::uint32_t e) const {
    const Event& its = event(e);
    const std::uint32_t o = other_[e];
    if (o == Event::none) return {e, false};
    const Event& other = event(o);
    if (its.kind == StepKind::recv) {
      if (other.posted >= its.posted) return {o, false};
      // Posted after the send: the message was already under way, or waited for this post.
      const bool arrived_before = its.end <= its.start;
      const bool under_way = other.end <= its.posted;
      return arrived_before || !under_way ? Question{e, false} : Question{o, false};
    }
    const bool waited = its.end > its.start && other.posted > its.posted && other.posted <= its.end;
    return waited ? Question{o, false} : Question{e, false};
  }

  std::optional<Question> why_begin(std::uint32_t e) {
    const Event& its = event(e);
    const std::int64_t begin = busy_from(its);
    std::optional<Question> best;
    std::int64_t latest = 0;
    const auto consider = [&](std::uint32_t candidate, std::int64_t time, bool end) {
      if (time > begin || (best && time <= latest)) return;
      best = Question{candidate, end};
      latest = time;
    };
    if (const Schedule* schedule = schedule_of(its)) {
      for (const std::uint32_t d : schedule->dependencies(its.step)) {
        if (const auto before = find(its, d)) consider(*before, event(*before).end, true);
      }
      if (its.message()) {
        std::size_t seen = 0;
        for (std::uint32_t i = its.step; i-- > 0 && seen < most_window;) {
          const Step& step = schedule->steps()[i];
          if (step.kind != its.kind || step.lane != its.lane || !same_peer(its, step)) continue;
          ++seen;
          if (const auto before = find(its, i)) consider(*before, event(*before).end, true);
        }
      }
    }
    if (const auto before = at_work_before(e)) {
      consider(*before, busy_until(event(*before)), !event(*before).message());
    }
    return best;
  }

  bool same_peer(const Event& its, const Step& step) const {
    const auto& ranks = timeline_.operations[its.operation].ranks;
    if (ranks.empty()) return step.peer == its.peer;
    const auto peer = static_cast<std::size_t>(step.peer);
    return peer < ranks.size() && ranks[peer] == its.peer;
  }
  const Schedule* schedule_of(const Event& its) const {
    const int rank = own_ranks_.of(its);
    if (rank < 0) return nullptr;
    return &(*timeline_.operations[its.operation].schedules)[static_cast<std::size_t>(rank)];
  }

  std::optional<std::uint32_t> find(const Event& its, std::uint32_t step) const {
    const std::tuple wanted(its.operation, its.rank, step);
    const auto at =
        std::lower_bound(steps_.begin(), steps_.end(), wanted,
                         [&](std::uint32_t e, const auto& value) { return key(event(e)) < value; });
    if (at == steps_.end() || key(event(*at)) != wanted) return std::nullopt;
    return *at;
  }

  /// The last work of the rank before the event began.
  std::optional<std::uint32_t> at_work_before(std::uint32_t e) {
    const Event& its = event(e);
    auto& order = ranks_[its.rank];
    const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple(busy_from(event(a)), busy_until(event(a)), a) <
             std::tuple(busy_from(event(b)), busy_until(event(b)), b);
    };
    if (sorted_.insert(its.rank).second) std::sort(order.begin(), order.end(), earlier);
    auto at = std::lower_bound(order.begin(), order.end(), e, earlier);
    if (at == order.begin()) return std::nullopt;
    return *--at;
  }

  const Timeline& timeline_;
  timing::OwnRanks own_ranks_;
  std::vector<std::uint32_t> other_;                          // the other end of a message
  std::vector<std::uint32_t> steps_;                          // by operation, rank and step
  std::map<std::int32_t, std::vector<std::uint32_t>> ranks_;  // of each rank; by time once sorted
  std::set<std::int32_t> sorted_;
};

}  // namespace

std::vector<std::uint32_t> critical_path(const Timeline& timeline) {
  return Walker(timeline).path();
}

}  // namespace baton
