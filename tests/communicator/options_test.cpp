#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "support/ranks.hpp"

using namespace baton;
using namespace support;

namespace {

/// An environment variable for the length of a scope.
class Variable {
 public:
  Variable(std::string name, const char* value) : name_(std::move(name)) {
    if (const char* old = std::getenv(name_.c_str())) old_ = old;
    setenv(name_.c_str(), value, 1);
  }
  ~Variable() {
    if (old_.empty()) {
      unsetenv(name_.c_str());
    } else {
      setenv(name_.c_str(), old_.c_str(), 1);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  std::string name_, old_;
};

const Choice& choice_of(const Options& options, Collective collective) {
  return options.choices[static_cast<std::size_t>(collective)];
}

}  // namespace

TEST_CASE("options from the environment") {
  const Variable check("BATON_CHECK", "1"), timeout("BATON_TIMEOUT", "2.5"),
      window("BATON_WINDOW", "7"), plans("BATON_PLANS", "9"), ring("BATON_ALL_REDUCE", "ring:128K"),
      chain("BATON_BROADCAST", "chain"), explain("BATON_EXPLAIN", "0"),
      trace("BATON_TRACE", "a.trace"), events("BATON_TRACE_EVENTS", "77");
  const Options options = Options::from_environment();
  CHECK(options.check);
  CHECK(!options.explain);
  CHECK(options.timeout == std::chrono::milliseconds(2500));
  CHECK(options.window == 7);
  CHECK(options.plans == 9);
  CHECK(options.trace == "a.trace");
  CHECK(options.trace_events == 77);
  CHECK(choice_of(options, Collective::all_reduce) == Choice{"ring", 131072});
  CHECK(choice_of(options, Collective::broadcast) == Choice{"chain"});
  CHECK(choice_of(options, Collective::scan) == Choice{});
}

TEST_CASE("what cannot be read is refused with the variable's name") {
  const auto says = [](const char* name, const char* value, const std::vector<std::string>& parts) {
    const Variable variable(name, value);
    const Error error = error_of([] { Options::from_environment(); });
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK_MESSAGE(holds(error.what(), parts), std::string(error.what()));
  };
  says("BATON_CHECK", "yes", {"BATON_CHECK", "0, 1 or 2", "found \"yes\""});
  says("BATON_TIMEOUT", "-1", {"BATON_TIMEOUT", "seconds", "found \"-1\""});
  says("BATON_TIMEOUT", "5s", {"BATON_TIMEOUT", "found \"5s\""});
  says("BATON_WINDOW", "0", {"BATON_WINDOW", "at least 1", "found \"0\""});
  says("BATON_PLANS", "many", {"BATON_PLANS", "whole number", "found \"many\""});
  says("BATON_TRACE_EVENTS", "0", {"BATON_TRACE_EVENTS", "at least 1", "found \"0\""});
  says("BATON_ALL_REDUCE", ":128K", {"BATON_ALL_REDUCE", "algorithm[:segment]"});
  says("BATON_ALL_REDUCE", "ring:lots", {"BATON_ALL_REDUCE", "segment", "found \"ring:lots\""});
}

TEST_CASE("options by name") {
  Options options;
  options.set("BATON_CHECK", "1");
  options.set("BATON_TIMEOUT", "0.5");
  options.set("BATON_TABLE", "some.table");
  options.set("BATON_REDUCE_SCATTER", "ring:64K");
  CHECK(options.check);
  CHECK(options.timeout == std::chrono::milliseconds(500));
  // A short timeout is not rounded to none.
  const std::pair<const char*, int> timeouts[] = {{"0", 0},      {"0.0000001", 1}, {"0.0005", 1},
                                                  {"0.0014", 1}, {"1.001", 1001},  {"16.1", 16100}};
  for (const auto& timeout : timeouts) {
    options.set("BATON_TIMEOUT", timeout.first);
    CHECK_MESSAGE(options.timeout == std::chrono::milliseconds(timeout.second),
                  std::string(timeout.first));
  }
  CHECK(options.table == "some.table");
  CHECK(choice_of(options, Collective::reduce_scatter) == Choice{"ring", 65536});
  CHECK(choice_of(options, Collective::all_reduce) == Choice{});
  CHECK(holds(error_of([&] { options.set("BATON_WINDOW", "none"); }).what(),
              {"BATON_WINDOW", "found \"none\""}));
  CHECK(options.window == Options().window);
  for (const char* unknown : {"BATON_CHEKC", "BATON_SINGLE_COPY", ""}) {
    const Error error = error_of([&] { options.set(unknown, "1"); });
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK_MESSAGE(holds(error.what(), {"BATON_CHECK, BATON_EXPLAIN",
                                       "BATON_BARRIER), found \"" + std::string(unknown)}),
                  std::string(error.what()));
  }
}

TEST_CASE("choices in words") {
  CHECK(parse_choice("ring") == Choice{"ring"});
  CHECK(parse_choice("ring:0") == Choice{"ring", 0});
  CHECK(parse_choice("ring:2M") == Choice{"ring", 2 << 20});
  for (const char* bad : {"", ":128K", "ring:", "ring:lots"}) {
    const Error error = error_of([&] { parse_choice(bad); });
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK(holds(error.what(),
                {"choice: expected algorithm[:segment]", "found \"" + std::string(bad)}));
  }
}

TEST_CASE("bytes in words") {
  CHECK(parse_bytes("8") == 8);
  CHECK(parse_bytes("128K") == 131072);
  CHECK(parse_bytes("64m") == 64 << 20);
  CHECK(parse_bytes("3G") == std::int64_t{3} << 30);
  for (const char* bad : {"", "K", "-1", "1.5K", "1KB", "99999999999G", "8 "}) {
    CHECK_MESSAGE(error_of([&] { parse_bytes(bad); }).code == ErrorCode::invalid_argument,
                  std::string(bad));
  }
}

TEST_CASE("every option has a row for help texts") {
  std::vector<std::string> names;
  for (const OptionInfo& row : option_table()) {
    CHECK(!row.meaning.empty());
    names.push_back(row.variable);
  }
  for (const char* expected : {"BATON_CHECK", "BATON_TIMEOUT", "BATON_FLIGHT", "BATON_SECRET",
                               "BATON_INTERFACE", "BATON_REDUCE_SCATTER", "BATON_BARRIER"}) {
    CHECK(std::find(names.begin(), names.end(), expected) != names.end());
  }
  CHECK(names.size() == 13 + collective_count);
}

TEST_CASE("what affects messages is rank 0's on all ranks") {
  run_threads(3, [](std::unique_ptr<Transport> transport) {
    const int rank = transport->rank();
    Options own = test_options();
    own.check = rank == 0;
    own.window = 1 + rank;
    own.choices[static_cast<std::size_t>(Collective::all_reduce)] =
        rank == 0 ? Choice{"tree", 64} : Choice{"ring", 0};
    own.choices[static_cast<std::size_t>(Collective::scan)] =
        rank == 1 ? Choice{"no_such_thing", 0} : Choice{};
    Communicator c(std::move(transport), own);
    CHECK(c.options().check);
    CHECK(c.options().window == 1 + rank);
    std::vector<std::int32_t> x(100, 1);
    CHECK(c.chosen(calls::all_reduce(x, x, sum)) == Choice{"tree", 64});
    c.all_reduce(x, sum);
    CHECK(x == std::vector<std::int32_t>(100, 3));
    c.scan(x, x, sum);
    CHECK(x[0] == 3 * (rank + 1));
  });
}

TEST_CASE("an option that names an unknown algorithm is refused when it matters") {
  Options options = test_options();
  options.choices[static_cast<std::size_t>(Collective::all_reduce)] = {"rong", 0};
  on_ranks(
      2,
      [](Communicator& c) {
        std::vector<float> x(4, 1);
        c.broadcast(x, 0);
        CHECK(holds(error_of([&] { c.all_reduce(x, sum); }).what(),
                    {"all_reduce", "found \"rong\""}));
        c.all_reduce(x, sum, {"ring", 0});  // the call's own choice comes first
        CHECK(x[0] == 2);
      },
      options);
}
