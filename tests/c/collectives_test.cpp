#include "collectives.hpp"

#include <set>

#include "support.hpp"
#include "support/sanitizer.hpp"

using namespace c_support;

TEST_CASE("every collective in every form, on threads") {
  for (const int size :
       support::under_sanitizer ? std::vector{1, 2, 3, 5} : std::vector{1, 2, 3, 4, 5, 7, 8}) {
    const std::set<long long> counts{0, 1, size - 1, size, size + 1, 13, 1009};
    on_ranks(size, [&](baton_communicator* world) {
      CHECK(baton_size(world) == size);
      for (const long long count : counts) every_collective(world, count);
    });
  }
}

TEST_CASE("every collective by a given algorithm and segment, and with checks") {
  on_ranks(3, [](baton_communicator* world) { every_collective(world, 40'000, "ring:8K"); },
           {{"BATON_CHECK", "1"}});
}

TEST_CASE("a plan knows its choice and its traffic") {
  on_ranks(4, [](baton_communicator* world) {
    std::vector<float> x(1024);
    baton_plan* plan = nullptr;
    OK(baton_plan_all_reduce(world, x.data(), x.data(), 1024, BATON_F32, BATON_SUM, "ring:512",
                             &plan));
    CHECK(text_of([&](auto... room) { return baton_plan_choice(plan, room...); }) == "ring:512");
    std::int64_t messages = 0, bytes = 0;
    OK(baton_plan_traffic(plan, &messages, &bytes));
    CHECK(messages == 12);  // 6 chunks of 1 KiB, cut in two
    CHECK(bytes == 6 * 1024);
    OK(baton_plan_traffic(plan, nullptr, nullptr));
    baton_plan_destroy(plan);
  });
}

TEST_CASE("the option of a collective, and the call's choice before it") {
  on_ranks(
      2,
      [](baton_communicator* world) {
        std::vector<float> x(8);
        const auto choice = [&](const char* own) {
          baton_plan* plan = nullptr;
          OK(baton_plan_all_reduce(world, x.data(), x.data(), 8, BATON_F32, BATON_SUM, own, &plan));
          const std::string text =
              text_of([&](auto... room) { return baton_plan_choice(plan, room...); });
          baton_plan_destroy(plan);
          return text;
        };
        CHECK(choice(nullptr) == "tree:1024");
        CHECK(choice("ring:64") == "ring:64");
      },
      {{"BATON_ALL_REDUCE", "tree:1K"}});
}
