#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "baton/schedule/text.hpp"

namespace baton {
namespace {

std::string_view name(Buffer buffer) {
  switch (buffer) {
    case Buffer::input:
      return "input";
    case Buffer::output:
      return "output";
    case Buffer::work:
      return "work";
    case Buffer::scratch:
      return "scratch";
    case Buffer::slot:
      return "slot";
  }
  return "?";
}

/// The name as it is, or in quotation marks where it would not be read back as one word.
std::string quoted(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (!name.empty() && std::all_of(name.begin(), name.end(), plain)) return std::string(name);
  std::string text = "\"";
  for (const char c : name) {
    if (c == '\n') {
      text += "\\n";
    } else {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
  }
  return text + '"';
}

std::string print(std::span<const Region> regions) {
  std::string text;
  for (const Region& region : regions) text += (text.empty() ? "" : ", ") + print(region);
  return text;
}

/// The text after the kind of a step that is no message.
std::string equation(const Schedule& schedule, const Step& step) {
  if (step.kind == StepKind::compute) {
    const Computation& its = schedule.computation(step);
    std::string text = fmt::format("{} {} {}", its.ns, baton::name(its.kind), quoted(its.name));
    if (!its.advances) text += " alone";
    if (step.parts[1] > 0) text += " reads " + print(schedule.operand(step, 1));
    if (step.parts[0] > 0) text += " writes " + print(schedule.operand(step, 0));
    return text;
  }
  std::string text = print(schedule.operand(step, 0));
  if (operands(step.kind) > 1) text += " = " + print(schedule.operand(step, 1));
  if (operands(step.kind) > 2) text += " + " + print(schedule.operand(step, 2));
  return text;
}

}  // namespace

std::string print(const Region& region) {
  if (region.contiguous()) {
    return fmt::format("{}[{}:{}]", name(region.buffer), region.offset, region.block);
  }
  return fmt::format("{}[{}:{} x{} /{}]", name(region.buffer), region.offset, region.block,
                     region.count, region.stride);
}

std::string print(const Schedule& schedule, std::size_t index) {
  const Step& step = schedule.steps()[index];
  if (step.message()) {
    return fmt::format("{} {} {} {}", name(step.kind), print(schedule.operand(step, 0)),
                       step.kind == StepKind::send ? "to" : "from", step.peer);
  }
  return fmt::format("{} {}", name(step.kind), equation(schedule, step));
}

std::string print(const Schedule& schedule) {
  const Schedule::Header& header = schedule.header();
  std::string text;
  const auto line = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
    text += '\n';
  };
  line("baton-schedule 1");
  line("collective {}", name(header.collective));
  if (!header.algorithm.empty()) line("algorithm {}", quoted(header.algorithm));
  line("size {}", header.size);
  if (rooted(header.collective) || header.root != 0) line("root {}", header.root);
  line("input {}", header.input);
  line("output {}", header.output);
  line("scratch {}", header.scratch);
  line("slots {}", header.slots);
  if (header.in_place) line("in_place");
  line("dependencies listed");
  line("rank {}", header.rank);

  int round = 0;
  for (std::size_t i = 0; i < schedule.steps().size(); ++i) {
    const Step& step = schedule.steps()[i];
    if (step.round != round || i == 0) line("round {}", round = step.round);
    std::string suffix = step.lane == 0 ? "" : fmt::format(" lane {}", step.lane);
    if (!schedule.dependencies(i).empty()) suffix += " after";
    for (const std::uint32_t earlier : schedule.dependencies(i))
      suffix += fmt::format(" {}", earlier);
    if (step.message()) {
      line("{:4}: {} {} {}{}", i, name(step.kind), step.peer, print(schedule.operand(step, 0)),
           suffix);
    } else {
      line("{:4}: {} {}{}", i, name(step.kind), equation(schedule, step), suffix);
    }
  }
  return text;
}

}  // namespace baton
