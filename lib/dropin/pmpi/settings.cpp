#include "settings.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "baton/error.hpp"

namespace baton::pmpi {
namespace {

[[noreturn]] void refuse(const std::string& variable, const std::string& expected,
                         std::string_view found) {
  throw Error(ErrorCode::invalid_argument,
              variable + ": expected " + expected + ", found \"" + std::string(found) + "\"");
}

void take(Settings& settings, std::string_view name) {
  const auto index = [](std::string_view wanted) {
    return static_cast<std::size_t>(std::ranges::find(functions, wanted, &FunctionRow::name) -
                                    std::begin(functions));
  };
  if (const std::size_t i = index(name); i < function_count) {
    settings.blocking.set(i);
    return;
  }
  if (const std::size_t i = name.starts_with('i') ? index(name.substr(1)) : function_count;
      i < function_count) {
    settings.nonblocking.set(i);
    return;
  }
  std::string names;
  for (const FunctionRow& each : functions)
    names += (names.empty() ? "" : ", ") + std::string(each.name);
  refuse("BATON_PMPI", "only: with names among " + names + ", or one of these with an i in front",
         name);
}

}  // namespace

Settings Settings::parse(std::string_view what, std::string_view stats) {
  Settings settings;
  constexpr std::string_view only = "only:";
  if (what.empty()) {
    settings.blocking.set();
    settings.nonblocking.set();
  } else if (what.starts_with(only)) {
    for (std::size_t at = only.size(); at <= what.size();) {
      const std::size_t end = std::min(what.find(',', at), what.size());
      take(settings, what.substr(at, end - at));
      at = end + 1;
    }
  } else if (what != "off") {
    refuse("BATON_PMPI", "off or only:NAME,NAME...", what);
  }
  if (!stats.empty() && stats != "0" && stats != "1") refuse("BATON_PMPI_STATS", "0 or 1", stats);
  settings.stats = stats == "1";
  return settings;
}

Settings Settings::from_environment() {
  const auto value = [](const char* name) {
    const char* const text = std::getenv(name);
    return std::string_view(text ? text : "");
  };
  return parse(value("BATON_PMPI"), value("BATON_PMPI_STATS"));
}

}  // namespace baton::pmpi
