#include "flight.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "../trace/part.hpp"

namespace baton::status {
namespace {

/// An operation of a page, and the name under which it is drawn.
struct Named {
  std::int64_t begin, end;
  std::string name;
};

void add(std::vector<Named>& row, const Standing& page, bool largest) {
  for (const Operation& operation : page.operations) {
    std::string name = describe(operation.call);
    if (!largest) name += fmt::format(", {}", page.label);
    if (operation.under_way()) name += ", under way";
    row.push_back({operation.begin_ns, operation.under_way() ? page.read_ns : operation.end_ns,
                   std::move(name)});
  }
}

tracing::Part part_of(int rank, int ranks, std::vector<Named> row) {
  tracing::Part part;
  part.rank = rank;
  part.ranks = ranks;
  part.groups.push_back({{rank}, 0});
  std::ranges::stable_sort(row, {}, &Named::begin);
  std::map<std::string, std::uint32_t> plans;
  std::int64_t free_from = 0;
  std::uint32_t sequence = 0;
  for (const Named& one : row) {
    const auto [found, fresh] =
        plans.try_emplace(one.name, static_cast<std::uint32_t>(part.plans.size()));
    if (fresh) {
      TimedOperation what;
      what.name = one.name;
      part.plans.push_back({0, std::move(what), tracing::schedule_of({.name = one.name})});
    }
    const std::int64_t begin = std::max(one.begin, free_from), end = std::max(one.end, begin);
    part.records.push_back({begin, begin, end, found->second, sequence++, 0});
    free_from = end;
  }
  return part;
}

}  // namespace

std::string recording_of(std::span<const Standing> pages) {
  if (pages.empty()) return {};
  // Of equal ones, that from which the others were split, whose label is shorter.
  const Standing& largest = *std::ranges::max_element(pages, {}, [](const Standing& page) {
    return std::pair(page.size, -static_cast<int>(page.label.size()));
  });
  std::map<int, std::vector<Named>> rows;
  using Thread = std::tuple<std::uint64_t, std::int64_t, std::int32_t>;
  const auto thread_of = [](const Standing& page) {
    return Thread(page.process.machine, page.process.pid, page.thread);
  };
  std::map<Thread, int> row_of;
  for (const Standing& page : pages) {
    if (page.communicator != largest.communicator) continue;
    row_of[thread_of(page)] = page.rank;
    add(rows[page.rank], page, true);
  }
  for (const Standing& page : pages) {
    const auto row = row_of.find(thread_of(page));
    if (page.communicator != largest.communicator && row != row_of.end())
      add(rows[row->second], page, false);
  }
  std::string bytes = tracing::file_head();
  for (auto& [rank, row] : rows)
    bytes += tracing::written(part_of(rank, largest.size, std::move(row)));
  return bytes;
}

}  // namespace baton::status
