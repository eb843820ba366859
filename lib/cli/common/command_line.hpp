#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "baton/launch.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace baton::cli {

/// An option that was declared; its functions say more of it and can be chained.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  /// The name of its value in the help: "SIZE".
  Option form(const std::string& name) const;
  /// Its value is a whole number from `least` to `most`.
  Option range(std::int64_t least, std::int64_t most = INT64_MAX) const;
  Option one_of(const std::vector<std::string>& values) const;
  /// `wrong` returns a sentence that says what is wrong with a value; empty: nothing.
  Option check(const std::function<std::string(const std::string&)>& wrong) const;
  Option excludes(const std::vector<Option>& others) const;
  Option needs(const Option& other) const;
  Option required() const;
  /// It may be given several times: then the last value counts.
  Option last_counts() const;
  /// It may be given several times, with one value each.
  Option one_value_each() const;

 private:
  CLI::Option* option_;
};

/// Declares the options of a command. Each sets its target, which must outlive the parsing.
class OptionSet {
 public:
  explicit OptionSet(CLI::App& app) : app_(app) {}

  /// `names` is "-o,--output", or a name without dashes for what has no option before it.
  /// T: a text, a number, or a vector of them.
  template <class T>
  Option add(const std::string& names, T& target, const std::string& help) const;
  Option flag(const std::string& names, bool& target, const std::string& help) const;
  /// A flag that means `value`, or N where it is written as --name=N.
  Option flag(const std::string& name, int& target, int value, const std::string& help) const;
  /// Text below the options in the help.
  void footer(const std::string& text) const;

 private:
  CLI::App& app_;
};

/// A command, called on every process. Returns the exit code: 0, or 1 where a result is wrong.
/// Throws Error where the program is used wrongly.
using Command = std::function<int(Launch&)>;

/// A command that was added: its options are declared on `set`, and set the members of `options`.
template <class Options>
struct NewCommand {
  OptionSet set;
  std::shared_ptr<Options> options;
};

/// A program's command line: options of its own, or commands with options.
class CommandLine {
 public:
  CommandLine(const std::string& program, const std::string& description);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  OptionSet options() const;
  /// A command; its options are declared on what is returned.
  OptionSet add_command(const std::string& name, const std::string& description, Command command);
  /// The same of a command with options of its own.
  template <class Options>
  NewCommand<Options> add_command(const std::string& name, const std::string& description,
                                  int (*run)(const Options&, Launch&)) {
    const auto options = std::make_shared<Options>();
    return {add_command(name, description, [=](Launch& launch) { return run(*options, launch); }),
            options};
  }

  /// Sets all targets. Returns the exit code where the command line is answered at once (--help,
  /// --version), which `speaks` prints. Throws Error(invalid_argument).
  std::optional<int> parse(int argc, char** argv, bool speaks);
  /// Parses, runs the command on the ranks that were launched, prints what it throws as a sentence,
  /// and returns the exit code of the program.
  int main(int argc, char** argv);

 private:
  int run(int argc, char** argv);

  std::string name_;
  std::unique_ptr<CLI::App> app_;
  std::vector<std::string> commands_;
  Command chosen_;
};

/// Options that many commands have.
Option add_progress(const OptionSet& set, bool& progress);
Option add_json(const OptionSet& set, bool& json, const std::string& more = "");
/// Environment variables that the library reads, for help texts.
std::string environment_help();

}  // namespace baton::cli
