#include "values.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "findings.hpp"

namespace baton::proving {
namespace {

/// Whether the sequence has receives of its own: then a message may arrive after its send.
bool receives(const Program& program, std::span<const std::uint32_t> sequence) {
  return std::ranges::any_of(
      sequence, [&](std::uint32_t s) { return program.step(s).kind == StepKind::recv; });
}

}  // namespace

void Values::check(const Program& program, const Promise& promise,
                   std::span<const std::uint32_t> sequence, Findings& findings) {
  bases_.clear();
  for (int r = 0; r <= program.size(); ++r) bases_.push_back(promise.leaf_base(r));
  expressions_.reset(bases_, program.folded_elements());
  values_.assign(program.element_count(), 0);
  place_inputs(promise);
  run(program, sequence, findings);
  if (findings.any(Flaw::undefined)) return;  // later findings would only be consequences
  agreed_.clear();
  if (promise.problem(0).collective == Collective::all_reduce) {
    agreed_.assign(program.place_end(0, Buffer::output) - program.place(0, Buffer::output), 0);
  }
  for (int r = 0; r < program.size(); ++r) check_results(program, promise, r, findings);
}

void Values::place_inputs(const Promise& promise) {
  for (std::size_t r = 0; r + 1 < bases_.size(); ++r) {
    promise.for_inputs(static_cast<int>(r),
                       [&](std::uint32_t element, std::uint32_t length, std::uint32_t leaf) {
                         for (std::uint32_t k = 0; k < length; ++k)
                           values_[element + k] = 1 + leaf + k;
                       });
  }
}

void Values::run(const Program& program, std::span<const std::uint32_t> sequence,
                 Findings& findings) {
  Value* const values = values_.data();
  const auto undefined = [&](std::uint32_t s, std::uint32_t element) {
    findings.add(Flaw::undefined, static_cast<int>(program.step(s).rank), program.step_in_rank(s),
                 [&] {
                   return fmt::format("{} reads {}, which nothing has written", program.phrase(s),
                                      program.phrase_element(element));
                 });
    return unknown;
  };
  const auto read = [&](std::uint32_t s, std::uint32_t element) {
    const Value value = values[element];
    return value != 0 ? value : undefined(s, element);
  };
  const bool buffered = receives(program, sequence);
  under_way_.assign(buffered ? program.step_count() : 0, {});
  for (const std::uint32_t s : sequence) {
    const FlatStep& step = program.step(s);
    std::uint32_t left = step.length;
    switch (step.kind) {
      case StepKind::recv: {
        std::vector<Value>& message = under_way_[step.partner];
        const Value* next = message.data();
        for_pieces(program.operand(step, 0), [&](std::uint32_t first, std::uint32_t n) {
          std::copy_n(next, n, values + first);
          next += n;
        });
        message = {};
        break;
      }
      case StepKind::send:
      case StepKind::copy: {
        const bool send = step.kind == StepKind::send;
        if (send && buffered) {
          for_pieces(program.operand(step, 0), [&](std::uint32_t first, std::uint32_t n) {
            for (std::uint32_t e = first; e < first + n; ++e) under_way_[s].push_back(read(s, e));
          });
          break;
        }
        Cursor from(program.runs(step, send ? 0 : 1));
        Cursor to(program.runs(send ? program.step(step.partner) : step, 0));
        while (left > 0) {
          const std::uint32_t n = std::min(from.left, to.left);
          for (std::uint32_t k = 0; k < n; ++k) values[to.at + k] = read(s, from.at + k);
          from.advance(n);
          to.advance(n);
          left -= n;
        }
        break;
      }
      case StepKind::fold: {
        Cursor to(program.runs(step, 0)), a(program.runs(step, 1)), b(program.runs(step, 2));
        while (left > 0) {
          const std::uint32_t n = std::min({to.left, a.left, b.left});
          for (std::uint32_t k = 0; k < n; ++k) {
            values[to.at + k] = expressions_.fold(read(s, a.at + k), read(s, b.at + k));
          }
          to.advance(n);
          a.advance(n);
          b.advance(n);
          left -= n;
        }
        break;
      }
      case StepKind::compute:  // what it writes no promise knows
        for_pieces(program.operand(step, 0), [&](std::uint32_t first, std::uint32_t n) {
          findings.add(Flaw::undefined, static_cast<int>(step.rank), program.step_in_rank(s), [&] {
            return fmt::format(
                "{} writes {}: expected a collective whose computations write nothing, found one",
                program.phrase(s), program.phrase_element(first));
          });
          std::fill_n(values + first, n, unknown);
        });
        break;
      case StepKind::divide:
        for_pieces(program.operand(step, 0), [&](std::uint32_t first, std::uint32_t n) {
          for (std::uint32_t e = first; e < first + n; ++e) {
            values[e] = expressions_.divide(read(s, e));
          }
        });
        break;
    }
  }
}

void Values::check_results(const Program& program, const Promise& promise, int rank,
                           Findings& findings) {
  const Problem& problem = promise.problem(rank);
  const std::uint32_t begin = program.place(rank, Buffer::input);
  const std::uint32_t end = program.place_end(rank, Buffer::output);
  expected_.assign(end - begin, 0);
  promise.for_inputs(rank, [&](std::uint32_t element, std::uint32_t length, std::uint32_t leaf) {
    for (std::uint32_t k = 0; k < length; ++k) expected_[element - begin + k] = 1 + leaf + k;
  });
  const auto judged = [&](std::uint32_t element) { expected_[element - begin] = values_[element]; };
  const auto print = [&](Value value, std::uint32_t offset) {
    return expressions_.print(value, offset, program.unit());
  };

  const auto copied = [&](std::uint32_t element, std::uint32_t length, std::uint32_t leaf) {
    for (std::uint32_t k = 0; k < length; ++k) {
      if (values_[element + k] != 1 + leaf + k) {
        findings.add(Flaw::contribution, rank, -1, [&] {
          return fmt::format("{} of rank {} should be {} (rank[element of its input]), found {}",
                             program.phrase_element(element + k), rank, print(1 + leaf + k, none),
                             print(values_[element + k], none));
        });
      }
      judged(element + k);
    }
  };
  const auto reduced = [&](std::uint32_t element, std::uint32_t length, std::uint32_t offset,
                           int ranks) {
    for (std::uint32_t k = 0; k < length; ++k) {
      const Value value = values_[element + k];
      judged(element + k);
      Value* const agreed = agreed_.empty() ? nullptr : &agreed_[offset + k];
      if (agreed && *agreed == value && value != 0) continue;
      const Reduction reduction{offset + k, ranks, !problem.commutative, problem.average};
      switch (expressions_.check(value, reduction)) {
        case Expressions::Verdict::good:
          if (agreed && *agreed != 0) {
            findings.add(Flaw::disagree, rank, -1, [&] {
              return fmt::format("{} is {} on rank {} and {} on lower ranks: not bit for bit equal",
                                 program.phrase_element(element + k), print(value, offset + k),
                                 rank, print(*agreed, offset + k));
            });
          } else if (agreed) {
            *agreed = value;
          }
          break;
        case Expressions::Verdict::out_of_order:
          findings.add(Flaw::order, rank, -1, [&] {
            return fmt::format("{} of rank {} should fold ranks 0 to {} in order, found {}",
                               program.phrase_element(element + k), rank, ranks - 1,
                               print(value, offset + k));
          });
          break;
        case Expressions::Verdict::wrong:
          findings.add(Flaw::contribution, rank, -1, [&] {
            return fmt::format(
                "{} of rank {} should fold element {} of ranks 0 to {} once each{}, found {}",
                program.phrase_element(element + k), rank, (offset + k) * program.unit(), ranks - 1,
                problem.average ? ", divided once, at the end" : "", print(value, offset + k));
          });
          break;
      }
    }
  };
  promise.for_results(rank, copied, reduced);

  const auto differs =
      std::mismatch(expected_.begin(), expected_.end(), values_.begin() + begin).first;
  if (differs == expected_.end()) return;
  const auto element = begin + static_cast<std::uint32_t>(differs - expected_.begin());
  findings.add(Flaw::clobbered, rank, -1, [&] {
    return fmt::format("{} of rank {} is no part of its result and should stay as it was, found {}",
                       program.phrase_element(element), rank, print(values_[element], none));
  });
}

void Knowledge::check(const Program& program, std::span<const std::uint32_t> sequence,
                      Findings& findings) {
  const auto ranks = static_cast<std::uint32_t>(program.size());
  const std::size_t words = (ranks + 63) / 64;
  known_.assign(program.step_count() * words, 0);
  const auto set = [&](std::uint32_t s) { return known_.data() + s * words; };
  const auto learn = [&](std::uint64_t* to, const std::uint64_t* from) {
    for (std::size_t i = 0; i < words; ++i) to[i] |= from[i];
  };
  const auto remember = [&](std::uint32_t s) {
    const std::uint32_t rank = program.step(s).rank;
    set(s)[rank / 64] |= std::uint64_t{1} << rank % 64;
    for (const std::uint32_t d : program.dependencies(s)) {
      learn(set(s), set(program.first_step(static_cast<int>(rank)) + d));
    }
  };
  const bool buffered = receives(program, sequence);
  const auto receive = [&](std::uint32_t s) {
    remember(s);
    learn(set(s), set(program.step(s).partner));
  };
  for (const std::uint32_t s : sequence) {
    const FlatStep& step = program.step(s);
    if (step.kind == StepKind::recv) {
      receive(s);
    } else {
      remember(s);
      if (step.kind == StepKind::send && !buffered) receive(step.partner);
    }
  }
  std::vector<std::uint64_t> end(words);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    std::fill(end.begin(), end.end(), 0);
    end[r / 64] |= std::uint64_t{1} << r % 64;
    const std::uint32_t last = program.first_step(static_cast<int>(r) + 1);
    for (std::uint32_t s = program.first_step(static_cast<int>(r)); s < last; ++s) {
      learn(end.data(), set(s));
    }
    for (std::uint32_t q = 0; q < ranks; ++q) {
      if (end[q / 64] >> q % 64 & 1) continue;
      findings.add(Flaw::contribution, static_cast<int>(r), -1, [&] {
        return fmt::format("rank {} may leave the barrier before rank {} has entered it", r, q);
      });
      break;
    }
  }
}

}  // namespace baton::proving
