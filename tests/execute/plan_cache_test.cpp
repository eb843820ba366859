#include "execute/plan_cache.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <utility>

#include "support/schedules.hpp"

using namespace baton;
using namespace baton::execute;

namespace {

std::unique_ptr<CachedPlan> any_plan(const std::string& name = "any") {
  const Problem p = support::problem(Collective::all_reduce, 1, 0, 4);
  const Registry registry = Registry::builtin();
  const Schedule schedule = registry.find(Collective::all_reduce, "ring").generate(p);
  const std::int64_t four[] = {4};
  return std::make_unique<CachedPlan>(std::make_shared<const Plan>(schedule, 4, four, four), name,
                                      0);
}

PlanKey key(std::int64_t a, std::int64_t b = 0) {
  PlanKey k;
  k.add(a);
  k.add(b);
  return k;
}

}  // namespace

TEST_CASE("what was kept is found, the same object each time") {
  PlanCache cache(10);
  CHECK(cache.find(key(1)) == nullptr);
  CachedPlan& kept = cache.insert(key(1), any_plan("one"));
  CHECK(cache.find(key(1)) == &kept);
  CHECK(cache.find(key(1))->algorithm == "one");
  CHECK(cache.find(key(1, 1)) == nullptr);
  CHECK(cache.find(key(2)) == nullptr);
}

TEST_CASE("bounded: the plan not used for longest goes first") {
  PlanCache cache(3);
  for (int i = 0; i < 3; ++i) cache.insert(key(i), any_plan());
  CHECK(cache.full());
  cache.find(key(0));
  cache.insert(key(3), any_plan());
  CHECK(cache.size() == 3);
  CHECK(cache.find(key(1)) == nullptr);
  CHECK(cache.find(key(0)) != nullptr);
  CHECK(cache.find(key(2)) != nullptr);
  for (int i = 10; i < 200; ++i) cache.insert(key(i), any_plan());
  CHECK(cache.size() == 3);
}

TEST_CASE("a plan in use stays, also beyond the bound") {
  PlanCache cache(2);
  CachedPlan& first = cache.insert(key(0), any_plan());
  CachedPlan& second = cache.insert(key(1), any_plan());
  auto run = first.take(2), other = second.take(2);
  CHECK(first.in_use());
  cache.insert(key(2), any_plan());
  cache.insert(key(3), any_plan());
  CHECK(cache.find(key(0)) == &first);
  CHECK(cache.find(key(1)) == &second);
  first.give(std::move(run));
  second.give(std::move(other));
  CHECK(!first.in_use());
  for (int i = 10; i < 20; ++i) cache.insert(key(i), any_plan());
  CHECK(cache.find(key(0)) == nullptr);
  CHECK(cache.size() <= 3);
}

TEST_CASE("a pinned plan stays until it is let go") {
  PlanCache cache(1);
  CachedPlan& pinned = cache.insert(key(0), any_plan());
  std::optional<Pin> pin(std::in_place, pinned);
  for (int i = 1; i < 5; ++i) cache.insert(key(i), any_plan());
  CHECK(cache.find(key(0)) == &pinned);
  pin.reset();
  for (int i = 10; i < 15; ++i) cache.insert(key(i), any_plan());
  CHECK(cache.find(key(0)) == nullptr);
}

TEST_CASE("a bound of nothing keeps one") {
  PlanCache cache(0);
  CachedPlan& kept = cache.insert(key(1), any_plan());
  CHECK(cache.find(key(1)) == &kept);
  cache.insert(key(2), any_plan());
  CHECK(cache.size() == 1);
}

TEST_CASE("runs are used again") {
  const auto plan = any_plan();
  auto a = plan->take(2), b = plan->take(2);
  const Run* first = a.get();
  CHECK(a != b);
  plan->give(std::move(a));
  CHECK(plan->take(2).get() == first);
}

TEST_CASE("keys: lists are told from their neighbours") {
  PlanKey a, b;
  a.add_all(std::string("ring"));
  b.add_all(std::string("rin"));
  b.add('g');
  CHECK(!(a == b));
  PlanKey c;
  c.add_all(std::string("ring"));
  CHECK(a == c);
  CHECK(a.hash() == c.hash());
  c.clear();
  CHECK(c == PlanKey());
}
