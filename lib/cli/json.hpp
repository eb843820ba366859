#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::cli {

/// A JSON value, as text.
class Json {
 public:
  Json(std::string_view text);  // NOLINT: text is a value
  Json(const std::string& text) : Json(std::string_view(text)) {}
  Json(const char* text) : Json(std::string_view(text)) {}
  Json(double number);  ///< null if it is not finite
  Json(bool value) : text_(value ? "true" : "false") {}
  template <std::integral T>
  Json(T number) : text_(std::to_string(number)) {}

  static Json null() { return Json(Raw{"null"}); }
  static Json array(const std::vector<Json>& values);
  static Json object(std::initializer_list<std::pair<std::string_view, Json>> members);

  const std::string& text() const { return text_; }
  /// Writes the value and a newline to standard output.
  void print() const;

 private:
  struct Raw {
    std::string text;
  };
  explicit Json(Raw raw) : text_(std::move(raw.text)) {}
  std::string text_;
};

}  // namespace baton::cli
