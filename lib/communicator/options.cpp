#include "baton/options.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <optional>

#include "../base/raise.hpp"

namespace baton {
namespace {

[[noreturn]] void refuse(std::string_view variable, std::string_view expected,
                         std::string_view found) {
  base::refuse("{}: expected {}, found \"{}\"", variable, expected, found);
}

std::string choice_variable(Collective collective) {
  std::string variable = fmt::format("BATON_{}", name(collective));
  std::transform(variable.begin(), variable.end(), variable.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return variable;
}

bool parse_switch(std::string_view variable, std::string_view text) {
  if (text == "1") return true;
  if (text == "0" || text.empty()) return false;
  refuse(variable, "0 or 1", text);
}

int parse_level(std::string_view variable, std::string_view text) {
  if (text.empty()) return 0;
  if (text == "0" || text == "1" || text == "2") return text[0] - '0';
  refuse(variable, "0, 1 or 2", text);
}

/// The number that is all of the text; none: it is no number.
template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  return error == std::errc() && end == last ? std::optional(value) : std::nullopt;
}

int parse_count(std::string_view variable, std::string_view text) {
  const auto value = number<int>(text);
  if (!value || *value < 1) refuse(variable, "a whole number of at least 1", text);
  return *value;
}

std::chrono::milliseconds parse_seconds(std::string_view variable, std::string_view text) {
  const auto value = number<double>(text);
  if (!value || !(*value >= 0 && *value <= 1e9)) refuse(variable, "seconds of at least 0", text);
  const std::chrono::milliseconds time(std::llround(*value * 1000));
  return *value > 0 ? std::max(time, std::chrono::milliseconds(1)) : time;  // 0 is no limit
}

Choice choice_of(std::string_view variable, std::string_view text) {
  const std::size_t colon = text.find(':');
  Choice choice;
  choice.algorithm = text.substr(0, colon);
  if (choice.algorithm.empty()) refuse(variable, "algorithm[:segment]", text);
  if (colon != std::string_view::npos) {
    try {
      choice.segment = parse_bytes(text.substr(colon + 1));
    } catch (const Error&) {
      refuse(variable, "algorithm[:segment] with a segment like 131072 or 128K", text);
    }
  }
  return choice;
}

/// A row of option_table(); `set` is null where the variable sets no member of Options.
struct Row {
  OptionInfo info;
  std::function<void(Options&, std::string_view variable, std::string_view text)> set;
};

std::vector<Row> rows() {
  std::vector<Row> rows{
      {{"BATON_CHECK", "0|1|2",
        "1: compare every call among the ranks before anything is sent; 2: and give each message a "
        "checksum"},
       [](Options& o, auto variable, auto text) { o.check = parse_level(variable, text); }},
      {{"BATON_EXPLAIN", "0|1",
        "rank 0 prints each chosen algorithm and the reason on standard error"},
       [](Options& o, auto variable, auto text) { o.explain = parse_switch(variable, text); }},
      {{"BATON_TIMEOUT", "SECONDS", "give up after this long without progress; 0: never"},
       [](Options& o, auto variable, auto text) { o.timeout = parse_seconds(variable, text); }},
      {{"BATON_WINDOW", "N", "messages in flight per lane, peer and direction"},
       [](Options& o, auto variable, auto text) { o.window = parse_count(variable, text); }},
      {{"BATON_TABLE", "FILE", "tuning table (baton tune), or the name of a shipped one"},
       [](Options& o, auto, auto text) { o.table = text; }},
      {{"BATON_PLANS", "N", "number of plans kept for later calls"},
       [](Options& o, auto variable, auto text) { o.plans = parse_count(variable, text); }},
      {{"BATON_SINGLE_COPY", "0|1",
        "read large messages within a host in their sender's memory (default 1)"},
       nullptr},
      {{"BATON_TRANSPORT", "shm|ucx|mpi",
        "how processes are connected; by default shared memory where all run on one host, "
        "otherwise MPI under mpirun, UCX without"},
       nullptr},
      {{"BATON_SECRET", "TEXT",
        "without MPI: only processes with the same text may meet; it is never sent or printed"},
       nullptr},
      {{"BATON_INTERFACE", "NAMES",
        "where ranks run on several machines: the network interfaces, \"eth,ib\" or \"=eth0\" or "
        "\"^docker\", at which each rank answers others that look for the cause of a hang; set, "
        "also without a timeout"},
       nullptr},
      {{"BATON_TRACE", "FILE",
        "record every message's times; baton timeline --from FILE draws them"},
       [](Options& o, auto, auto text) { o.trace = text; }},
      {{"BATON_FLIGHT", "FILE",
        "when an operation fails, write the last operations of all ranks; baton timeline --from "
        "FILE draws them"},
       [](Options& o, auto, auto text) { o.flight = text; }},
      {{"BATON_TRACE_EVENTS", "N", "number of latest events that each rank keeps of a recording"},
       [](Options& o, auto variable, auto text) { o.trace_events = parse_count(variable, text); }},
  };
  for (int c = 0; c < collective_count; ++c) {
    const auto collective = static_cast<Collective>(c);
    rows.push_back({{choice_variable(collective), "ALGORITHM[:SEGMENT]",
                     fmt::format("algorithm of {}, and bytes per message piece", name(collective))},
                    [collective](Options& o, auto variable, auto text) {
                      o.choices[static_cast<std::size_t>(collective)] = choice_of(variable, text);
                    }});
  }
  return rows;
}

}  // namespace

std::int64_t parse_bytes(std::string_view text) {
  std::int64_t value = 0;
  const char* const last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, value);
  int shift = 0;
  if (error == std::errc() && end != last) {
    constexpr std::string_view units = "KMGT";
    const auto unit = units.find(static_cast<char>(std::toupper(static_cast<unsigned char>(*end))));
    if (unit != std::string_view::npos) {
      shift = 10 * static_cast<int>(unit + 1);
      ++end;
    }
  }
  if (error != std::errc() || end != last || value < 0 ||
      value > (std::int64_t{1} << (62 - shift))) {
    base::refuse("expected bytes like 8, 128K or 64M, found \"{}\"", text);
  }
  return value << shift;
}

Choice parse_choice(std::string_view text) { return choice_of("choice", text); }

std::vector<OptionInfo> option_table() {
  std::vector<OptionInfo> table;
  for (const Row& row : rows()) table.push_back(row.info);
  return table;
}

Options Options::from_environment() {
  Options options;
  for (const Row& row : rows()) {
    const char* const text = std::getenv(row.info.variable.c_str());
    if (text != nullptr && row.set) row.set(options, row.info.variable, text);
  }
  return options;
}

void Options::set(std::string_view variable, std::string_view text) {
  std::string known;
  for (const Row& row : rows()) {
    if (!row.set) continue;
    if (row.info.variable == variable) return row.set(*this, variable, text);
    known += (known.empty() ? "" : ", ") + row.info.variable;
  }
  base::refuse("expected an option of a communicator ({}), found \"{}\"", known, variable);
}

}  // namespace baton
