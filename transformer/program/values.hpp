#pragma once
/// The values that options of the command line take.

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::transformer::program {

/// The values of an option, each with its name.
template <class E>
using Names = std::vector<std::pair<std::string_view, E>>;

/// Empty if no name has this value.
template <class E>
std::string_view name_in(const Names<E>& names, E wanted) {
  for (const auto& [name, value] : names)
    if (value == wanted) return name;
  return "";
}

/// An option that is one of a few names, which must outlive the app.
template <class E>
CLI::Option* add_choice(CLI::App& app, const std::string& option, E& value, const Names<E>& names,
                        const std::string& meaning) {
  std::string form;
  for (const auto& [name, choice] : names) form += (form.empty() ? "" : "|") + std::string(name);
  const auto set = [&value, &names, option, form](const std::string& text) {
    for (const auto& [name, choice] : names) {
      if (name != text) continue;
      value = choice;
      return;
    }
    throw CLI::ValidationError(option, fmt::format("expected {}, found \"{}\"", form, text));
  };
  return app.add_option_function<std::string>(option, set, meaning)->type_name(form);
}

CLI::Validator whole_number(std::int64_t least, std::int64_t most = INT32_MAX);
/// From `least` on, and less than `below`.
CLI::Validator number(double least, double below);

/// The bytes of a file. Throws Error(invalid_argument) if it cannot be read.
std::string file_contents(const std::string& path);

/// Throws Error(invalid_argument).
[[noreturn]] void refuse(const std::string& sentence);

}  // namespace baton::transformer::program
