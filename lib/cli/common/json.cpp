#include "json.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace baton::cli {

std::string text_of(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void print(const Json& json) { fmt::print("{}", text_of(json)); }

}  // namespace baton::cli
