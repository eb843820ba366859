#include "walk.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "baton/error.hpp"
#include "baton/schedule/text.hpp"

namespace baton::explaining {
namespace {

constexpr std::int64_t most_elements = 1 << 20;  // of all buffers of one rank

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::invalid_argument, fmt::format(format, std::forward<Args>(args)...));
}

template <class Visit>
void for_each_element(std::span<const Region> regions, const Visit& visit) {
  for (const Region& region : regions) {
    for (std::int64_t block = 0; block < region.count; ++block) {
      for (std::int64_t i = 0; i < region.block; ++i) {
        visit(region.buffer, static_cast<std::size_t>(region.offset + block * region.stride + i));
      }
    }
  }
}

/// Elements of each buffer, by Buffer.
std::array<std::int64_t, 5> extents(const Schedule::Header& h) {
  return {h.input, h.output, 0, h.scratch, h.slots};
}

void check(const Schedule& schedule) {
  const Schedule::Header& h = schedule.header();
  if (h.collective == Collective::program || !schedule.computations().empty())
    refuse("a walk-through expects a collective, found a program of computations");
  const auto elements_of = extents(h);
  for (const std::int64_t elements : elements_of) {
    if (elements < 0 || elements > most_elements) {
      refuse("a walk-through expects buffers of at most {} elements, found {}", most_elements,
             elements);
    }
  }
  for (std::size_t i = 0; i < schedule.steps().size(); ++i) {
    const Step& step = schedule.steps()[i];
    for (int k = 0; k < operands(step.kind); ++k) {
      for (const Region& region : schedule.operand(step, k)) {
        const std::int64_t elements = elements_of[static_cast<std::size_t>(region.buffer)];
        if (region.end() <= elements) continue;
        refuse("rank {}, step {}: expected a region within {} elements, found {}", h.rank, i,
               elements, print(region));
      }
    }
  }
}

}  // namespace

Walk::Walk(std::span<const Schedule> schedules, OpKind op)
    : schedules_(schedules), op_(op), ranks_(schedules.size()) {
  if (op == OpKind::user) refuse("a walk-through expects a built-in operation, found a user's");
  if (schedules.empty()) refuse("a walk-through expects the schedules of all ranks, found none");
  for (std::size_t r = 0; r < schedules.size(); ++r) {
    const Schedule& schedule = schedules[r];
    if (schedule.size() != static_cast<int>(schedules.size()) ||
        schedule.rank() != static_cast<int>(r) ||
        schedule.collective() != schedules[0].collective()) {
      refuse(
          "a walk-through expects one schedule of {} per rank, found rank {} of {} of {} at place "
          "{} of {}",
          name(schedules[0].collective()), schedule.rank(), schedule.size(),
          name(schedule.collective()), r, schedules.size());
    }
    check(schedule);
    const auto elements = extents(schedule.header());
    for (std::size_t b = 0; b < elements.size(); ++b)
      ranks_[r].buffers[b].resize(static_cast<std::size_t>(elements[b]));
    ranks_[r].states.resize(schedule.steps().size());
    ranks_[r].message.resize(schedule.steps().size());
  }
  match();
}

void Walk::match() {
  for (const Schedule& schedule : schedules_) matching_.add(schedule);
  if (const auto wrong = matching_.match()) refuse("{}", *wrong);
  for (const Schedule& to : schedules_) {
    for (std::size_t i = 0; i < to.steps().size(); ++i) {
      if (to.steps()[i].kind != StepKind::recv) continue;
      const int peer = to.steps()[i].peer;
      const Schedule& from = schedules_[static_cast<std::size_t>(peer)];
      const auto sent = from.length(from.steps()[sender(to.rank(), i)]);
      if (to.length(to.steps()[i]) == sent) continue;
      refuse("rank {}, step {}: expected {} elements from {}, found {}", to.rank(), i,
             to.length(to.steps()[i]), peer, sent);
    }
  }
}

std::size_t Walk::sender(int rank, std::size_t step) const {
  const int peer = schedules_[static_cast<std::size_t>(rank)].steps()[step].peer;
  return matching_.partner(matching_.first(rank) + static_cast<std::uint32_t>(step)) -
         matching_.first(peer);
}

std::vector<Value>& Walk::buffer(int rank, Buffer buffer) {
  return ranks_[static_cast<std::size_t>(rank)].buffers[static_cast<std::size_t>(buffer)];
}

