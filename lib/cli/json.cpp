#include "json.hpp"

#include <fmt/core.h>

#include <cmath>

namespace baton::cli {

Json::Json(std::string_view text) {
  text_ = '"';
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (c == '\n') {
      text_ += "\\n";
    } else if (code < 0x20) {
      text_ += fmt::format("\\u{:04x}", code);
    } else {
      text_ += c;
    }
  }
  text_ += '"';
}

Json::Json(double number) : text_(std::isfinite(number) ? fmt::format("{:.6g}", number) : "null") {}

Json Json::array(const std::vector<Json>& values) {
  std::string text = "[";
  for (const Json& value : values) {
    if (text.size() > 1) text += value.text_.starts_with('{') ? ",\n" : ", ";
    text += value.text_;
  }
  return Json(Raw{text + "]"});
}

Json Json::object(std::initializer_list<std::pair<std::string_view, Json>> members) {
  std::string text = "{";
  for (const auto& [key, value] : members) {
    text += (text.size() > 1 ? ", " : "") + Json(key).text_ + ": " + value.text_;
  }
  return Json(Raw{text + "}"});
}

void Json::print() const { fmt::print("{}\n", text_); }

}  // namespace baton::cli
