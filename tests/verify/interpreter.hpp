#pragma once
/// A second opinion on schedules, which shares no code with inference and verifier: it runs them.
///
/// All ranks run together, with synchronous sends and one message at a time per lane, peer and
/// direction, in several adverse orders of delivery and completion. Hazards are looked for on each
/// rank alone, its peers being as early or late as they please: each step in turn is put off until
/// nothing else can move, so whatever need not come after it comes before it.

#include <map>
#include <numeric>
#include <random>
#include <tuple>
#include <utility>

#include "promise.hpp"

namespace interpreter {

using baton::Schedule, baton::StepKind;

using Memory = std::vector<std::vector<Value>>;  ///< per rank and address
constexpr std::size_t nobody = ~std::size_t{0};

/// A step with its regions spelt out.
struct Step {
  StepKind kind;
  std::array<std::vector<Address>, 3> operands;  // the first is written, unless by a send
  std::vector<std::size_t> after;
  std::size_t peer = nobody;
  std::size_t partner = nobody;   // the peer's step that is the other side of a message
  std::size_t previous = nobody;  // the message before it of the same lane, peer and direction

  bool message() const { return kind == StepKind::send || kind == StepKind::recv; }

  /// Calls visit(address, write, index) for each access, element by element.
  template <class Visit>
  void touch(bool backward, const Visit& visit) const {
    const std::size_t n = operands[0].size();
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t e = backward ? n - 1 - i : i;
      if (kind == StepKind::send || kind == StepKind::divide) visit(operands[0][e], false, 4 * e);
      if (kind == StepKind::copy || kind == StepKind::fold) visit(operands[1][e], false, 4 * e + 1);
      if (kind == StepKind::fold) visit(operands[2][e], false, 4 * e + 2);
      if (kind != StepKind::send) visit(operands[0][e], true, 4 * e + 3);
    }
  }
};
using Steps = std::vector<Step>;  ///< of one rank

/// Whether some order that one rank's dependencies allow lets a step read or overwrite anything but
/// what it does in program order, or touch what a message under way holds.
inline bool hazardous(const Steps& steps, std::size_t elements) {
  const std::size_t n = steps.size();
  std::vector<std::size_t> writer(elements, nobody);
  std::vector<std::vector<std::size_t>> due(n);  // the writer that each access should meet
  for (std::size_t i = 0; i < n; ++i) {
    due[i].resize(4 * steps[i].operands[0].size());
    steps[i].touch(false, [&](Address a, bool, std::size_t k) { due[i][k] = writer[a]; });
    steps[i].touch(false, [&](Address a, bool write, std::size_t) {
      if (write) writer[a] = i;
    });
  }
  for (std::size_t late = 0; late < n + 2; ++late) {  // n, n + 1: none, elements in both directions
    bool wrong = false;
    std::vector<char> done(n, 0), held(elements, 0);
    std::fill(writer.begin(), writer.end(), nobody);
    const auto run = [&](std::size_t i) {
      steps[i].touch(late % 2 == 0, [&](Address a, bool write, std::size_t k) {
        wrong = wrong || writer[a] != due[i][k] || held[a] == 'w' || (write && held[a] == 'r');
        if (write) writer[a] = i;
      });
      done[i] = 1;
    };
    for (std::size_t i = 0; i < n; ++i) {
      const auto& after = steps[i].after;
      if (!std::all_of(after.begin(), after.end(), [&](std::size_t d) { return done[d]; }))
        continue;
      if (i != late) {
        run(i);
      } else if (steps[i].message()) {
        for (const Address a : steps[i].operands[0])
          held[a] = steps[i].kind == StepKind::send ? 'r' : 'w';
      }
    }
    std::fill(held.begin(), held.end(), 0);
    for (std::size_t i = 0; i < n; ++i) {
      if (!done[i]) run(i);
    }
    if (wrong) return true;
  }
  return false;
}

/// All ranks, running together.
class Machine {
 public:
  enum class Order { forward, backward, random };

  Machine(const std::vector<Steps>& ranks, Memory memory)
      : memory(std::move(memory)), ranks_(ranks) {
    for (const Steps& steps : ranks) {
      state_.emplace_back(steps.size(), State::waiting);
      sent_.emplace_back(steps.size());
    }
  }

