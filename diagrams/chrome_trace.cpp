#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <vector>

#include "diagrams.hpp"
#include "text.hpp"
#include "view.hpp"

namespace baton::diagrams {
namespace {

constexpr std::size_t per_event = 4;  // of the file, for each of the timeline, at most

/// Microseconds with three decimals, exactly.
std::string micro(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

/// A process per rank. Its thread 0 has what the rank is at work at; each message lies, from post
/// to end, in the first of the other threads that is free. In it, a short slice at its injection or
/// its arrival: an arrow runs from one to the other.
class Trace {
 public:
  Trace(const Timeline& timeline, const Options& options)
      : timeline_(timeline),
        view_(timeline, options),
        shown_(timeline.events.size()),
        thread_(timeline.events.size()) {
    digits_ = fmt::format("{}", std::max(timeline.ranks - 1, 0)).size();
    choose(options.most_events);
  }

  std::string write() {
    for (int row = 0; row < view_.rows(); ++row) rank(row);
    arrows();
    if (!capped_.empty()) {
      item("{{\"ph\":\"i\",\"s\":\"g\",\"name\":{},\"pid\":{},\"tid\":0,\"ts\":{}}}",
           json_text(capped_), view_.ranks[0], micro(last_));
    }
    return fmt::format(
        "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"title\":{},\"what\":{},\"source\":{},"
        "\"capped\":{},\"early_arrivals\":{}}},\n\"traceEvents\":[\n{}\n]}}\n",
        json_text(heading(timeline_)), json_text(what_text(timeline_)),
        json_text(source_text(timeline_)), capped_.empty() ? "false" : json_text(capped_),
        timeline_.early_arrivals, items_);
  }

 private:
  template <class... Args>
  void item(fmt::format_string<Args...> format, Args&&... args) {
    if (!items_.empty()) items_ += ",\n";
    fmt::format_to(std::back_inserter(items_), format, std::forward<Args>(args)...);
  }

  /// All events in the view, or as many of the first as there is room for.
  void choose(std::size_t most) {
    std::vector<std::uint32_t> events;
    for (const auto& row : view_.events) events.insert(events.end(), row.begin(), row.end());
    const std::size_t room = std::max<std::size_t>(most / per_event, 1);
    last_ = view_.to;
    if (events.size() > room) {
      std::sort(events.begin(), events.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::tuple(view_.event(a).posted, a) < std::tuple(view_.event(b).posted, b);
      });
      const std::size_t all = events.size();
      events.resize(room);
      last_ = view_.event(events.back()).posted;
      capped_ =
          fmt::format("the first {} of {} events; choose ranks or times to see others", room, all);
    }
    for (const std::uint32_t e : events) shown_[e] = true;
    // Short, but to be seen.
    short_ = std::max<std::int64_t>((view_.to - view_.from) / 2000, 1);
  }

  static std::int64_t end_of(const Event& event) { return std::max(event.end, event.posted + 1); }

  std::string arguments(const Event& event) const {
    return fmt::format("{{\"step\":{},\"bytes\":{},\"lane\":{},\"operation\":{}}}", event.step,
                       event.bytes, event.lane, event.operation);
  }
  std::string text(const Event& event) const {
    const std::string chunk = chunk_text(timeline_, event);
    switch (event.kind) {
      case StepKind::send:
        return fmt::format("send {} to {}", chunk, event.peer);
      case StepKind::recv:
        return fmt::format("recv {} from {}", chunk, event.peer);
      case StepKind::compute:
        return chunk;
      default:
        return fmt::format("{} {}", name(event.kind), chunk);
    }
  }
  /// "work", or the class of a computation.
  std::string category(const Event& event) const {
    const bool named = event.kind == StepKind::compute && event.chunk < timeline_.chunks.size();
    const auto& its = named ? timeline_.chunks[event.chunk].computation : std::nullopt;
    return std::string(its ? name(*its) : "work");
  }
  void slice(const std::string& text, int pid, std::size_t tid, std::int64_t from, std::int64_t to,
             const std::string& category, const std::string& arguments) {
    item(
        "{{\"ph\":\"X\",\"name\":{},\"cat\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},"
        "\"args\":{}}}",
        json_text(text), category, pid, tid, micro(from), micro(to - from), arguments);
  }

  /// The stretch in which the injection, or the arrival, of a message is shown.
  Span moment(const Event& event) const {
    const std::int64_t length = std::min(short_, end_of(event) - event.posted);
    return event.kind == StepKind::send ? Span{event.posted, event.posted + length}
                                        : Span{end_of(event) - length, end_of(event)};
  }

  void rank(int row) {
    const int rank = view_.ranks[static_cast<std::size_t>(row)];
    const int host = timeline_.host_of(rank);
    std::string its = fmt::format("rank {:0{}}", rank, digits_);
    if (static_cast<std::size_t>(host) < timeline_.host_names.size()) {
      its += " on " + timeline_.host_names[static_cast<std::size_t>(host)];
    } else if (!timeline_.hosts.empty()) {
      its += fmt::format(" on host {}", host);
    }
    item("{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":{}}}}}", rank,
         json_text(its));
    item(
        "{{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":{},\"args\":{{\"sort_index\":{}}}}"
        "}",
        rank, rank);
    std::int64_t busy = 0;               // until when the rank is at work
    std::vector<std::int64_t> occupied;  // until when each thread for messages is
    std::vector<std::uint32_t> order = view_.events[static_cast<std::size_t>(row)];
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple(work_of(view_.event(a)).from, a) <
             std::tuple(work_of(view_.event(b)).from, b);
    });
    for (const std::uint32_t e : order) {
      const Event& event = view_.event(e);
      if (!shown_[e]) continue;
      Span work = work_of(event);
      work.from = std::max(work.from, busy);  // clocks of a recording may overlap by their reading
      if (work.to > work.from) {
        slice(text(event), rank, 0, work.from, work.to, category(event), arguments(event));
        busy = work.to;
      }
      if (!event.message()) continue;
      std::size_t thread = 0;
      while (thread < occupied.size() && occupied[thread] > event.posted) ++thread;
      if (thread == occupied.size()) occupied.push_back(0);
      occupied[thread] = end_of(event);

      thread_[e] = thread + 1;
      slice(text(event), rank, thread + 1, event.posted, end_of(event), "message",
            arguments(event));
      const Span at = moment(event);
      slice(event.kind == StepKind::send ? "injection" : "arrival", rank, thread + 1, at.from,
            at.to, "moment", "{}");
    }
    for (std::size_t thread = 0; thread <= occupied.size(); ++thread) {
      item(
          "{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}"
          "}",
          rank, thread,
          json_text(thread == 0 ? std::string("at work") : fmt::format("messages {}", thread)));
    }
  }

  void arrows() {
    std::size_t id = 0;
    for (const TimedMessage& message : view_.messages) {
      const Event& send = view_.event(message.send);
      const Event& recv = view_.event(message.recv);
      if (!shown_[message.send] || !shown_[message.recv]) continue;
      const std::int64_t from = moment(send).from;
      const std::int64_t to = std::max(moment(recv).from, from);
      if (to > moment(recv).to) continue;  // it arrives before it was sent
      const std::string text = json_text(chunk_text(timeline_, send));
      ++id;
      item(
          "{{\"ph\":\"s\",\"name\":{},\"cat\":\"flow\",\"id\":{},\"pid\":{},\"tid\":{},\"ts\":{}}}",
          text, id, send.rank, thread_[message.send], micro(from));
      item(
          "{{\"ph\":\"f\",\"bp\":\"e\",\"name\":{},\"cat\":\"flow\",\"id\":{},\"pid\":{},\"tid\":{}"
          ","
          "\"ts\":{}}}",
          text, id, recv.rank, thread_[message.recv], micro(to));
    }
  }

  const Timeline& timeline_;
  View view_;
  std::vector<bool> shown_;          // of each event
  std::vector<std::size_t> thread_;  // of each message's event
  std::size_t digits_ = 1;
  std::int64_t short_ = 1, last_ = 0;
  std::string items_, capped_;
};

}  // namespace

std::string chrome_trace(const Timeline& timeline, const Options& options) {
  return Trace(timeline, options).write();
}

}  // namespace baton::diagrams
