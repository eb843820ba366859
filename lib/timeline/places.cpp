#include "places.hpp"

#include <algorithm>
#include <iterator>

namespace baton::timing {
namespace {

bool continues(const Run& run, std::int64_t place) {
  return run.place == Run::unknown ? place == Run::unknown : run.place + run.length == place;
}

Run part(const Run& run, std::int64_t first, std::int64_t length) {
  return {run.place == Run::unknown ? Run::unknown : run.place + first, length};
}

}  // namespace

void append(Runs& runs, Run run) {
  if (run.length <= 0) return;
  if (!runs.empty() && continues(runs.back(), run.place)) {
    runs.back().length += run.length;
  } else {
    runs.push_back(run);
  }
}

Runs either(const Runs& first, const Runs& second) {
  Runs out;
  std::int64_t i_done = 0, j_done = 0;
  for (std::size_t i = 0, j = 0; i < first.size() && j < second.size();) {
    const std::int64_t length = std::min(first[i].length - i_done, second[j].length - j_done);
    append(out, first[i].place != Run::unknown ? part(first[i], i_done, length)
                                               : part(second[j], j_done, length));
    if ((i_done += length) == first[i].length) ++i, i_done = 0;
    if ((j_done += length) == second[j].length) ++j, j_done = 0;
  }
  return out;
}

/// Afterwards no run crosses `offset`.
void Places::split(std::int64_t offset) {
  auto next = runs_.lower_bound(offset);
  if (next == runs_.begin()) return;
  auto& [begin, run] = *std::prev(next);
  const std::int64_t first = offset - begin;
  if (run.length <= first) return;
  runs_.emplace_hint(next, offset, part(run, first, run.length - first));
  run.length = first;
}

void Places::write(std::int64_t offset, Run run) {
  if (run.length <= 0) return;
  split(offset);
  split(offset + run.length);
  auto next = runs_.erase(runs_.lower_bound(offset), runs_.lower_bound(offset + run.length));
  if (run.place == Run::unknown) return;
  if (next != runs_.end() && next->first == offset + run.length &&
      continues(run, next->second.place)) {
    run.length += next->second.length;
    next = runs_.erase(next);
  }
  if (next != runs_.begin()) {
    auto& [begin, before] = *std::prev(next);
    if (begin + before.length == offset && continues(before, run.place)) {
      before.length += run.length;
      return;
    }
  }
  runs_.emplace_hint(next, offset, run);
}

void Places::read(std::int64_t offset, std::int64_t length, Runs& out) const {
  const std::int64_t end = offset + length;
  auto at = runs_.upper_bound(offset);
  if (at != runs_.begin()) --at;
  for (; at != runs_.end() && at->first < end; ++at) {
    const std::int64_t first = std::max(at->first, offset);
    const std::int64_t last = std::min(at->first + at->second.length, end);
    if (last <= first) continue;
    append(out, {Run::unknown, first - offset});
    append(out, part(at->second, first - at->first, last - first));
    offset = last;
  }
  append(out, {Run::unknown, end - offset});
}

}  // namespace baton::timing
