#include "table.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "baton/error.hpp"
#include "shipped_tables.hpp"

namespace baton::selecting {
namespace {

constexpr std::string_view blanks = " \t\r";

/// Consumes the next word.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(blanks));
  line.remove_prefix(word.size());
  return word;
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

/// Reads a table line by line.
class TableReader {
 public:
  TableReader(const std::string& origin, const Registry& registry)
      : origin_(origin), registry_(registry) {
    table_.origin = origin;
  }

  void read(std::string_view line) {
    ++number_;
    std::string_view rest = trimmed(line.substr(0, line.find('#')));
    if (rest.empty()) return;
    const std::string_view word = take_word(rest);
    const std::string value(trimmed(rest));
    if (word == "baton-table") {
      if (value != "1") fail("version 1 of the form", value);
      begin_ = true;
      common_ = {};
    } else if (!begin_) {
      fail("\"baton-table 1\"", word);
    } else if (word == "transport") {
      common_.scope.transport = value;
    } else if (word == "library") {
      common_.scope.library = value;
    } else if (word == "machine") {
      common_.machine = value;
    } else if (word == "hosts") {
      begin_section(value);
    } else {
      read_row(word, value);
    }
  }
  Table finish() {
    if (table_.sections.empty()) {
      ++number_;
      fail(begin_ ? "\"hosts\"" : "\"baton-table 1\"", "the end of the text");
    }
    return std::move(table_);
  }

 private:
  [[noreturn]] void fail(std::string_view expected, std::string_view found) const {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}:{}: expected {}, found \"{}\"", origin_, number_, expected, found));
  }
  /// Calls read() and adds this line to its error.
  template <class Read>
  auto in_line(const Read& read) const {
    try {
      return read();
    } catch (const Error& error) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}:{}: {}", origin_, number_, error.what()));
    }
  }

  void begin_section(const std::string& hosts) {
    if (common_.scope.transport.empty()) fail("\"transport\" before \"hosts\"", "none");
    TableSection section = common_;
    section.scope.hosts = in_line([&] { return print(parse_hosts(hosts)); });
    if (table_.find(section.scope)) fail("hosts without a section above", hosts);
    table_.sections.push_back(std::move(section));
  }

  void read_row(std::string_view word, std::string_view rest) {
    if (table_.sections.empty()) fail("\"hosts\" before the rows", word);
    TuningRow row;
    row.collective = in_line([&] { return collective_named(word); });
    row.from = in_line([&] { return parse_bytes(take_word(rest)); });
    row.choice.algorithm = take_word(rest);
    in_line([&] { registry_.find(row.collective, row.choice.algorithm); });
    row.choice.segment = in_line([&] { return parse_bytes(take_word(rest)); });
    if (!trimmed(rest).empty()) fail("the end of the line", trimmed(rest));
    auto& rows = table_.sections.back().rows;
    const auto before = std::find_if(rows.rbegin(), rows.rend(), [&](const TuningRow& other) {
      return other.collective == row.collective;
    });
    if (before == rows.rend() ? row.from != 0 : row.from <= before->from) {
      fail(before == rows.rend() ? "the collective's first row to begin at 0"
                                 : fmt::format("a row from more than {} bytes", before->from),
           fmt::format("{}", row.from));
    }
    rows.push_back(std::move(row));
  }

  std::string origin_;
  const Registry& registry_;
  int number_ = 0;
  bool begin_ = false;
  TableSection common_;
  Table table_;
};

/// The most readable form: 128K, 64M.
std::string bytes_text(std::int64_t bytes) {
  for (const auto& [unit, letter] : {std::pair(1 << 20, 'M'), std::pair(1 << 10, 'K')}) {
    if (bytes > 0 && bytes % unit == 0) return fmt::format("{}{}", bytes / unit, letter);
  }
  return fmt::format("{}", bytes);
}

}  // namespace

bool TableScope::holds_for(const TableScope& communicator) const {
  return transport == communicator.transport && hosts == communicator.hosts &&
         (library.empty() || library == communicator.library);
}

std::string print(const TableScope& scope) {
  return fmt::format("hosts {} over {}{}{}{}", scope.hosts, scope.transport,
                     scope.library.empty() ? "" : " (", scope.library,
                     scope.library.empty() ? "" : ")");
}

TableScope scope_of(const Transport& transport, const Hosts* hosts) {
  const Capabilities can = transport.capabilities();
  return {can.name, can.library, hosts ? print(*hosts) : fmt::format("1x{}", transport.size())};
}

const TuningRow* TableSection::find(Collective collective, std::int64_t bytes) const {
  const TuningRow* found = nullptr;
  for (const TuningRow& row : rows) {
    if (row.collective == collective && row.from <= bytes) found = &row;
  }
  return found;
}

const TableSection* Table::find(const TableScope& communicator) const {
  const auto found = std::find_if(sections.begin(), sections.end(), [&](const TableSection& s) {
    return s.scope.holds_for(communicator);
  });
  return found == sections.end() ? nullptr : &*found;
}

const TableSection& Table::require(const TableScope& communicator) const {
  if (const TableSection* found = find(communicator)) return *found;
  std::vector<std::string> scopes;
  for (const TableSection& section : sections) scopes.push_back(print(section.scope));
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: expected a table for {}, found one for {}", origin,
                          print(communicator), fmt::join(scopes, ", ")));
}

Table parse_table(std::string_view text, const std::string& origin, const Registry& registry) {
  TableReader reader(origin, registry);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    reader.read(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.finish();
}

std::string print(const TableSection& section) {
  std::string text = fmt::format("baton-table 1\ntransport {}\n", section.scope.transport);
  const auto line = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += fmt::format("{} {}\n", name, value);
  };
  line("library", section.scope.library);
  line("machine", section.machine);
  line("hosts", section.scope.hosts);
  for (const TuningRow& row : section.rows) {
    text += fmt::format("{:<14} {:>5}  {:<22} {:>5}\n", name(row.collective), bytes_text(row.from),
                        row.choice.algorithm, bytes_text(row.choice.segment.value_or(0)));
  }
  return text;
}

std::string table_text(const std::string& file_or_name) {
  if (std::ifstream file(file_or_name); file) {
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  std::vector<std::string_view> known;
  for (const ShippedTable& table : shipped_tables()) {
    if (table.name == file_or_name) return std::string(table.text);
    known.push_back(table.name);
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("expected a tuning table, a file or one of {}, found \"{}\"",
                          fmt::join(known, ", "), file_or_name));
}

std::int64_t table_bytes(const Problem& problem, std::size_t element_bytes) {
  switch (problem.collective) {
    case Collective::barrier:
      return 0;
    case Collective::gather:
    case Collective::scatter:
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return problem.total_count() * static_cast<std::int64_t>(element_bytes);
    default:
      return problem.count * static_cast<std::int64_t>(element_bytes);
  }
}

}  // namespace baton::selecting
