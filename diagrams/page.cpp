#include "page.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "baton/error.hpp"
#include "baton/explain.hpp"
#include "diagrams.hpp"
#include "palette.hpp"
#include "text.hpp"
#include "view.hpp"

namespace baton::diagrams {
namespace {

constexpr int most_holding = 64;             // ranks whose memory is shown
constexpr std::size_t most_values = 16;      // of a rank
constexpr std::size_t most_walked = 100;     // kinds of operations whose memory is shown
constexpr std::int64_t most_steps = 100000;  // of all ranks of such an operation

/// A list in JSON of what `text` makes of each element.
template <class List, class Text>
std::string listed(const List& list, const Text& text) {
  std::string out = "[";
  for (const auto& element : list) {
    if (out.size() > 1) out += ',';
    fmt::format_to(std::back_inserter(out), "{}", text(element));
  }
  return out + ']';
}

int rounds_in(const TimedOperation& operation) {
  int rounds = 0;
  for (const Schedule& schedule : *operation.schedules)
    rounds = std::max(rounds, schedule.rounds());
  return rounds;
}

std::string after(int round) { return fmt::format("after round {}", round); }

/// The memory of ranks before the first round and after every one, also where nothing happens in
/// it; null if nobody could read it.
std::string memory_of(const TimedOperation& operation) {
  const auto ranks = static_cast<std::int64_t>(operation.schedules->size());
  const int rounds = rounds_in(operation);
  std::int64_t steps = 0;
  for (const Schedule& schedule : *operation.schedules)
    steps += static_cast<std::int64_t>(schedule.steps().size());
  if (ranks > most_holding || steps > most_steps || rounds > most_steps) return "null";
  try {
    WalkThrough how;
    how.most = most_values;
    if (!operation.op.empty()) how.op = op_named(operation.op);
    std::vector<Holdings> held = holdings(*operation.schedules, how);
    std::vector<std::string> rows;
    const auto add = [&](const Holdings& now) {
      rows.push_back(fmt::format("{{\"label\":{},\"ranks\":{}}}", json_text(now.label),
                                 listed(now.ranks, [](const std::vector<std::string>& words) {
                                   return listed(words, json_text);
                                 })));
    };
    add(held[0]);
    std::size_t at = 0;
    for (int round = 0; round < rounds; ++round) {
      if (at + 1 < held.size() && held[at + 1].label == after(round)) ++at;
      held[at].label = after(round);
      add(held[at]);
    }
    return listed(rows, [](const std::string& row) { return row; });
  } catch (const Error&) {
    return "null";  // too large, no collective, or reduced by an operation of the program's own
  }
}

/// Writes timelines as the data of a page.
class Page {
 public:
  Page(const Timeline& timeline, const Options& options) : timeline_(timeline), options_(options) {}

