#include "values.hpp"

#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>

#include "baton/error.hpp"

namespace baton::transformer::program {

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  const auto check = [=](const std::string& text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    if (whole && value >= least && value <= most) return std::string();
    return fmt::format("expected a whole number from {} to {}, found \"{}\"", least, most, text);
  };
  return CLI::Validator(check, "");
}

CLI::Validator number(double least, double below) {
  const auto check = [=](const std::string& text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is = error == std::errc() && end == text.data() + text.size();
    if (is && value >= least && value < below) return std::string();
    return below == HUGE_VAL
               ? fmt::format("expected a number of at least {}, found \"{}\"", least, text)
               : fmt::format("expected a number within [{}, {}), found \"{}\"", least, below, text);
  };
  return CLI::Validator(check, "");
}

std::string file_contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file && file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (!file.is_open() || file.bad())
    refuse(fmt::format("{}: expected a file that can be read, found none", path));
  return text.str();
}

void refuse(const std::string& sentence) { throw Error(ErrorCode::invalid_argument, sentence); }

}  // namespace baton::transformer::program
