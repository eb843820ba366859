#pragma once
/// What the tests of the verifier have in common: schedules written by hand, findings as text.

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "baton/error.hpp"
#include "baton/schedule/text.hpp"
#include "baton/verify.hpp"

namespace by_hand {

using namespace baton;

inline std::string head(std::string_view collective, int size, std::string_view more = "") {
  return "baton-schedule 1\ncollective " + std::string(collective) + "\nsize " +
         std::to_string(size) + "\n" + std::string(more) + "\n";
}

using Change = std::function<void(Problem&)>;

inline Proof prove(const std::string& text, const Change& change = {}) {
  std::vector<Schedule> schedules = parse(text);
  std::sort(schedules.begin(), schedules.end(),
            [](const Schedule& a, const Schedule& b) { return a.rank() < b.rank(); });
  std::vector<Problem> problems = problems_of(schedules);
  if (change) {
    for (Problem& problem : problems) change(problem);
  }
  return verify(schedules, problems);
}

/// "hazard 0" for a finding on rank 0, and so on, in alphabetical order.
inline std::string summary(const Proof& proof) {
  std::vector<std::string> flaws;
  for (const Finding& f : proof.findings) {
    flaws.push_back(std::string(name(f.flaw)) + " " + std::to_string(f.rank));
    CHECK(!f.sentence.empty());
  }
  std::sort(flaws.begin(), flaws.end());
  std::string text;
  for (const std::string& flaw : flaws) text += (text.empty() ? "" : ", ") + flaw;
  return text;
}

inline std::string flaws(const std::string& text, const Change& change = {}) {
  return summary(prove(text, change));
}

inline std::string sentence(const std::string& text, const Change& change = {}) {
  const Proof proof = prove(text, change);
  return proof.findings.empty() ? "" : proof.findings[0].sentence;
}

inline bool refuses(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code == ErrorCode::invalid_argument;
  }
  return false;
}

inline void not_commutative(Problem& p) { p.commutative = false; }

inline const std::string two = head("all_reduce", 2, "input 2\noutput 2");
/// All-reduce of two elements by one exchange.
inline const std::string exchange = two +
                                    "rank 0\n"
                                    "send 1 input[0:2]\nrecv 1 slot[0:2]\n"
                                    "fold output[0:2] = input[0:2] + slot[0:2]\n"
                                    "rank 1\n"
                                    "send 0 input[0:2]\nrecv 0 slot[0:2]\n"
                                    "fold output[0:2] = slot[0:2] + input[0:2]\n";

inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace by_hand
