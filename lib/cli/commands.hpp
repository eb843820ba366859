#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "world.hpp"

namespace baton::cli {

/// What the command line asks for, to be called on every process; its result is the exit code: 0,
/// or 1 where something was found wrong. Throws Error for what is wrong with the program's use.
using Command = std::function<int(Launch&)>;

/// Each adds a subcommand, which sets `command` when it is parsed.
void add_list(CLI::App& app, Command& command);
void add_run(CLI::App& app, Command& command);
void add_bench(CLI::App& app, Command& command);
void add_verify(CLI::App& app, Command& command);
void add_explain(CLI::App& app, Command& command);
void add_timeline(CLI::App& app, Command& command);
void add_calibrate(CLI::App& app, Command& command);
void add_simulate(CLI::App& app, Command& command);
void add_tune(CLI::App& app, Command& command);

/// A whole number from `least` to `most`, with an error that says so.
CLI::Validator whole_number(std::int64_t least, std::int64_t most);
/// The environment variables that the library reads, for help texts.
std::string environment_help();

}  // namespace baton::cli
