#include <algorithm>
#include <string_view>
#include <tuple>
#include <vector>

#include "row.hpp"

namespace baton {

Algorithm algorithms::algorithm_of(const Row& row) {
  return {.collective = row.collective,
          .name = row.name,
          .generate = row.generate,
          .cost = row.cost,
          .refuses = row.refuses,
          .uneven = row.uneven,
          .ordered = row.ordered,
          .pipelined = row.pipelined,
          .hierarchical = row.hierarchical,
          .neighbors = row.neighbors,
          .rounds = row.rounds,
          .depth = row.depth,
          .sent = row.sent,
          .source = row.source};
}

Registry Registry::builtin() {
  std::vector<const algorithms::Row*> rows;
  for (const algorithms::NamedRow& named : algorithms::all_rows()) rows.push_back(named.row);
  std::ranges::sort(rows, {}, [](const algorithms::Row* row) {
    return std::tuple(row->collective, row->place, std::string_view(row->name));
  });
  Registry table;
  for (const algorithms::Row* row : rows) table.add(algorithms::algorithm_of(*row));
  return table;
}

}  // namespace baton
