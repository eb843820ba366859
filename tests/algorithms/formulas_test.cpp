#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "baton/schedule.hpp"
#include "formula.hpp"

using namespace baton;

namespace {

/// One problem, and what its formulas may name.
struct Question {
  std::vector<Problem> ranks;
  formula::Variables variables;
};

/// Counts that every chunk divides, roots, orders and numbers of blocks.
void ask(const Algorithm& algorithm, Problem p, std::vector<Question>& questions) {
  const int q = static_cast<int>(std::bit_floor(static_cast<unsigned>(p.size)));
  for (const int blocks : {1, 2, 5}) {
    if (blocks > 1 && !algorithm.pipelined) continue;
    for (const int root : {0, p.size - 1}) {
      if (root > 0 && !rooted(p.collective)) continue;
      for (const bool commutative : {true, false}) {
        if (!commutative && !(reducing(p.collective) && algorithm.ordered)) continue;
        p.blocks = blocks;
        p.root = root;
        p.commutative = commutative;
        p.count = p.collective == Collective::barrier ? 1 : std::int64_t{2} * p.size * q * blocks;
        if (!refusal(algorithm, p).empty()) continue;
        Question question;
        for (int r = 0; r < p.size; ++r) question.ranks.push_back(p.at(r));
        question.variables = {{"P", p.size},
                              {"Q", q},
                              {"n", static_cast<double>(p.count)},
                              {"blocks", blocks},
                              {"forwarded", !commutative && root > 0}};
        if (p.hosts) {
          question.variables["H"] = p.hosts->count();
          question.variables["L"] = p.hosts->largest();
        }
        questions.push_back(std::move(question));
      }
    }
  }
}

std::vector<Question> questions_of(const Algorithm& algorithm) {
  std::vector<Question> questions;
  Problem p;
  p.collective = algorithm.collective;
  if (!algorithm.hierarchical) {
    for (int size = 2; size <= 40; ++size) {
      p.size = size;
      ask(algorithm, p, questions);
    }
    for (const int size : {63, 64, 65, 97, 128}) {
      p.size = size;
      ask(algorithm, p, questions);
    }
    return questions;
  }
  for (const int hosts : {2, 3, 4, 5, 6, 8, 16}) {
    for (const int each : {2, 3, 4, 5, 7, 8}) {
      std::vector<int> host_of;
      for (int r = 0; r < hosts * each; ++r) host_of.push_back(r / each);
      p.size = hosts * each;
      p.hosts = host_grouping(host_of);
      ask(algorithm, p, questions);
    }
  }
  return questions;
}

bool leads(const Problem& p) {
  if (rooted(p.collective) && p.rank == p.root) return true;
  return p.hosts && p.hosts->local(p.rank) == 0;
}

/// Compares what a formula says with costs; a bound must come near them somewhere.
class Comparison {
 public:
  bool agrees(const formula::Value& says, double cost) {
    bound_ = bound_ || says.at_most;
    if (!says.at_most) return std::abs(says.value - cost) < 1e-6;
    nearest_ = std::max(nearest_, cost / says.value);
    return cost <= says.value + 1e-6;
  }
  bool near() const { return !bound_ || nearest_ > 0.9; }

 private:
  bool bound_ = false;
  double nearest_ = 0;
};

/// The first formula of the row that is not what the cost says, with the problem; empty if all are.
std::string wrong(const Algorithm& algorithm) {
  Comparison rounds, depth, sent;
  std::string_view sent_text = algorithm.sent;
  const std::string who = formula::take_who(sent_text);
  const bool each_rank = sent_text.find("-r)") != std::string_view::npos;
  const std::vector<Question> questions = questions_of(algorithm);
  if (questions.empty()) return "no questions";
  for (const Question& question : questions) {
    formula::Variables variables = question.variables;
    const Problem& first = question.ranks[0];
    const auto at = [&](const char* what) {
      return std::string(what) + " of " + std::to_string(first.size) + " ranks, root " +
             std::to_string(first.root) + (first.hosts ? ", hosts " + print(*first.hosts) : "");
    };
    const Cost cost = algorithm.cost(first);
    const formula::Value says = formula::value_of(algorithm.rounds, variables);
    if (!rounds.agrees(says, static_cast<double>(cost.rounds))) return at("rounds");
    if (algorithm.hierarchical && says.within != static_cast<double>(cost.local_rounds))
      return at("rounds within hosts");
    if (!algorithm.depth.empty()) {
      const formula::Value deep = formula::value_of(algorithm.depth, variables);
      if (!depth.agrees(deep, static_cast<double>(cost.depth))) return at("depth");
    } else if (!algorithm.hierarchical && cost.depth != 0) {
      return at("depth");
    }
    variables["R"] = static_cast<double>(cost.rounds);
    double most = 0, of_who = 0;
    for (const Problem& p : question.ranks) {
      const auto elements = static_cast<double>(algorithm.cost(p).sent);
      most = std::max(most, elements);
      const bool asked = who == "by the root"  ? p.rank == p.root
                         : who == "by rank 0"  ? p.rank == 0
                         : who == "by leaders" ? leads(p)
                                               : true;
      if (asked) of_who = std::max(of_who, elements);
      if (!each_rank) continue;
      variables["r"] = p.rank;
      if (!sent.agrees(formula::value_of(sent_text, variables), elements)) return at("sent");
    }
    if (of_who != most) return at("who sends the most");
    if (!each_rank && !sent.agrees(formula::value_of(sent_text, variables), most))
      return at("sent");
  }
  if (!rounds.near()) return "a bound of rounds that is never come near";
  if (!depth.near()) return "a bound of the depth that is never come near";
  if (!sent.near()) return "a bound of what is sent that is never come near";
  return {};
}

double value(std::string_view text, const formula::Variables& variables) {
  return formula::value_of(text, variables).value;
}

}  // namespace

