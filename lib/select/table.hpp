#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "baton/options.hpp"
#include "baton/schedule/algorithm.hpp"
#include "baton/transport.hpp"

namespace baton::selecting {

/// The hosts and the transport for which a tuning table holds.
struct TableScope {
  std::string transport;  ///< Capabilities::name
  std::string library;    ///< Capabilities::library; empty in a table: any
  std::string hosts;      ///< as print(Hosts) writes it: "1x2", "8x1", "0,1,0,1"

  /// Whether a table of this scope holds for a communicator of the given one.
  bool holds_for(const TableScope& communicator) const;
  bool operator==(const TableScope&) const = default;
};
std::string print(const TableScope& scope);

/// The scope of a communicator; `hosts` null: one host.
TableScope scope_of(const Transport& transport, const Hosts* hosts);

/// Holds from this many bytes on, counted as in `baton run`, up to the next row of the collective.
struct TuningRow {
  Collective collective = Collective::all_reduce;
  std::int64_t from = 0;
  Choice choice;
  bool operator==(const TuningRow&) const = default;
};

/// The measurements of one scope.
struct TableSection {
  TableScope scope;
  std::string machine;          ///< of the measurement, for readers
  std::vector<TuningRow> rows;  ///< by collective, then ascending

  /// The row that holds for so many bytes, or null.
  const TuningRow* find(Collective collective, std::int64_t bytes) const;
  bool operator==(const TableSection&) const = default;
};

/// A tuning table, as `baton tune` writes it. README.md describes the text form.
struct Table {
  std::string origin;  ///< its file, for errors and reasons
  std::vector<TableSection> sections;

  /// The first section that holds for the communicator, or null.
  const TableSection* find(const TableScope& communicator) const;
  /// The same; throws Error(invalid_argument) that names the table's scope and the communicator's.
  const TableSection& require(const TableScope& communicator) const;
};

/// Reads a table. Throws Error(invalid_argument) that names `origin` and the line, for example for
/// another version of the form or for an algorithm that is not in `registry`.
Table parse_table(std::string_view text, const std::string& origin, const Registry& registry);
std::string print(const TableSection& section);

/// The text of a file or, by name, of a table of the library. Throws Error(invalid_argument) that
/// lists the names.
std::string table_text(const std::string& file_or_name);

/// Whether the collective has one block per rank, so that its count is a rank's share.
bool blockwise(Collective collective);

/// Bytes of the problem's data, counted as in `baton run`: of the vector, or of all blocks.
std::int64_t table_bytes(const Problem& problem, std::size_t element_bytes);

}  // namespace baton::selecting
