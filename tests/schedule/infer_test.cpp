#include <doctest/doctest.h>
#include <fmt/core.h>

#include <random>

#include "baton/schedule/passes.hpp"
#include "schedule/slots.hpp"
#include "support/schedules.hpp"

using namespace baton;

namespace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : generator_(seed) {}
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(generator_() % static_cast<std::uint64_t>(n));
  }

  /// `length` elements in one to three regions; most strides are equal, as in an all-to-all.
  void append_operand(std::int64_t length, bool strided_ones, Regions& out, Step& step, int k) {
    std::uint32_t parts = 0;
    while (length > 0) {
      const std::int64_t here = parts == 2 ? length : 1 + below(length);
      const auto buffer =
          static_cast<Buffer>(std::array{0, 1, 3, 4}[static_cast<std::size_t>(below(4))]);
      const std::int64_t stride = below(3) == 0 ? 5 + below(4) : 7;
      if (strided_ones && here % 2 == 0 && here / 2 <= stride && below(2) == 0) {
        out.push_back(strided(buffer, below(20), here / 2, 2, stride));
      } else if (strided_ones && here <= 6 && below(2) == 0) {
        out.push_back(strided(buffer, below(20), 1, here, stride));
      } else {
        out.push_back(contiguous(buffer, below(40), here));
      }
      length -= here;
      ++parts;
    }
    step.parts[k] = parts;
  }

  Schedule schedule(int count, bool strided_ones) {
    Schedule::Header header;
    header.size = 4;
    header.input = header.output = header.scratch = header.slots = 100;
    std::vector<Step> steps;
    Regions regions;
    for (int i = 0; i < count; ++i) {
      Step step;
      step.kind = static_cast<StepKind>(below(5));
      if (step.message()) step.peer = 1 + static_cast<std::int32_t>(below(3));
      step.first = static_cast<std::uint32_t>(regions.size());
      const std::int64_t length = 1 + below(6);
      for (int k = 0; k < operands(step.kind); ++k) {
        append_operand(length, strided_ones, regions, step, k);
      }
      steps.push_back(step);
    }
    return Schedule(header, steps, regions);
  }

 private:
  std::mt19937_64 generator_;
};

bool writes(const Step& step, int operand) { return operand == 0 && step.kind != StepKind::send; }

/// Whether two steps touch a common element and at least one writes it, element by element.
bool conflict(const Schedule& s, const Step& a, const Step& b) {
  for (int i = 0; i < operands(a.kind); ++i) {
    for (int j = 0; j < operands(b.kind); ++j) {
      if (!writes(a, i) && !writes(b, j)) continue;
      for (const Region& x : s.operand(a, i)) {
        for (const Region& y : s.operand(b, j)) {
          if (x.buffer != y.buffer) continue;
          for (std::int64_t m = 0; m < x.count; ++m) {
            for (std::int64_t n = 0; n < y.count; ++n) {
              const std::int64_t p = x.offset + m * x.stride, q = y.offset + n * y.stride;
              if (p < q + y.block && q < p + x.block) return true;
            }
          }
        }
      }
    }
  }
  return false;
}

/// reached[i][j]: step i waits for j, directly or not.
std::vector<std::vector<bool>> reach(const Schedule& s) {
  const std::size_t n = s.steps().size();
  std::vector<std::vector<bool>> reached(n, std::vector<bool>(n));
  for (std::size_t i = 0; i < n; ++i) {
    for (const std::uint32_t d : s.dependencies(i)) {
      reached[i][d] = true;
      for (std::size_t j = 0; j < d; ++j) {
        if (reached[d][j]) reached[i][j] = true;
      }
    }
  }
  return reached;
}

void check_exact(const Schedule& s) {
  const auto reached = reach(s);
  for (std::size_t i = 0; i < s.steps().size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool conflicting = conflict(s, s.steps()[j], s.steps()[i]);
      if (conflicting && !reached[i][j]) {
        FAIL_CHECK("not ordered: \"" << print(s, j) << "\" and \"" << print(s, i) << "\"");
      }
    }
    for (const std::uint32_t d : s.dependencies(i)) {
      if (!conflict(s, s.steps()[d], s.steps()[i])) {
        FAIL_CHECK("ordered without need: \"" << print(s, d) << "\" and \"" << print(s, i) << "\"");
      }
    }
    CHECK(std::is_sorted(s.dependencies(i).begin(), s.dependencies(i).end()));
  }
  CHECK(s.assumed_overlaps() == 0);
}

}  // namespace

TEST_CASE("random steps: every conflict is ordered, and nothing else") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    check_exact(Random(seed).schedule(30, seed % 2 == 0));
  }
}

TEST_CASE("the schedules of all algorithms: every conflict is ordered, and nothing else") {
  const Registry registry = Registry::builtin();
  for (const Algorithm& algorithm : registry.all()) {
    for (const int size : {2, 5, 8}) {
      for (const bool in_place : {false, true}) {
        Problem p = support::problem(algorithm.collective, size, size / 2, 7, in_place);
        p.hosts = support::hosts_for(algorithm, p.size);
        if (!refusal(algorithm, p).empty()) continue;
        CAPTURE(algorithm.name);
        check_exact(algorithm.generate(p));
        check_exact(segmented(algorithm.generate(p), 2));
      }
    }
  }
}

