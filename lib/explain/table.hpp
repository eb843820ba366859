#pragma once

#include <string>
#include <vector>

namespace baton::explaining {

/// A cell is a list of words, aligned to the right, one below the other within a column. A word "|"
/// or a word in parentheses divides it.
using TableCell = std::vector<std::string>;

struct TableRow {
  std::string label;
  std::vector<TableCell> cells;
};

/// Rows under column heads, columns aligned, no blanks at line ends.
std::string table(const std::vector<std::string>& heads, const std::vector<TableRow>& rows);

}  // namespace baton::explaining
