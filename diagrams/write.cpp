#include <fmt/core.h>

#include "baton/error.hpp"
#include "baton/output_file.hpp"
#include "diagrams.hpp"

namespace baton::diagrams {
namespace {

struct Form {
  std::string_view ending;
  std::string (*render)(const Timeline&, const Options&);
  bool converted = false;  ///< by rsvg-convert, to what the ending says
};

std::string goal_of(const Timeline& timeline, const Options&) { return goal(timeline); }

constexpr Form forms[] = {{"svg", svg},      {"drawio", drawio}, {"json", chrome_trace},
                          {"html", page},    {"goal", goal_of},  {"png", svg, true},
                          {"pdf", svg, true}};

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

const Form& form_of(std::string_view ending, std::string_view origin) {
  std::string known;
  for (const Form& form : forms) {
    if (form.ending == ending) return form;
    known += fmt::format("{}.{}", known.empty() ? "" : ", ", form.ending);
  }
  refuse(fmt::format("-o: expected a file that ends with one of {}, found \"{}\"", known, origin));
}

}  // namespace

std::string ending_of(const std::string& file) {
  const auto dot = file.rfind('.');
  return std::string(form_of(dot == std::string::npos ? "" : file.substr(dot + 1), file).ending);
}

std::string rendered(std::string_view ending, const Timeline& timeline, const Options& options) {
  return form_of(ending, ending).render(timeline, options);
}

void write(const std::string& file, const Timeline& timeline, const Options& options) {
  const Form& form = form_of(ending_of(file), file);
  const std::string text = form.render(timeline, options);
  if (form.converted) return convert(text, std::string(form.ending), file);
  write_file(file, text);
}

}  // namespace baton::diagrams