  /// Runs until nothing can move. Strict: sends wait for their receives, and one message at a time
  /// is under way per lane, peer and direction. A frozen rank does nothing.
  void run(Order order, bool strict, std::size_t frozen = nobody) {
    std::vector<std::pair<std::size_t, std::size_t>> all;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      for (std::size_t i = 0; i < ranks_[r].size() && r != frozen; ++i) all.emplace_back(r, i);
    }
    if (order == Order::backward) std::reverse(all.begin(), all.end());
    std::mt19937 random(1);
    for (bool moved = true; moved;) {
      moved = false;
      if (order == Order::random) std::shuffle(all.begin(), all.end(), random);
      for (const auto& [r, i] : all) moved = move(r, i, strict) || moved;
    }
  }
  bool done(std::size_t rank) const {
    return std::all_of(state_[rank].begin(), state_[rank].end(),
                       [](State state) { return state == State::done; });
  }

  Memory memory;
  bool undefined = false;  ///< something was read that nobody had written

 private:
  enum class State : std::uint8_t { waiting, posted, sent, done };

  /// Takes the next of the small steps in which a step takes place, if it can.
  bool move(std::size_t r, std::size_t i, bool strict) {
    const Step& step = ranks_[r][i];
    State& state = state_[r][i];
    const auto value = [&](int k, std::size_t e) {
      const Value& value = memory[r][step.operands[static_cast<std::size_t>(k)][e]];
      undefined = undefined || value.tree == 0;
      return value;
    };
    switch (state) {
      case State::waiting:
        for (const std::size_t d : step.after) {
          if (state_[r][d] != State::done) return false;
        }
        if (strict && step.previous != nobody && state_[r][step.previous] != State::done)
          return false;
        state = step.message() ? State::posted : State::done;
        for (std::size_t e = 0; e < step.operands[0].size(); ++e) {
          Value& to = memory[r][step.operands[0][e]];
          if (step.kind == StepKind::recv) to = {};  // poison, until it completes
          if (step.kind == StepKind::copy) to = value(1, e);
          if (step.kind == StepKind::fold) to = fold(value(1, e), value(2, e));
          if (step.kind == StepKind::divide) to = divide(value(0, e));
        }
        return true;
      case State::posted: {
        const State other = state_[step.peer][step.partner];
        if (step.kind == StepKind::send) {
          if (strict && other == State::waiting) return false;
          for (std::size_t e = 0; e < step.operands[0].size(); ++e)
            sent_[r][i].push_back(value(0, e));
          state = State::sent;
        } else {
          if (other < State::sent) return false;
          for (std::size_t e = 0; e < step.operands[0].size(); ++e) {
            memory[r][step.operands[0][e]] = sent_[step.peer][step.partner][e];
          }
          state = State::done;
        }
        return true;
      }
      case State::sent:
        state = State::done;
        return true;
      case State::done:
        break;
    }
    return false;
  }

  const std::vector<Steps>& ranks_;
  std::vector<std::vector<State>> state_;
  std::vector<std::vector<std::vector<Value>>> sent_;
};

/// Lets each step wait for what stands before its fused group, and for nothing in it. Returns
/// whether a message waited for another of its fused group.
inline bool fuse(const Schedule& schedule, Steps& steps) {
  bool waits_within = false;
  for (std::size_t i = 0, begin = 0; i < steps.size(); ++i) {
    const auto same_fused_group = [&](std::size_t k) {
      return steps[k].message() && schedule.steps()[k].round == schedule.steps()[i].round;
    };
    if (!steps[i].message() || i == 0 || !same_fused_group(i - 1)) begin = i;
    for (const std::size_t d : steps[i].after) waits_within = waits_within || d >= begin;
    steps[i].after.resize(begin);
    std::iota(steps[i].after.begin(), steps[i].after.end(), std::size_t{0});
  }
  return waits_within;
}

/// How messages run: each by itself, one at a time per lane, peer and direction, or in fused
/// groups, and matched in the order of posting.
enum class Run : std::uint8_t { steps, fused };

