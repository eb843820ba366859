#pragma once

#include <span>
#include <string_view>

namespace baton::selecting {

/// A tuning table of the library: a file of tables/, named without its suffix.
struct ShippedTable {
  std::string_view name, text;
};
std::span<const ShippedTable> shipped_tables();

}  // namespace baton::selecting
