#include "baton/own_algorithms.hpp"

#include <algorithm>

#include "baton/error.hpp"
#include "support/ranks.hpp"
#include "support/schedules.hpp"

using namespace baton;
using support::error_of;
using support::holds;

namespace {

std::string findings(const Proof& proof) {
  std::string text;
  for (const Finding& f : proof.findings) text += std::string(name(f.flaw)) + ": " + f.sentence;
  return text;
}

std::vector<Schedule> written(const std::string& text) {
  return parse("baton-schedule 1\ncollective all_reduce\nalgorithm mine\nsize 2\n" + text);
}
constexpr const char* exchange =
    "input 3\noutput 3\n"
    "rank 0\nsend 1 input[0:3]\nrecv_reduce 1 output[0:3] = input[0:3]\n"
    "rank 1\nsend 0 input[0:3]\nrecv_reduce 0 output[0:3] = input[0:3]\n";

}  // namespace

TEST_CASE("schedules of every algorithm serve all multiples of their count, in place and not") {
  const Registry registry = Registry::builtin();
  int sets = 0;
  for (const Algorithm& algorithm : registry.all()) {
    for (const int size : {1, 2, 3, 4, 5, 8}) {
      for (const bool in_place : {false, true}) {
        Problem first = support::problem(algorithm.collective, size, 0, 2 * size + 1, in_place);
        first.hosts = support::hosts_for(algorithm, size);
        if (rooted(algorithm.collective)) first.root = size - 1;
        if (algorithm.pipelined) first.blocks = 2;
        first.commutative = !(algorithm.ordered && reducing(algorithm.collective));
        const bool barrier = algorithm.collective == Collective::barrier;
        if (barrier) first.count = 1;
        if (!refusal(algorithm, first).empty()) continue;
        const Algorithm own = algorithm_of(support::schedules(algorithm, support::problems(first)));
        CHECK(own.name == algorithm.name);
        CHECK((first.commutative || own.ordered));
        for (const std::int64_t factor : {0, 1, 3}) {
          for (const bool aliased : {false, true}) {
            for (const bool average : {false, true}) {
              if (average && !reducing(own.collective)) continue;
              Problem p = first;
              p.blocks = 1;
              p.in_place = aliased;
              p.average = average;
              p.count *= barrier ? 1 : factor;
              p.commutative = !own.ordered;
              INFO(name(own.collective), " ", own.name, ", ", size, " ranks, ", p.count, " from ",
                   first.count, ", in place ", aliased, " from ", in_place, ", average ", average);
              CHECK(refusal(own, p).empty());
              for (const std::int64_t segment : {0, 2}) {
                CHECK(findings(verify(own, support::problems(p), segment)) == "");
              }
              ++sets;
            }
          }
        }
      }
    }
  }
  CHECK(sets > 1000);
}

TEST_CASE("strided regions grow with the count") {
  const Algorithm own =
      algorithm_of(parse("baton-schedule 1\ncollective broadcast\nalgorithm mine\nsize 2\ninput "
                         "0\noutput 6\nin_place\n"
                         "rank 0\nsend 1 output[0:1 x3 /2]\nsend 1 output[1:1 x3 /2]\n"
                         "rank 1\nrecv 0 output[0:1 x3 /2]\nrecv 0 output[1:1 x3 /2]\n"));
  const auto problems = support::problems(support::problem(Collective::broadcast, 2, 0, 24));
  CHECK(print(own.generate(problems[1]), 1) == "recv output[4:4 x3 /8] from 0");
  CHECK(findings(verify(own, problems)) == "");
}

TEST_CASE("problems that schedules do not serve are refused, on all ranks alike") {
  const Algorithm own = algorithm_of(written(exchange));
  const auto why = [&](auto change) {
    Problem p = support::problem(Collective::all_reduce, 2, 0, 6);
    change(p);
    return refusal(own, p);
  };
  CHECK(why([](Problem&) {}) == "");
  CHECK(why([](Problem& p) { p.size = 3; }) == "is for 2 ranks, found 3");
  CHECK(why([](Problem& p) { p.count = 5; }) == "needs a count that 3 divides, found 5");
  CHECK(why([](Problem& p) { p.commutative = false; }) == "");
  CHECK(why([](Problem& p) { p.output_rows = 2; }) ==
        "takes whole blocks only, found those of a tensor cut along another dimension");
  const Algorithm rooted = algorithm_of(
      parse("baton-schedule 1\ncollective broadcast\nalgorithm mine\nsize 2\nroot 1\ninput 0\n"
            "output 1\nin_place\nrank 0\nrecv 1 output[0:1]\nrank 1\nsend 0 output[0:1]\n"));
  Problem p = support::problem(Collective::broadcast, 2, 0, 6);
  CHECK(refusal(rooted, p) == "is for root 1, found root 0");
  const Algorithm average =
      algorithm_of(written("input 1\noutput 1\n"
                           "rank 0\nsend 1 input[0:1]\nrecv_reduce 1 output[0:1] = input[0:1]\n"
                           "divide output[0:1]\n"
                           "rank 1\nsend 0 input[0:1]\nrecv_reduce 0 output[0:1] = input[0:1]\n"
                           "divide output[0:1]\n"));
  p = support::problem(Collective::all_reduce, 2, 0, 6);
  CHECK(refusal(average, p) == "averages, found another operation");
  p.average = true;
  CHECK(refusal(average, p) == "");
  CHECK(findings(verify(average, support::problems(p))) == "");
}

TEST_CASE("schedules that are no algorithm are refused in one sentence") {
  const auto refuses = [](const std::vector<Schedule>& schedules,
                          const std::vector<std::string>& parts) {
    const Error error = error_of([&] { algorithm_of(schedules); });
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK_MESSAGE(holds(error.what(), parts), std::string(error.what()));
  };
  const std::string text = exchange;
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return written(changed);
  };
  refuses({}, {"at least one rank"});
  refuses(with("input 3", "algorithm \"\"\ninput 3"), {"one word", "found \"\""});
  refuses(with("input 3", "algorithm \"my own\"\ninput 3"), {"one word", "found \"my own\""});
  refuses(with("input 3", "algorithm \"a:8\"\ninput 3"), {"one word", "\"a:8\""});
  refuses(with("1 input[0:3]", "1 output[0:3]"),
          {"mine: expected schedules that are proved, found", "step 0 of rank 0"});
  refuses(with("input 3\noutput 3", "collective program\ninput 3\noutput 3"),
          {"mine: expected", "program"});
  refuses(with("rank 1", "compute 5 other x\nrank 1"),
          {"mine: expected messages and work on their data, found the computation \"x\""});
  refuses(written("input 0\noutput 0\nrank 0\nrank 1\n"), {"mine: expected data, found none"});
  refuses(parse("baton-schedule 1\ncollective gather\nalgorithm mine\nsize 2\n"
                "rank 0\ninput 1\noutput 3\ncopy output[0:1] = input[0:1]\nrecv 1 output[1:2]\n"
                "rank 1\ninput 2\noutput 0\nsend 0 input[0:2]\n"),
          {"mine: expected equal counts"});
}