/// What is wrong with the schedules of all ranks; empty if they do what the collective promises.
inline std::set<Flaw> judge(std::span<const Schedule> schedules, std::span<const Problem> problems,
                            Run run = Run::steps) {
  std::set<Flaw> flaws;
  const std::size_t size = schedules.size();
  std::vector<Steps> ranks(size);
  std::vector<Promise> promises;
  Memory memory;
  std::map<std::tuple<std::size_t, std::size_t, int>, std::array<std::vector<std::size_t>, 2>>
      channels;
  for (std::size_t r = 0; r < size; ++r) {
    const Schedule& s = schedules[r];
    promises.emplace_back(problems, r);
    memory.push_back(promises[r].memory);
    const std::int64_t extents[] = {problems[r].input_extent(), problems[r].output_extent(), 0,
                                    s.header().scratch, s.header().slots};
    const bool input_is_result = problems[r].aliased() && extents[1] == 0;
    memory[r].resize(
        static_cast<std::size_t>(std::accumulate(extents, extents + 5, std::int64_t{0})));
    for (std::size_t i = 0; i < s.steps().size(); ++i) {
      const baton::Step& from = s.steps()[i];
      Step step{from.kind, {}, {s.dependencies(i).begin(), s.dependencies(i).end()}};
      for (int k = 0; k < baton::operands(from.kind); ++k) {
        for (const baton::Region& region : s.operand(from, k)) {
          const auto buffer = static_cast<int>(region.buffer);
          const std::int64_t base = std::accumulate(extents, extents + buffer, std::int64_t{0});
          if (k == 0 && buffer == 0 && from.kind != StepKind::send && !input_is_result) {
            flaws.insert(Flaw::clobbered);
          }
          for (std::int64_t e = 0; e < region.block * region.count; ++e) {
            const std::int64_t at =
                region.offset + e / region.block * region.stride + e % region.block;
            if (at < 0 || at >= extents[buffer]) flaws.insert(Flaw::bounds);
            step.operands[static_cast<std::size_t>(k)].push_back(static_cast<Address>(base + at));
          }
        }
      }
      if (step.message()) {
        step.peer = static_cast<std::size_t>(from.peer);
        const bool send = from.kind == StepKind::send;
        auto& channel = channels[{send ? r : step.peer, send ? step.peer : r,
                                  run == Run::steps ? from.lane : 0}][send ? 0 : 1];
        if (!channel.empty() && run == Run::steps) step.previous = channel.back();
        channel.push_back(i);
      }
      ranks[r].push_back(std::move(step));
    }
  }
  if (flaws.contains(Flaw::bounds)) return flaws;

  for (const auto& [way, sides] : channels) {
    const auto& [from, to, lane] = way;
    if (sides[0].size() != sides[1].size()) flaws.insert(Flaw::unmatched);
    for (std::size_t k = 0; k < std::min(sides[0].size(), sides[1].size()); ++k) {
      Step &send = ranks[from][sides[0][k]], &recv = ranks[to][sides[1][k]];
      send.partner = sides[1][k];
      recv.partner = sides[0][k];
      if (send.operands[0].size() != recv.operands[0].size()) flaws.insert(Flaw::unmatched);
      if (schedules[from].steps()[sides[0][k]].lane != schedules[to].steps()[sides[1][k]].lane) {
        flaws.insert(Flaw::unmatched);
      }
    }
  }
  for (std::size_t r = 0; r < size; ++r) {
    if (hazardous(ranks[r], memory[r].size())) flaws.insert(Flaw::hazard);
  }
  if (flaws.contains(Flaw::unmatched)) return flaws;
  const std::vector<Steps> by_dependencies = ranks;
  for (std::size_t r = 0; r < size && run == Run::fused; ++r) {
    if (fuse(schedules[r], ranks[r])) flaws.insert(Flaw::fused_group);
  }

  std::vector<Machine> ends;
  for (const auto order :
       {Machine::Order::forward, Machine::Order::backward, Machine::Order::random}) {
    ends.emplace_back(ranks, memory).run(order, true);
    for (std::size_t r = 0; r < size; ++r) {
      if (!ends.back().done(r)) flaws.insert(Flaw::deadlock);
    }
  }
  for (const Flaw flaw : {Flaw::deadlock, Flaw::hazard, Flaw::fused_group}) {
    if (flaws.contains(flaw)) return flaws;
  }

  for (std::size_t late = 0; problems[0].collective == Collective::barrier && late < size; ++late) {
    Machine machine(by_dependencies, memory);  // no fused group may stand in for one
    machine.run(Machine::Order::forward, false, late);
    for (std::size_t r = 0; r < size; ++r) {
      if (r != late && machine.done(r)) flaws.insert(Flaw::contribution);
    }
  }
  for (const Machine& end : ends) {
    if (end.undefined) return flaws.insert(Flaw::undefined), flaws;
    std::vector<std::uint64_t> agreed;
    for (std::size_t r = 0; r < size; ++r) {
      const std::vector<Value> found(
          end.memory[r].begin(),
          end.memory[r].begin() + static_cast<std::ptrdiff_t>(promises[r].memory.size()));
      flaws.merge(promises[r].judge(problems[r], found, agreed));
    }
  }
  return flaws;
}

}  // namespace interpreter
