#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "baton/error.hpp"
#include "baton/own_algorithms.hpp"
#include "baton/schedule/passes.hpp"
#include "baton/verify.hpp"
#include "slots.hpp"

namespace baton {
namespace {

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

/// Whether the rank's output stays as it is.
bool no_result(const Problem& p) { return p.collective == Collective::exscan && p.rank == 0; }

/// Appends one rank's steps for a problem that differs from the schedule's own in count, in place
/// or average.
class Adapted {
 public:
  Adapted(const Schedule& schedule, const Problem& own, const Problem& problem)
      : schedule_(schedule), problem_(problem), factor_(problem.count / own.count) {
    header_ = schedule.header();
    header_.in_place = problem.aliased();
    header_.input = problem.input_extent();
    header_.output = problem.output_extent();
    header_.scratch *= factor_;
    header_.slots *= factor_;
    if (problem.count == 0) return;
    const bool was = own.aliased(), is = problem.aliased();
    if (is && !was) {
      to_aliased();
    } else if (was && !is) {
      from_aliased();
    }
    append_steps();
    if (result_from_) append_last(StepKind::copy, {*result_to_, *result_from_});
    if (problem.average && !own.average) divide_result();
  }

  Schedule schedule() {
    return Schedule(header_, std::move(steps_), std::move(regions_), std::move(dependencies_));
  }

 private:
  std::int64_t own_block() const { return problem_.rank * problem_.count; }
  Region new_scratch(std::int64_t elements) {
    header_.scratch += elements;
    return contiguous(Buffer::scratch, header_.scratch - elements, elements);
  }
  /// Where a buffer of the schedule lies.
  struct Home {
    Buffer buffer;
    std::int64_t offset = 0;
  };

  /// The input is read from a copy; results go to where they are expected.
  void to_aliased() {
    const Collective collective = problem_.collective;
    const Buffer shared = scattering(collective) ? Buffer::input : Buffer::output;
    const std::int64_t first = gathering(collective) ? own_block() : 0;
    const std::int64_t elements =
        gathering(collective) ? problem_.count : std::max(header_.input, header_.output);
    const Region copy = new_scratch(elements);
    append_first(copy, contiguous(shared, first, elements));
    input_ = {Buffer::scratch, copy.offset};
    if (scattering(collective)) output_ = {Buffer::input, own_block()};
  }
  /// The one buffer is the output, or, where that is a part of the input or must stay as it is,
  /// scratch.
  void from_aliased() {
    const Region input = contiguous(Buffer::input, 0, header_.input);
    if (scattering(problem_.collective)) {
      const Region copy = new_scratch(header_.input);
      append_first(copy, input);
      input_ = {Buffer::scratch, copy.offset};
      result_from_ =
          contiguous(Buffer::scratch, copy.offset + own_block(), problem_.output_extent());
      result_to_ = contiguous(Buffer::output, 0, problem_.output_extent());
    } else if (no_result(problem_)) {
      const Region copy = new_scratch(header_.input);
      append_first(copy, input);
      output_ = {Buffer::scratch, copy.offset};
    } else {
      const std::int64_t first = gathering(problem_.collective) ? own_block() : 0;
      append_first(contiguous(Buffer::output, first, header_.input), input);
    }
  }

  void append_steps() {
    const auto shift = static_cast<std::uint32_t>(steps_.size());
    for (std::size_t i = 0; i < schedule_.steps().size(); ++i) {
      Step step = schedule_.steps()[i];
      const auto first = static_cast<std::uint32_t>(regions_.size());
      for (int k = 0; k < operands(step.kind); ++k) {
        for (Region region : schedule_.operand(step, k)) regions_.push_back(placed(region));
      }
      step.first = first;
      for (const std::uint32_t d : schedule_.dependencies(i)) {
        dependencies_.list.push_back(d + shift);
      }
      // Behind the copy stands whatever stands behind nothing else.
      if (shift > 0 && schedule_.dependencies(i).empty()) dependencies_.list.push_back(0);
      dependencies_.end_step();
      steps_.push_back(step);
    }
  }
  Region placed(Region region) const {
    region.offset *= factor_;
    region.block *= factor_;
    region.stride *= factor_;
    const Home* home = region.buffer == Buffer::input
                           ? &input_
                           : (region.buffer == Buffer::output ? &output_ : nullptr);
    if (home) {
      region.buffer = home->buffer;
      region.offset += home->offset;
    }
    return region;
  }

  void append_first(const Region& to, const Region& from) {
    append(StepKind::copy, {to, from});
    dependencies_.end_step();
  }
  /// A step behind all others.
  void append_last(StepKind kind, const Regions& operands) {
    for (std::uint32_t i = 0; i < steps_.size(); ++i) dependencies_.list.push_back(i);
    dependencies_.end_step();
    append(kind, operands);
  }
  void append(StepKind kind, const Regions& operands) {
    Step step;
    step.kind = kind;
    step.round = steps_.empty() ? 0 : steps_.back().round;
    step.first = static_cast<std::uint32_t>(regions_.size());
    for (std::size_t k = 0; k < operands.size(); ++k) step.parts[k] = 1;
    regions_.insert(regions_.end(), operands.begin(), operands.end());
    steps_.push_back(step);
  }

  void divide_result() {
    const bool within = problem_.aliased() && scattering(problem_.collective);
    const std::int64_t elements = within ? problem_.count : header_.output;
    if (elements == 0 || no_result(problem_)) return;
    append_last(StepKind::divide, {within ? contiguous(Buffer::input, own_block(), elements)
                                          : contiguous(Buffer::output, 0, elements)});
  }

