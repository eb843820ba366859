#include "commands.hpp"

#include <fmt/core.h>

#include <charconv>

#include "baton/options.hpp"

namespace baton::cli {

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  const auto check = [=](std::string& text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    if (whole && value >= least && value <= most) return std::string();
    return most == INT64_MAX
               ? fmt::format("expected a whole number of at least {}, found \"{}\"", least, text)
               : fmt::format("expected a whole number from {} to {}, found \"{}\"", least, most,
                             text);
  };
  return CLI::Validator(check, "");
}

std::string environment_help() {
  std::string text = "Environment:\n";
  for (const OptionInfo& option : option_table()) {
    text += fmt::format("  {:<42} {}\n", fmt::format("{}={}", option.variable, option.form),
                        option.meaning);
  }
  return text;
}

}  // namespace baton::cli