TEST_CASE("tensors: blocks that interleave do not wait for each other") {
  Problem p = support::problem(Collective::all_to_all, 4, 1, 12);
  p.input_rows = 6;
  p.output_rows = 3;
  const Registry registry = Registry::builtin();
  const Schedule s = registry.find(Collective::all_to_all, "spread_out").generate(p);
  check_exact(s);
  CHECK(s.dependencies().list.empty());
}

TEST_CASE("a step that reads what it writes waits for no step of its own") {
  const auto schedules = parse(
      "baton-schedule 1\ncollective all_reduce\nsize 2\ninput 0\noutput 8\nscratch 8\nrank 0\n"
      "copy scratch[0:4] = output[0:4]\nfold output[0:4] = output[0:4] + scratch[0:4]\n"
      "fold output[2:4] = output[2:4] + output[2:4]\nsend 1 output[0:2]\nrank 1\nrecv 0 "
      "output[0:2]\n");
  const Schedule& s = schedules[0];
  CHECK(std::vector(s.dependencies(1).begin(), s.dependencies(1).end()) ==
        std::vector<std::uint32_t>{0});
  CHECK(std::vector(s.dependencies(2).begin(), s.dependencies(2).end()) ==
        std::vector<std::uint32_t>{1});
  CHECK(std::vector(s.dependencies(3).begin(), s.dependencies(3).end()) ==
        std::vector<std::uint32_t>{1});
}

TEST_CASE("what cannot be decided is ordered, and counted") {
  // Two strides, each with more blocks than are taken apart: they interleave without meeting.
  Schedule::Header header;
  header.size = 2;
  header.input = header.output = 1 << 20;
  Step copy;
  copy.kind = StepKind::copy;
  copy.parts[0] = copy.parts[1] = 1;
  std::vector<Step> steps(3, copy);
  Regions regions;
  const auto append = [&](std::size_t step, std::int64_t offset, std::int64_t stride) {
    steps[step].first = static_cast<std::uint32_t>(regions.size());
    regions.push_back(strided(Buffer::output, offset, 1, 5000, stride));
    regions.push_back(contiguous(Buffer::input, 0, 5000));
  };
  append(0, 0, 4);
  append(1, 2, 4);
  append(2, 1, 8);
  const Schedule s(header, steps, regions);
  CHECK(s.dependencies(1).empty());
  CHECK(s.dependencies(2).size() == 2);
  CHECK(s.assumed_overlaps() > 0);
  CHECK(split_at(s, {}, {}) == s);  // passes that keep dependencies keep the number
  CHECK(parse(print(s))[0] == s);
  CHECK(scheduling::with_slots_in_scratch(s) == s);
}

TEST_CASE("a few regions have many edges where their strides differ") {
  const std::string head =
      "baton-schedule 1\ncollective program\nsize 1\ninput 0\noutput 20000\nscratch 20000\nrank "
      "0\n";
  for (int blocks = 2; blocks <= 100; ++blocks) {
    const auto copy = [&](int offset, int count, int stride) {
      const std::string region = fmt::format("[{}:1 x{} /{}]", offset, count, stride);
      return fmt::format("copy scratch{} = output{}\n", region, region);
    };
    CAPTURE(blocks);
    check_exact(parse(head + copy(0, 2, 1000) + copy(1, 2, 1000) + copy(0, blocks, 7))[0]);
  }
}

TEST_CASE("a tensor in place that changes its rows: from [2, 256, 2, 16] to [2, 64, 8, 16]") {
  Problem p = support::problem(Collective::all_to_all, 4, 0, 2 * 64 * 2 * 16, true);
  p.input_rows = 2;
  p.output_rows = 2 * 64;
  const Registry registry = Registry::builtin();
  for (const Algorithm* algorithm : registry.of(Collective::all_to_all)) {
    CAPTURE(algorithm->name);
    if (refusal(*algorithm, p).empty()) CHECK(verify(*algorithm, support::problems(p)).holds());
  }
}

TEST_CASE("inference costs about as much as there are steps") {
  // 20,000 steps on their own elements, then on all of them: quadratic work would take minutes.
  Schedule::Header header;
  header.size = 2;
  header.output = 20'000;
  std::vector<Step> steps;
  Regions regions;
  for (int turn = 0; turn < 3; ++turn) {
    for (std::int64_t i = 0; i < 20'000; ++i) {
      Step recv;
      recv.kind = turn == 1 ? StepKind::send : StepKind::recv;
      recv.peer = 1;
      recv.parts[0] = 1;
      recv.first = static_cast<std::uint32_t>(regions.size());
      regions.push_back(contiguous(Buffer::output, i, 1));
      steps.push_back(recv);
    }
  }
  const Schedule s(header, steps, regions);
  CHECK(s.dependencies().list.size() == 60'000);  // read after write; write after both
}
