#include "table.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/line_reader.hpp"
#include "baton/error.hpp"
#include "shipped_tables.hpp"

namespace baton::selecting {
namespace {

// Of all sections of a table: few bytes may name many.
constexpr std::int64_t most_ranks = 1 << 21;
constexpr std::size_t most_sections = 1000;

class TableReader : base::LineReader {
 public:
  TableReader(std::string_view text, const std::string& origin, const Registry& registry)
      : LineReader(text, origin), registry_(registry) {
    table_.origin = origin;
  }

  Table read() {
    while (next_line()) {
      read_line(next_word());
      end_line();
    }
    if (table_.sections.empty()) {
      fail(begin_ ? "\"hosts\"" : "\"baton-table 1\"", "the end of the text");
    }
    return std::move(table_);
  }

 private:
  void read_line(std::string_view word) {
    if (word == "baton-table") {
      if (const auto version = rest(); version != "1") fail("version 1 of the form", version);
      begin_ = true;
      common_ = {};
    } else if (!begin_) {
      fail("\"baton-table 1\"", word);
    } else if (word == "transport") {
      common_.scope.transport = rest();
    } else if (word == "library") {
      common_.scope.library = rest();
    } else if (word == "machine") {
      common_.machine = rest();
    } else if (word == "hosts") {
      begin_section(std::string(rest()));
    } else {
      read_row(word);
    }
  }

  void begin_section(const std::string& hosts) {
    if (common_.scope.transport.empty()) fail("\"transport\" before \"hosts\"", "none");
    TableSection section = common_;
    const Hosts parsed = here([&] { return parse_hosts(hosts); });
    if (table_.sections.size() == most_sections)
      refuse(fmt::format("at most {} sections", most_sections), "more");
    ranks_ += parsed.size();
    if (ranks_ > most_ranks)
      refuse(fmt::format("sections of at most {} ranks", most_ranks), "more");
    section.scope.hosts = print(parsed);
    if (table_.find(section.scope)) fail("hosts without a section above", hosts);
    table_.sections.push_back(std::move(section));
  }

  void read_row(std::string_view word) {
    if (table_.sections.empty()) fail("\"hosts\" before the rows", word);
    TuningRow row;
    row.collective = here([&] { return collective_named(word); });
    row.from = here([&] { return parse_bytes(next_word()); });
    row.choice.algorithm = next_word();
    here([&] { registry_.find(row.collective, row.choice.algorithm); });
    row.choice.segment = here([&] { return parse_bytes(next_word()); });
    end_line();
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

  const Registry& registry_;
  bool begin_ = false;
  std::int64_t ranks_ = 0;  // of all sections
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
  return TableReader(text, origin, registry).read();
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

bool blockwise(Collective collective) {
  using enum Collective;
  constexpr Collective all[] = {gather, scatter, all_gather, reduce_scatter, all_to_all};
  return std::ranges::find(all, collective) != std::end(all);
}

std::int64_t table_bytes(const Problem& problem, std::size_t element_bytes) {
  if (problem.collective == Collective::barrier) return 0;
  const std::int64_t elements =
      blockwise(problem.collective) ? problem.total_count() : problem.count;
  return elements * static_cast<std::int64_t>(element_bytes);
}

}  // namespace baton::selecting
