#pragma once

#include <cstdint>
#include <vector>

#include "program.hpp"

namespace baton::proving {

/// Finds pairs of steps of one rank that touch a common element, at least one of them writing,
/// without a path between them in the rank's dependencies.
class Hazards {
 public:
  void find(const Program& program, Findings& findings);

 private:
  struct Element {
    std::uint32_t writer;   // 1 + the last step that wrote it; 0: none
    std::uint32_t readers;  // list in pool_ of the steps that have read it since; 0: none
  };
  struct Reader {
    std::uint32_t step, next;
  };

  void find(std::uint32_t step);
  void read(std::uint32_t step, std::uint32_t first, std::uint32_t length);
  void write(std::uint32_t step, std::uint32_t first, std::uint32_t length);
  void within(std::uint32_t step);
  void order(std::uint32_t earlier, std::uint32_t step, std::uint32_t element);
  bool reaches(std::uint32_t earlier, std::uint32_t step);

  const Program* program_ = nullptr;
  Findings* findings_ = nullptr;
  std::uint32_t base_ = 0;  // first element of the rank
  std::vector<Element> elements_;
  std::vector<Reader> pool_;
  // Ancestors of the current step found so far: seen_[a] == 1 + the step.
  std::vector<std::uint32_t> seen_, frontier_;
  std::vector<std::uint32_t> positions_;  // for within(); all 0 between calls
};

}  // namespace baton::proving
