#include "script.hpp"

#include <map>
#include <tuple>
#include <utility>

namespace baton {
namespace {

constexpr std::size_t most_steps = 48;
static_assert(most_steps <= 64, "a run keeps steps as bits of a word");

class Writer {
 public:
  explicit Writer(const Schedule& schedule)
      : schedule_(schedule),
        posted_(schedule.steps().size()),
        awaited_(posted_.size()),
        turn_(posted_.size()) {}

  std::vector<ScriptLine> write() && {
    post_first(StepKind::recv);
    post_first(StepKind::send);
    const auto count = static_cast<std::uint32_t>(posted_.size());
    for (std::uint32_t i = 0; i < count; ++i) {
      if (posted_[i]) continue;
      for (const std::uint32_t d : schedule_.dependencies(i)) await(d);
      if (step(i).message()) {
        post(i);
      } else {
        add(ScriptLine::Act::local, i);
      }
    }
    for (std::uint32_t i = 0; i < count; ++i) await(i);
    return std::move(script_);
  }

 private:
  const Step& step(std::uint32_t i) const { return schedule_.steps()[i]; }

  void add(ScriptLine::Act act, std::uint32_t i) {
    script_.push_back({act, static_cast<std::uint8_t>(i), turn_[i]});
  }
  /// Messages of a stream are posted in program order: one that waits holds up those behind it.
  void post_first(StepKind kind) {
    std::map<std::tuple<int, int>, bool> held;
    for (std::uint32_t i = 0; i < posted_.size(); ++i) {
      if (step(i).kind != kind) continue;
      bool& stream = held[{step(i).lane, step(i).peer}];
      stream = stream || !schedule_.dependencies(i).empty();
      if (!stream) post(i);
    }
  }
  void post(std::uint32_t i) {
    const Step& s = step(i);
    turn_[i] = turns_[{s.lane, s.peer, s.kind == StepKind::send}]++;
    posted_[i] = true;
    add(ScriptLine::Act::post, i);
  }
  void await(std::uint32_t i) {
    if (!step(i).message() || awaited_[i]) return;
    awaited_[i] = true;
    add(ScriptLine::Act::await, i);
  }

  const Schedule& schedule_;
  std::vector<bool> posted_, awaited_;
  std::vector<std::uint8_t> turn_;
  std::map<std::tuple<int, int, bool>, std::uint8_t> turns_;  // messages of each stream so far
  std::vector<ScriptLine> script_;
};

}  // namespace

std::vector<ScriptLine> script_of(const Schedule& schedule) {
  if (schedule.steps().size() > most_steps) return {};
  return Writer(schedule).write();
}

}  // namespace baton
