/// Tuning tables.

#include "select/table.hpp"

#include "target.hpp"

using namespace baton;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Registry& registry = Registry::builtin();
  selecting::Table table;
  const bool is_one = fuzz::accepted(
      [&] { table = selecting::parse_table(fuzz::text_of(data, size), "table", registry); });
  if (!is_one) return 0;
  for (const selecting::TableSection& section : table.sections) {
    const selecting::Table again =
        selecting::parse_table(print(section), "printed table", registry);
    fuzz::require(again.sections.at(0) == section, "print() is read back");
  }
  return 0;
}
