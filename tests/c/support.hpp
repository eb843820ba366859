#pragma once
/// Ranks for tests of the C interface.

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "baton/baton.h"
#include "support/ranks.hpp"

/// The call succeeds; its sentence otherwise. The rest of the case is skipped.
#define OK(call) REQUIRE_MESSAGE((call) == BATON_OK, std::string(baton_last_error()))

/// The call ends with this status and a sentence that holds these parts, in this order.
#define FAILS(call, status, ...)                                        \
  do {                                                                  \
    CHECK_MESSAGE((call) == (status), std::string(baton_last_error())); \
    CHECK_MESSAGE(support::holds(baton_last_error(), __VA_ARGS__),      \
                  std::string(baton_last_error()));                     \
  } while (false)

namespace c_support {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// Options under which a hang becomes an error, and others; destroyed at the end of the scope.
class Options {
 public:
  explicit Options(const Settings& settings = {}) {
    OK(baton_options_create(&own_));
    const auto seconds = support::test_options().timeout.count() / 1000;
    OK(baton_options_set(own_, "BATON_TIMEOUT", std::to_string(seconds).c_str()));
    for (const auto& [name, value] : settings)
      OK(baton_options_set(own_, name.c_str(), value.c_str()));
  }
  ~Options() { baton_options_destroy(own_); }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;
  operator const baton_options*() const { return own_; }  // NOLINT: they are options

 private:
  baton_options* own_ = nullptr;
};

using Body = std::function<void(baton_communicator*)>;

/// Runs `body` on `size` threads. An exception or a failed REQUIRE of a rank fails the test.
inline void on_ranks(int size, const Body& body, const Settings& settings = {}) {
  support::Watchdog watchdog(size, std::chrono::seconds(240));
  const auto call = [](baton_communicator* world, void* context) {
    (*static_cast<const Body*>(context))(world);
    return 0;
  };
  CHECK_MESSAGE(
      baton_run_threads(size, Options(settings), call, const_cast<Body*>(&body)) == BATON_OK,
      std::string(baton_last_error()));
}

/// A text of a function that gives one, in full.
template <class Give>
std::string text_of(const Give& give) {
  std::size_t length = 0;
  OK(give(nullptr, 0, &length));
  std::string text(length + 1, '?');
  OK(give(text.data(), text.size(), nullptr));
  CHECK(text.back() == '\0');
  text.pop_back();
  return text;
}

}  // namespace c_support