  const Schedule& schedule_;
  const Problem& problem_;
  std::int64_t factor_;
  Home input_{Buffer::input}, output_{Buffer::output};
  std::optional<Region> result_to_, result_from_;  // of the copy at the end

  Schedule::Header header_;
  std::vector<Step> steps_;
  std::vector<Region> regions_;
  Dependencies dependencies_;
};

/// Schedules, and what is known of them.
struct Given {
  std::vector<Schedule> schedules;
  std::vector<Problem> problems;
  std::int64_t rounds = 0;
  std::vector<std::int64_t> folded;

  const Problem& problem() const { return problems[0]; }

  std::string refuses(const Problem& p) const {
    const Problem& own = problem();
    if (p.size != own.size) return fmt::format("is for {} ranks, found {}", own.size, p.size);
    if (rooted(p.collective) && p.root != own.root) {
      return fmt::format("is for root {}, found root {}", own.root, p.root);
    }
    if (p.count % own.count != 0) {
      return fmt::format("needs a count that {} divides, found {}", own.count, p.count);
    }
    if (p.input_rows > 1 || p.output_rows > 1) {
      return "takes whole blocks only, found those of a tensor cut along another dimension";
    }
    if (own.average && !p.average) return "averages, found another operation";
    return {};
  }

  Schedule generate(const Problem& p) const {
    const auto rank = static_cast<std::size_t>(p.rank);
    return Adapted(schedules[rank], problems[rank], p).schedule();
  }

  Cost cost(const Problem& p) const {
    const auto rank = static_cast<std::size_t>(p.rank);
    const Schedule& schedule = schedules[rank];
    const std::int64_t factor = p.count / problem().count;
    Cost cost;
    cost.rounds = rounds;
    cost.sent = schedule.sent() * factor;
    cost.received = schedule.received() * factor;
    cost.folded = folded[rank] * factor;
    cost.scratch = schedule.header().scratch * factor;
    if (p.count > 0) cost.scratch += copied(p);
    return cost;
  }
  /// Elements of the copy that a rank makes of its input; see Adapted.
  std::int64_t copied(const Problem& p) const {
    const bool was = problems[static_cast<std::size_t>(p.rank)].aliased(), is = p.aliased();
    if (was == is || (was && !scattering(p.collective) && !no_result(p))) return 0;
    return gathering(p.collective) ? p.count : std::max(p.input_extent(), p.output_extent());
  }
};

void check_name(const std::string& name) {
  if (name.empty() || name.find_first_of(" \t\r\n#:") != std::string::npos) {
    refuse(fmt::format("expected the name of an algorithm, one word without # and :, found \"{}\"",
                       name));
  }
}

}  // namespace

Algorithm algorithm_of(std::span<const Schedule> schedules) {
  const auto given = std::make_shared<Given>();
  for (const Schedule& schedule : schedules) {
    // As segmented() does, so that pieces need no other scratch than whole messages.
    given->schedules.push_back(
        slots_in_pairs(schedule) ? schedule : scheduling::with_slots_in_scratch(schedule));
  }
  given->problems = problems_of(schedules);
  const Problem& first = given->problem();
  const std::string name = schedules[0].header().algorithm;
  check_name(name);
  if (first.collective == Collective::program) {
    refuse(fmt::format("{}: expected the schedules of a collective, found a program", name));
  }
  for (const Schedule& schedule : schedules) {
    if (!schedule.computations().empty())
      refuse(
          fmt::format("{}: expected messages and work on their data, found the computation \"{}\"",
                      name, schedule.computations()[0].name));
  }
  if (first.uneven()) refuse(fmt::format("{}: expected equal counts, found uneven ones", name));
  for (const Problem& p : given->problems) {
    const Schedule::Header& h = schedules[static_cast<std::size_t>(p.rank)].header();
    if (h.input != p.input_extent() || h.output != p.output_extent()) {
      refuse(fmt::format(
          "{}: expected an input of {} and an output of {} elements on rank {}, found {} and {}",
          name, p.input_extent(), p.output_extent(), p.rank, h.input, h.output));
    }
  }
  if (first.count < 1) refuse(fmt::format("{}: expected data, found none", name));
  const Proof proof = verify(schedules, given->problems);
  if (!proof.holds()) {
    refuse(fmt::format("{}: expected schedules that are proved, found {}: {}", name,
                       baton::name(proof.findings[0].flaw), proof.findings[0].sentence));
  }
  given->rounds =
      proof.rounds >= 0 ? proof.rounds : verify(schedules, given->problems, {.buffered = 1}).rounds;
  for (const Schedule& schedule : schedules) {
    std::int64_t folded = 0;
    for (const Step& step : schedule.steps()) {
      if (step.kind == StepKind::fold) folded += schedule.length(step);
    }
    given->folded.push_back(folded);
  }

  Algorithm algorithm;
  algorithm.collective = first.collective;
  algorithm.name = name;
  algorithm.generate = [given](const Problem& p) { return given->generate(p); };
  algorithm.cost = [given](const Problem& p) { return given->cost(p); };
  algorithm.refuses = [given](const Problem& p) { return given->refuses(p); };
  if (reducing(first.collective)) {
    std::vector<Problem> ordered = given->problems;
    for (Problem& p : ordered) p.commutative = false;
    algorithm.ordered = verify(schedules, ordered).holds();
  }
  algorithm.rounds = fmt::format("{}", given->rounds);
  algorithm.sent =
      fmt::format("{} elements of {} each", std::ranges::max(schedules, {}, &Schedule::sent).sent(),
                  first.count);
  algorithm.source = "schedules of a user";
  return algorithm;
}

}  // namespace baton