  std::string write() {
    const View view(timeline_, options_);
    std::string panels = panel(view, of_prediction());
    int origins = view.origins;
    if (options_.prediction) {
      Options its = options_;
      its.prediction = nullptr;
      const View predicted(*options_.prediction, its, true);
      origins = std::max(origins, predicted.origins);
      panels += "," + panel(predicted, {});
    }
    const Palette palette(origins);
    std::vector<int> numbers(static_cast<std::size_t>(std::min(origins, 96)));
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int>(i);
    constexpr StepKind kinds[] = {StepKind::send, StepKind::recv,   StepKind::fold,
                                  StepKind::copy, StepKind::divide, StepKind::compute};
    std::string data = fmt::format(
        "{{\"title\":{},\"facts\":{},\"capped\":{},\n\"kinds\":{},\n\"ranks\":{},\n\"colours\":{},"
        "\n"
        "\"chunks\":{},\n\"classes\":{},\n",
        json_text(heading(timeline_)), json_text(what_text(timeline_)), json_text(capped_),
        listed(kinds, [](StepKind kind) { return json_text(std::string(name(kind))); }),
        listed(view.ranks,
               [&](int rank) {
                 return fmt::format("{{\"number\":{},\"name\":{}}}", rank,
                                    json_text(rank_name(rank)));
               }),
        listed(numbers, [&](int i) { return json_text(palette[i].hex()); }),
        listed(chunks_,
               [](const ChunkName& chunk) {
                 return fmt::format(
                     "{{\"text\":{},\"origin\":{},\"reduced\":{}{}}}", json_text(chunk.text),
                     chunk.origin, chunk.reduced,
                     chunk.computation
                         ? fmt::format(",\"colour\":\"{}\"", colour_of(*chunk.computation).hex())
                         : "");
               }),
        listed(classes_of(timeline_), [](ComputationKind kind) {
          return fmt::format("{{\"name\":\"{}\",\"colour\":\"{}\"}}", legend_of(kind),
                             colour_of(kind).hex());
        }));
    data += operations();
    data += fmt::format(",\n\"panels\":[{}]}}", panels);
    std::string text(page_text());
    replace(text, "<!--title-->", escaped(heading(timeline_)));
    replace(text, "<!--data-->", data);
    return text;
  }

 private:
  static void replace(std::string& text, std::string_view mark, const std::string& by) {
    text.replace(text.find(mark), mark.size(), by);
  }

  std::string rank_name(int rank) const {
    const int host = timeline_.host_of(rank);
    if (static_cast<std::size_t>(host) < timeline_.host_names.size())
      return fmt::format("rank {}, {}", rank, timeline_.host_names[static_cast<std::size_t>(host)]);
    return timeline_.hosts.empty() ? fmt::format("rank {}", rank)
                                   : fmt::format("rank {}, host {}", rank, host);
  }

  /// How much later than predicted the timeline's events ended, by index.
  std::unordered_map<std::uint32_t, std::int64_t> of_prediction() const {
    std::unordered_map<std::uint32_t, std::int64_t> late;
    if (!options_.prediction) return late;
    for (const JoinedStep& step : joined_with_prediction(timeline_, options_))
      late[step.first] = step.difference;
    return late;
  }

  /// The round of an event's step, by its operation and rank.
  int round_of(const Timeline& timeline, const Event& event) {
    const TimedOperation& operation = timeline.operations[event.operation];
    int rank = event.rank;
    if (!operation.ranks.empty()) {
      auto& places = places_[&operation];
      if (places.empty()) {
        for (std::size_t r = 0; r < operation.ranks.size(); ++r)
          places[operation.ranks[r]] = static_cast<int>(r);
      }
      rank = places[event.rank];
    }
    return (*operation.schedules)[static_cast<std::size_t>(rank)].steps()[event.step].round;
  }

  std::uint32_t chunk_of(const Timeline& timeline, const Event& event) {
    if (event.chunk >= timeline.chunks.size()) return Event::none;
    const ChunkName& chunk = timeline.chunks[event.chunk];
    const auto [at, added] =
        chunk_number_.try_emplace({chunk.text, chunk.origin, chunk.reduced, chunk.computation},
                                  static_cast<std::uint32_t>(chunks_.size()));
    if (added) chunks_.push_back(chunk);
    return at->second;
  }

  /// The events of a view, by `posted`: columns, messages as pairs of indices, the critical path.
  std::string panel(const View& view, const std::unordered_map<std::uint32_t, std::int64_t>& late) {
    const Timeline& timeline = view.timeline;
    std::vector<std::uint32_t> events;
    for (const auto& row : view.events) events.insert(events.end(), row.begin(), row.end());
    std::sort(events.begin(), events.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple(view.event(a).posted, a) < std::tuple(view.event(b).posted, b);
    });
    if (events.size() > options_.most_events) {
      capped_ = fmt::format("the first {} of {} events; choose ranks or times to see others",
                            options_.most_events, events.size());
      events.resize(options_.most_events);
    }
    std::vector<std::uint32_t> place(timeline.events.size(), Event::none);
    for (std::size_t i = 0; i < events.size(); ++i)
      place[events[i]] = static_cast<std::uint32_t>(i);

