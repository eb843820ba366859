#include "script.hpp"

#include <map>
#include <tuple>
#include <utility>

namespace baton::execute {
namespace {

constexpr std::size_t most_steps = 48;
static_assert(most_steps <= 64, "a run keeps steps as bits of a word");

class Writer {
 public:
  explicit Writer(const Schedule& schedule)
      : schedule_(schedule),
        posted_(schedule.steps().size()),
        turn_(posted_.size()),
        needs_(posted_.size()),
        alone_(posted_.size()) {
    for (std::uint32_t i = 0; i < count(); ++i) {
      for (const std::uint32_t d : schedule_.dependencies(i)) needs_[i] |= needs_[d] | bit(d);
    }
    for (std::uint32_t i = 0; i < count(); ++i) alone_[i] = alone(i);
  }

  std::vector<ScriptLine> write() && {
    post_what_can_be(StepKind::recv);
    post_what_can_be(StepKind::send);
    for (std::uint32_t i = 0; i < count(); ++i) do_step(i);
    for (std::uint32_t i = 0; i < count(); ++i) await(i);
    return std::move(script_);
  }

 private:
  static std::uint64_t bit(std::uint32_t i) { return std::uint64_t{1} << i; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(posted_.size()); }
  const Step& step(std::uint32_t i) const { return schedule_.steps()[i]; }
  /// Whether step i depends on step j, even indirectly.
  bool needs(std::uint32_t i, std::uint32_t j) const { return (needs_[i] & bit(j)) != 0; }

  /// Whether it is safe to wait for this receive alone. That holds if, after all steps independent
  /// of it, the rank has nothing else to wait for than sends that nothing else needs.
  bool alone(std::uint32_t i) const {
    if (step(i).kind != StepKind::recv) return false;
    for (std::uint32_t j = 0; j < count(); ++j) {
      if (j == i || needs(j, i) || needs(i, j)) continue;
      if (step(j).kind == StepKind::recv) return false;
      for (const std::uint32_t d : schedule_.dependencies(j)) {
        if (step(d).kind == StepKind::send && !needs(i, d)) return false;
      }
    }
    return true;
  }

  /// The last send posted before this receive, if all messages have been posted and nothing was
  /// awaited in between; otherwise none.
  std::uint8_t company_of(std::uint32_t i) const {
    for (std::uint32_t j = 0; j < count(); ++j) {
      if (step(j).message() && !posted_[j]) return ScriptLine::none;
    }
    for (auto line = script_.rbegin(); line != script_.rend(); ++line) {
      if (line->act == ScriptLine::Act::local || line->step == i) continue;
      const bool sends =
          line->act == ScriptLine::Act::post && step(line->step).kind == StepKind::send;
      return sends ? line->step : ScriptLine::none;
    }
    return ScriptLine::none;
  }

  void add(ScriptLine::Act act, std::uint32_t i) {
    script_.push_back({act, static_cast<std::uint8_t>(i), turn_[i]});
  }
  void do_step(std::uint32_t i) {
    if (posted_[i]) return;
    for (const std::uint32_t d : schedule_.dependencies(i)) await(d);
    if (alone_[i]) {
      for (std::uint32_t j = 0; j < count(); ++j) {
        if (!step(j).message() && !needs(j, i)) do_step(j);
      }
      post_what_can_be(StepKind::send);
      post(i, ScriptLine::Act::receive);
      script_.back().with = company_of(i);
      complete_ |= bit(i);
    } else if (step(i).message()) {
      post(i);
    } else {
      posted_[i] = true;
      complete_ |= bit(i);
      add(ScriptLine::Act::local, i);
    }
  }
  /// Posts in program order within each channel: a message that must wait holds up those behind it.
  void post_what_can_be(StepKind kind) {
    std::map<std::tuple<int, int>, bool> held;
    for (std::uint32_t i = 0; i < count(); ++i) {
      if (step(i).kind != kind || posted_[i]) continue;
      bool& channel = held[{step(i).lane, step(i).peer}];
      channel = channel || alone_[i] || (needs_[i] & ~complete_) != 0;
      if (!channel) post(i);
    }
  }
  void post(std::uint32_t i, ScriptLine::Act act = ScriptLine::Act::post) {
    const Step& s = step(i);
    turn_[i] = turns_[{s.lane, s.peer, s.kind == StepKind::send}]++;
    posted_[i] = true;
    add(act, i);
  }
  void await(std::uint32_t i) {
    if ((complete_ & bit(i)) != 0) return;
    complete_ |= bit(i);
    add(ScriptLine::Act::await, i);
  }

  const Schedule& schedule_;
  std::vector<bool> posted_;  // messages posted and local steps done
  std::vector<std::uint8_t> turn_;
  std::vector<std::uint64_t> needs_;  // all steps that each step depends on, as bits
  std::vector<bool> alone_;
  std::uint64_t complete_ = 0;
  std::map<std::tuple<int, int, bool>, std::uint8_t> turns_;  // messages of each channel so far
  std::vector<ScriptLine> script_;
};

}  // namespace

std::vector<ScriptLine> script_of(const Schedule& schedule) {
  if (schedule.steps().size() > most_steps) return {};
  return Writer(schedule).write();
}

}  // namespace baton::execute
