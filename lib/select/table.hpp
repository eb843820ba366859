#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "baton/options.hpp"
#include "baton/schedule/algorithm.hpp"
#include "baton/transport.hpp"

namespace baton::selecting {

/// What a tuning table holds for: ranks on such hosts, over such a transport.
struct TableScope {
  std::string transport;  ///< Capabilities::name
  std::string library;    ///< Capabilities::library; empty in a table: any
  std::string hosts;      ///< as print(Hosts) says it: "1x2", "8x1", "0,1,0,1"

  /// Whether a table of this scope holds for a communicator of that.
  bool holds_for(const TableScope& communicator) const;
  bool operator==(const TableScope&) const = default;
};
std::string print(const TableScope& scope);

/// The scope of a communicator; `hosts` null: one.
TableScope scope_of(const Transport& transport, const Hosts* hosts);

/// From so many bytes on, counted as baton run counts them, up to the next row of the collective.
struct TuningRow {
  Collective collective = Collective::all_reduce;
  std::int64_t from = 0;
  Choice choice;
  bool operator==(const TuningRow&) const = default;
};

/// What was measured in one scope.
struct TableSection {
  TableScope scope;
  std::string machine;          ///< on which it was measured, for readers
  std::vector<TuningRow> rows;  ///< by collective, then ascending

  /// The row that holds for so many bytes, or null.
  const TuningRow* find(Collective collective, std::int64_t bytes) const;
  bool operator==(const TableSection&) const = default;
};

/// A tuning table, as `baton tune` writes it. The text form is described in README.md.
struct Table {
  std::string origin;  ///< of which file, for errors and reasons
  std::vector<TableSection> sections;

  /// The first section that holds for the communicator, or null.
  const TableSection* find(const TableScope& communicator) const;
  /// The same; throws Error(invalid_argument) that says what the table was made for, and what was
  /// found.
  const TableSection& require(const TableScope& communicator) const;
};

/// Reads a table. Throws Error(invalid_argument) naming `origin`, the line, what was expected and
/// what was found: among others another version of the form, or an algorithm that `registry` has
/// not.
Table parse_table(std::string_view text, const std::string& origin, const Registry& registry);
std::string print(const TableSection& section);

/// The text of a file, or of a table that comes with the library, by its name. Throws
/// Error(invalid_argument) that lists those.
std::string table_text(const std::string& file_or_name);

/// Bytes of the problem's data as `baton run` counts them: of the vector, or of all blocks.
std::int64_t table_bytes(const Problem& problem, std::size_t element_bytes);

}  // namespace baton::selecting
