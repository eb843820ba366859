#include "hazards.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "findings.hpp"

// Steps are numbered through all ranks, from 1 where 0 means none. A dependency always names an
// earlier step of the same rank. Each element remembers its last writer and the readers since.
// Earlier steps were checked to be ordered before these.

namespace baton::proving {

void Hazards::find(const Program& program, Findings& findings) {
  program_ = &program;
  findings_ = &findings;
  seen_.assign(program.step_count(), 0);
  for (int rank = 0; rank < program.size(); ++rank) {
    base_ = program.place(rank, Buffer::input);
    elements_.assign(program.place_end(rank, Buffer::slot) - base_, {0, 0});
    pool_.assign(1, {});
    const std::uint32_t end = program.first_step(rank + 1);
    for (std::uint32_t s = program.first_step(rank); s < end; ++s) find(s);
  }
}

void Hazards::find(std::uint32_t s) {
  const FlatStep& step = program_->step(s);
  const std::uint32_t first = program_->first_step(static_cast<int>(step.rank));
  frontier_.clear();
  for (const std::uint32_t d : program_->dependencies(s)) {
    seen_[first + d] = s + 1;
    frontier_.push_back(first + d);
  }
  const auto reading = [&](int k) {
    for_pieces(program_->operand(step, k),
               [&](std::uint32_t e, std::uint32_t n) { read(s, e, n); });
  };
  const auto writing = [&] {
    for_pieces(program_->operand(step, 0),
               [&](std::uint32_t e, std::uint32_t n) { write(s, e, n); });
  };
  switch (step.kind) {
    case StepKind::send:
      reading(0);
      break;
    case StepKind::recv:
      writing();
      break;
    case StepKind::divide:
      reading(0);
      writing();
      break;
    case StepKind::compute:
      reading(1);
      writing();
      break;
    case StepKind::copy:
    case StepKind::fold:
      for (int k = 1; k < operands(step.kind); ++k) reading(k);
      writing();
      within(s);
      break;
  }
}

void Hazards::read(std::uint32_t s, std::uint32_t first, std::uint32_t length) {
  for (std::uint32_t e = first - base_; e < first - base_ + length; ++e) {
    Element& element = elements_[e];
    if (element.writer != 0 && seen_[element.writer - 1] != s + 1) order(element.writer - 1, s, e);
    pool_.push_back({s, element.readers});
    element.readers = static_cast<std::uint32_t>(pool_.size() - 1);
  }
}

void Hazards::write(std::uint32_t s, std::uint32_t first, std::uint32_t length) {
  for (std::uint32_t e = first - base_; e < first - base_ + length; ++e) {
    Element& element = elements_[e];
    if (element.readers == 0) {
      const std::uint32_t writer = element.writer;
      if (writer != 0 && seen_[writer - 1] != s + 1) order(writer - 1, s, e);
    }
    for (std::uint32_t i = element.readers; i != 0; i = pool_[i].next) {
      const std::uint32_t reader = pool_[i].step;
      if (reader != s && seen_[reader] != s + 1) order(reader, s, e);
    }
    element = {s + 1, 0};
  }
}

/// Finds elements that a fold or copy reads at one position and writes at another.
void Hazards::within(std::uint32_t s) {
  const FlatStep& step = program_->step(s);
  const auto to = program_->operand(step, 0);
  const auto end_of = [](const Run& run) {
    return run.first + (run.count - 1) * run.stride + run.block;
  };
  for (int k = 1; k < operands(step.kind); ++k) {
    const auto from = program_->operand(step, k);
    const bool apart = std::all_of(to.begin(), to.end(), [&](const Run& a) {
      return std::all_of(from.begin(), from.end(), [&](const Run& b) {
        return a.first >= end_of(b) || b.first >= end_of(a);
      });
    });
    if (apart || std::equal(to.begin(), to.end(), from.begin(), from.end())) continue;
    if (positions_.size() < elements_.size()) positions_.resize(elements_.size());
    std::uint32_t position = 0;
    for_pieces(to, [&](std::uint32_t e, std::uint32_t n) {
      for (std::uint32_t i = 0; i < n; ++i) positions_[e - base_ + i] = ++position;
    });
    position = 0;
    for_pieces(from, [&](std::uint32_t e, std::uint32_t n) {
      for (std::uint32_t i = 0; i < n; ++i) {
        const std::uint32_t written = positions_[e - base_ + i];
        if (++position != written && written != 0) order(s, s, e - base_ + i);
      }
    });
    for_pieces(to, [&](std::uint32_t e, std::uint32_t n) {
      std::fill_n(positions_.begin() + (e - base_), n, 0);
    });
  }
}

void Hazards::order(std::uint32_t earlier, std::uint32_t s, std::uint32_t e) {
  if (earlier != s && reaches(earlier, s)) return;
  const int rank = static_cast<int>(program_->step(s).rank);
  findings_->add(Flaw::hazard, rank, program_->step_in_rank(s), [&] {
    const std::string element = program_->phrase_element(base_ + e);
    if (earlier == s) {
      return fmt::format("{} touches {} twice, at different places of its operands, and writes it",
                         program_->phrase(s), element);
    }
    return fmt::format("{} and {} both touch {}, one writes, and nothing orders them",
                       program_->phrase(earlier), program_->phrase(s), element);
  });
}

/// Whether `s` depends on `earlier`, even indirectly. Remembers the ancestors of s found on the
/// way.
bool Hazards::reaches(std::uint32_t earlier, std::uint32_t s) {
  const std::uint32_t first = program_->first_step(static_cast<int>(program_->step(s).rank));
  // Ancestors up to `earlier` cannot lead to it; they remain for later questions about s.
  for (std::size_t i = 0; i < frontier_.size() && seen_[earlier] != s + 1;) {
    const std::uint32_t ancestor = frontier_[i];
    if (ancestor <= earlier) {
      ++i;
      continue;
    }
    frontier_[i] = frontier_.back();
    frontier_.pop_back();
    for (const std::uint32_t d : program_->dependencies(ancestor)) {
      if (seen_[first + d] == s + 1) continue;
      seen_[first + d] = s + 1;
      frontier_.push_back(first + d);
    }
  }
  return seen_[earlier] == s + 1;
}

}  // namespace baton::proving