void Walk::run(int rank, std::size_t step, const std::function<void(int, std::size_t)>& visit) {
  // Depth first; a step stays on the stack until all its dependencies have run.
  std::vector<std::pair<int, std::size_t>> stack{{rank, step}};
  while (!stack.empty()) {
    const int r = stack.back().first;
    const std::size_t i = stack.back().second;
    Rank& at = ranks_[static_cast<std::size_t>(r)];
    if (at.states[i] == State::done) {
      stack.pop_back();
      continue;
    }
    const std::size_t depth = stack.size();
    const auto need = [&](int other, std::size_t j) {
      const State state = ranks_[static_cast<std::size_t>(other)].states[j];
      if (state == State::entered) {
        refuse(
            "expected an order in which all steps can run, found that step {} of rank {} waits "
            "for step {} of rank {} and that one for it",
            i, r, j, other);
      }
      if (state == State::waiting) stack.emplace_back(other, j);
    };
    const Schedule& schedule = schedules_[static_cast<std::size_t>(r)];
    const Step& now = schedule.steps()[i];
    at.states[i] = State::entered;
    if (now.kind == StepKind::recv) need(now.peer, sender(r, i));
    const auto dependencies = schedule.dependencies(i);
    for (auto d = dependencies.rbegin(); d != dependencies.rend(); ++d) need(r, *d);
    if (stack.size() > depth) continue;
    execute(r, i);
    at.states[i] = State::done;
    stack.pop_back();
    visit(r, i);
  }
}

std::vector<Value> Walk::read(int rank, std::size_t step, int operand) {
  const Schedule& schedule = schedules_[static_cast<std::size_t>(rank)];
  std::vector<Value> values;
  for_each_element(schedule.operand(schedule.steps()[step], operand),
                   [&](Buffer b, std::size_t i) { values.push_back(buffer(rank, b)[i]); });
  return values;
}

void Walk::write(int rank, std::size_t step, const std::vector<Value>& values) {
  const Schedule& schedule = schedules_[static_cast<std::size_t>(rank)];
  std::size_t next = 0;
  for_each_element(schedule.operand(schedule.steps()[step], 0),
                   [&](Buffer b, std::size_t i) { buffer(rank, b)[i] = values[next++]; });
}

void Walk::execute(int rank, std::size_t index) {
  Rank& at = ranks_[static_cast<std::size_t>(rank)];
  const Step& step = schedules_[static_cast<std::size_t>(rank)].steps()[index];
  switch (step.kind) {
    case StepKind::send:
      at.message[index] = read(rank, index, 0);
      break;
    case StepKind::recv:
      write(rank, index, ranks_[static_cast<std::size_t>(step.peer)].message[sender(rank, index)]);
      break;
    case StepKind::copy:
      write(rank, index, read(rank, index, 1));
      break;
    case StepKind::fold: {
      std::vector<Value> left = read(rank, index, 1);
      const std::vector<Value> right = read(rank, index, 2);
      std::transform(left.begin(), left.end(), right.begin(), left.begin(),
                     [&](Value a, Value b) { return folded(a, b); });
      write(rank, index, left);
      break;
    }
    case StepKind::compute:  // refused by check()
      break;
    case StepKind::divide: {
      std::vector<Value> values = read(rank, index, 0);
      for (Value& value : values) {
        if (value) value = *value / static_cast<double>(schedules_.size());
      }
      write(rank, index, values);
      break;
    }
  }
}

Value Walk::folded(Value left, Value right) const {
  if (!left || !right) return std::nullopt;
  const auto a = static_cast<std::int64_t>(*left), b = static_cast<std::int64_t>(*right);
  switch (op_) {
    case OpKind::sum:
    case OpKind::avg:
      return *left + *right;
    case OpKind::prod:
      return *left * *right;
    case OpKind::min:
      return std::min(*left, *right);
    case OpKind::max:
      return std::max(*left, *right);
    case OpKind::logical_and:
      return static_cast<double>(*left != 0 && *right != 0);
    case OpKind::logical_or:
      return static_cast<double>(*left != 0 || *right != 0);
    case OpKind::logical_xor:
      return static_cast<double>((*left != 0) != (*right != 0));
    case OpKind::bit_and:
      return static_cast<double>(a & b);
    case OpKind::bit_or:
      return static_cast<double>(a | b);
    case OpKind::bit_xor:
      return static_cast<double>(a ^ b);
    case OpKind::user:
      break;
  }
  return std::nullopt;
}

}  // namespace baton::explaining