TEST_CASE("formulas are read as on paper") {
  const formula::Variables v{{"P", 6}, {"Q", 4}, {"n", 12}, {"H", 3}, {"L", 2}, {"forwarded", 0}};
  CHECK(value("2(P-1)", v) == 10);
  CHECK(value("2n(P-1)/P", v) == 20);
  CHECK(value("2n(H-1)/(HL)", v) == 8);
  CHECK(value("n ceil(log2 P)", v) == 36);
  CHECK(value("4 floor(log2 E) - 2, E = P + P mod 2", v) == 6);
  CHECK(value("3m + floor((P-1)/4^m), m = ceil(log4 P) - 1", v) == 4);
  CHECK(value("log2 Q, +2 if Q < P", v) == 4);
  CHECK(value("P-1, +1 if forwarded", v) == 5);
  CHECK(value("1 if Q = P, else at most 2.5n", v) == 30);
  CHECK(formula::value_of("1 if Q = P, else at most 2.5n", v).at_most);
  CHECK(value("S(P)", v) == 3);
  CHECK(value("F(P)", v) == 2);
  CHECK(value("S(P)", {{"P", 4 * 4 * 2 * 3 * 7}}) == 3 + 3 + 1 + 2 + 6);
  CHECK(formula::value_of("H-1 across, 2L within", v).value == 6);
  CHECK(formula::value_of("H-1 across, 2L within", v).within == 4);
  CHECK(formula::value_of("2L within, H-1 across", v).within == 4);
}

TEST_CASE("every row's formulas are the costs that are proved") {
  const Registry registry = Registry::builtin();
  for (const Algorithm& algorithm : registry.all()) {
    CAPTURE(std::string(name(algorithm.collective)));
    CAPTURE(algorithm.name);
    CHECK(wrong(algorithm) == "");
  }
}

TEST_CASE("a wrong formula is noticed") {
  const Registry registry = Registry::builtin();
  const auto with = [&](Collective collective, const char* name, const auto& change) {
    Algorithm algorithm = registry.find(collective, name);
    change(algorithm);
    return wrong(algorithm);
  };
  using enum Collective;
  CHECK(with(all_reduce, "ring", [](Algorithm& a) { a.rounds = "2P-1"; }).starts_with("rounds of"));
  CHECK(with(all_reduce, "ring", [](Algorithm& a) { a.depth = "P-1"; }).starts_with("depth of"));
  CHECK(with(all_reduce, "ring", [](Algorithm& a) { a.sent = "2n"; }).starts_with("sent of"));
  CHECK(with(all_reduce, "ring", [](Algorithm& a) {
          a.sent = "at most 3n";
        }).starts_with("a bound of what is sent"));
  CHECK(with(all_reduce, "ring", [](Algorithm& a) {
          a.rounds = "at most 3P";
        }).starts_with("a bound of rounds"));
  CHECK(with(broadcast, "linear", [](Algorithm& a) { a.depth = ""; }).starts_with("depth of"));
  CHECK(with(broadcast, "linear", [](Algorithm& a) {
          a.sent = "(P-1)n by rank 0";
        }).starts_with("who sends the most"));
  CHECK(with(reduce, "chain", [](Algorithm& a) { a.rounds = "P-1"; }).starts_with("rounds of"));
  CHECK(with(scan, "recursive_doubling", [](Algorithm& a) {
          a.sent = "n ceil(log2(P+1-r))";
        }).starts_with("sent of"));
  CHECK(with(broadcast, "leaders", [](Algorithm& a) {
          a.rounds = "ceil(log2 L) across, ceil(log2 H) within";
        }).starts_with("rounds within hosts of"));
}