    std::string out =
        fmt::format("{{\"name\":{},\"source\":{}", json_text(std::string(name(timeline.kind))),
                    json_text(source_text(timeline)));
    const auto column = [&](std::string_view key, const auto& value) {
      out += fmt::format(",\n\"{}\":{}", key,
                         listed(events, [&](std::uint32_t e) { return value(view.event(e), e); }));
    };
    column("rank", [&](const Event& event, auto) {
      return view.row_of[static_cast<std::size_t>(event.rank)];
    });
    column("kind", [](const Event& event, auto) { return static_cast<int>(event.kind); });
    column("lane", [](const Event& event, auto) { return static_cast<int>(event.lane); });
    column("operation", [](const Event& event, auto) { return event.operation; });
    column("step", [](const Event& event, auto) { return event.step; });
    column("round", [&](const Event& event, auto) { return round_of(timeline, event); });
    column("chunk", [&](const Event& event, auto) {
      const std::uint32_t chunk = chunk_of(timeline, event);
      return chunk == Event::none ? -1 : static_cast<std::int64_t>(chunk);
    });
    column("bytes", [](const Event& event, auto) { return event.bytes; });
    std::int64_t before = 0;
    column("posted", [&](const Event& event, auto) {
      return event.posted - std::exchange(before, event.posted);
    });
    column("start", [](const Event& event, auto) { return event.start - event.posted; });
    column("end", [](const Event& event, auto) { return event.end - event.start; });
    if (!late.empty()) {
      column("late", [&](const Event&, std::uint32_t e) {
        const auto found = late.find(e);
        return found == late.end() ? std::string("null") : std::to_string(found->second);
      });
    }
    std::vector<std::uint32_t> messages;
    for (const TimedMessage& message : view.messages) {
      if (place[message.send] == Event::none || place[message.recv] == Event::none) continue;
      messages.push_back(place[message.send]);
      messages.push_back(place[message.recv]);
    }
    const auto number = [](std::uint32_t n) { return n; };
    std::vector<std::uint32_t> path;
    for (const std::uint32_t e : critical_path(timeline))
      if (place[e] != Event::none) path.push_back(place[e]);
    out += fmt::format(",\n\"messages\":{},\n\"path\":{}}}", listed(messages, number),
                       listed(path, number));
    return out;
  }

  /// Operations, and the memory of ranks for each kind of them.
  std::string operations() {
    std::map<std::pair<const std::vector<Schedule>*, std::string>, std::size_t> kinds;
    std::vector<std::string> memories;
    const std::string list = listed(timeline_.operations, [&](const TimedOperation& operation) {
      const auto [at, added] =
          kinds.try_emplace({operation.schedules.get(), operation.op}, memories.size());
      if (added) memories.push_back(memories.size() < most_walked ? memory_of(operation) : "null");
      std::string its = operation.name;
      if (!operation.choice.algorithm.empty()) its += " by " + operation.choice.algorithm;
      return fmt::format("{{\"name\":{},\"rounds\":{},\"memory\":{}}}", json_text(its),
                         rounds_in(operation), at->second);
    });
    return fmt::format("\"operations\":{},\n\"memories\":{}", list,
                       listed(memories, [](const std::string& memory) { return memory; }));
  }

  const Timeline& timeline_;
  const Options& options_;
  std::string capped_;
  std::vector<ChunkName> chunks_;
  std::map<std::tuple<std::string, int, bool, std::optional<ComputationKind>>, std::uint32_t>
      chunk_number_;
  std::map<const TimedOperation*, std::unordered_map<int, int>> places_;
};

}  // namespace

std::string page(const Timeline& timeline, const Options& options) {
  return Page(timeline, options).write();
}

}  // namespace baton::diagrams
