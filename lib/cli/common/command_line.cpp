#include "command_line.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

// No other source includes it: it takes seconds to compile.
#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <utility>

#include "baton/error.hpp"
#include "baton/options.hpp"
#include "baton/version.hpp"

namespace baton::cli {
namespace {

/// Shows the form of an option only, not the options that it excludes.
class Help final : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 ? "" : " " + option->get_type_name();
  }
  /// A flag's own value, in braces, stands in its text.
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    const std::string name = Formatter::make_option_name(option, positional);
    const auto brace = name.find('{');
    return brace == std::string::npos ? name : name.substr(0, brace) + "[=N]";
  }
};

}  // namespace

Option Option::form(const std::string& name) const {
  option_->type_name(name);
  return *this;
}

Option Option::range(std::int64_t least, std::int64_t most) const {
  return check([=](const std::string& text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    if (whole && value >= least && value <= most) return std::string();
    return most == INT64_MAX
               ? fmt::format("expected a whole number of at least {}, found \"{}\"", least, text)
               : fmt::format("expected a whole number from {} to {}, found \"{}\"", least, most,
                             text);
  });
}

Option Option::one_of(const std::vector<std::string>& values) const {
  option_->check(CLI::IsMember(values));
  return *this;
}

Option Option::check(const std::function<std::string(const std::string&)>& wrong) const {
  option_->check(CLI::Validator([wrong](std::string& text) { return wrong(text); }, ""));
  return *this;
}

Option Option::excludes(const std::vector<Option>& others) const {
  for (const Option& other : others) option_->excludes(other.option_);
  return *this;
}

Option Option::needs(const Option& other) const {
  option_->needs(other.option_);
  return *this;
}

Option Option::required() const {
  option_->required();
  return *this;
}

Option Option::last_counts() const {
  option_->take_last();
  return *this;
}

Option Option::one_value_each() const {
  option_->allow_extra_args(false);
  return *this;
}

template <class T>
Option OptionSet::add(const std::string& names, T& target, const std::string& help) const {
  return Option(app_.add_option(names, target, help));
}
template Option OptionSet::add(const std::string&, std::string&, const std::string&) const;
template Option OptionSet::add(const std::string&, int&, const std::string&) const;
template Option OptionSet::add(const std::string&, std::int64_t&, const std::string&) const;
template Option OptionSet::add(const std::string&, std::uint64_t&, const std::string&) const;
template Option OptionSet::add(const std::string&, double&, const std::string&) const;
template Option OptionSet::add(const std::string&, std::vector<int>&, const std::string&) const;
template Option OptionSet::add(const std::string&, std::vector<std::string>&,
                               const std::string&) const;
template Option OptionSet::add(const std::string&, std::vector<double>&, const std::string&) const;
Option OptionSet::flag(const std::string& names, bool& target, const std::string& help) const {
  return Option(app_.add_flag(names, target, help));
}
Option OptionSet::flag(const std::string& name, int& target, int value,
                       const std::string& help) const {
  return Option(app_.add_flag(fmt::format("{}{{{}}}", name, value), target, help));
}
void OptionSet::footer(const std::string& text) const { app_.footer(text); }

CommandLine::CommandLine(const std::string& program, const std::string& description)
    : name_(program), app_(std::make_unique<CLI::App>(description, program)) {
  app_->formatter(std::make_shared<Help>());
  app_->set_version_flag("--version", program + " " + version());
}

CommandLine::~CommandLine() = default;

OptionSet CommandLine::options() const { return OptionSet(*app_); }

OptionSet CommandLine::add_command(const std::string& name, const std::string& description,
                                   Command command) {
  app_->require_subcommand(1);
  commands_.push_back(name);
  CLI::App* const added = app_->add_subcommand(name, description);
  added->callback([this, command = std::move(command)] { chosen_ = command; });
  return OptionSet(*added);
}

std::optional<int> CommandLine::parse(int argc, char** argv, bool speaks) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success& answer) {
    if (speaks) app_->exit(answer);
    return 0;
  } catch (const CLI::ParseError& error) {
    std::string sentence = fmt::format("{} (see --help)", error.what());
    if (!commands_.empty() && app_->get_subcommands().empty()) {
      sentence = fmt::format("expected a command ({}), found {}", fmt::join(commands_, ", "),
                             argc > 1 ? fmt::format("\"{}\"", argv[1]) : "none (see --help)");
    }
    throw Error(ErrorCode::invalid_argument, sentence);
  }
  return std::nullopt;
}

int CommandLine::run(int argc, char** argv) {
  std::unique_ptr<Launch> launch;
  try {
    launch = Launch::start(argc, argv);
    const std::optional<int> answered = parse(argc, argv, launch->rank() == 0);
    return answered ? *answered : chosen_(*launch);
  } catch (const std::exception& error) {
    const int rank = launch ? launch->rank() : launcher_rank();
    if (rank == 0) fmt::print(stderr, "{}: {}\n", name_, error.what());
    return 2;
  }
}

int CommandLine::main(int argc, char** argv) {
  const int code = run(argc, argv);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  fmt::print(stderr, "{}: cannot write the results to standard output\n", name_);
  return 2;
}

Option add_progress(const OptionSet& set, bool& progress) {
  return set.flag("--progress", progress, "show progress even if stderr is not a terminal");
}

Option add_json(const OptionSet& set, bool& json, const std::string& more) {
  return set.flag("--json", json, "print JSON" + more);
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
