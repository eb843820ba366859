#pragma once

#include <span>
#include <string_view>

namespace baton::selecting {

/// A tuning table that comes with the library: a file of tables/, without its suffix.
struct ShippedTable {
  std::string_view name, text;
};
std::span<const ShippedTable> shipped_tables();

}  // namespace baton::selecting
