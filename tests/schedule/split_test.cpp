#include <doctest/doctest.h>

#include <algorithm>

#include "baton/schedule/passes.hpp"
#include "support/schedules.hpp"

using namespace baton;
using support::problem;

namespace {

bool crosses(const Region& region, std::int64_t offset) {
  return region.offset < offset && offset < region.end();
}

}  // namespace

TEST_CASE("split: no region crosses an offset, and the collective is the same") {
  const std::vector<std::int64_t> input_offsets{1, 4, 4, 11}, output_offsets{3, 8};
  const Registry registry = Registry::builtin();
  for (const Algorithm& algorithm : registry.all()) {
    for (const int size : {2, 3, 5}) {
      for (const std::int64_t segment : {0, 2}) {
        Problem p = problem(algorithm.collective, size, 0, 13);
        if (algorithm.collective == Collective::barrier) p.count = 1;
        if (algorithm.collective == Collective::all_to_all) p.output_rows = p.input_rows = 13;
        p.hosts = support::hosts_for(algorithm, p.size);
        if (!refusal(algorithm, p).empty()) continue;
        CAPTURE(algorithm.name);
        const auto problems = support::problems(p);
        std::vector<Schedule> result;
        for (const Schedule& whole : support::schedules(algorithm, problems)) {
          const Schedule s = segmented(whole, segment);
          result.push_back(split_at(s, input_offsets, output_offsets));
          const Schedule& cut = result.back();
          CHECK(cut.steps().size() == s.steps().size());
          CHECK(cut.dependencies() == s.dependencies());
          for (const Region& region : cut.regions()) {
            const auto& offsets = region.buffer == Buffer::input ? input_offsets : output_offsets;
            if (region.buffer != Buffer::input && region.buffer != Buffer::output) continue;
            CHECK(std::none_of(offsets.begin(), offsets.end(), [&](std::int64_t o) {
              return region.contiguous() && crosses(region, o);
            }));
          }
        }
        CHECK(support::flaws(result, problems) == "");
      }
    }
  }
}

TEST_CASE("split: strided regions between and across offsets") {
  const auto schedules = parse(
      "baton-schedule 1\ncollective broadcast\nsize 2\ninput 0\noutput 40\n"
      "rank 0\nsend 1 output[0:3 x4 /10]\nrank 1\nrecv 0 output[0:3 x4 /10]\n");
  const std::int64_t offsets[] = {5, 11, 30};
  CHECK(support::steps(split_at(schedules[0], {}, offsets)) ==
        "send output[0:3], output[10:1], output[11:2], output[20:3], output[30:3] to 1");
}
