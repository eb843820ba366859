// Recordings and timelines.

#include <numeric>

#include "baton/record.hpp"
#include "baton/trace.hpp"
#include "handles.hpp"

using namespace baton;
using namespace baton::c;

namespace {

const Timeline& shown(const baton_timeline* timeline) {
  return given(timeline, "a timeline").timeline;
}

template <class List>
const auto& element(const List& list, std::int64_t index, const char* what) {
  const auto size = static_cast<std::int64_t>(list.size());
  if (index < 0 || index >= size)
    base::refuse("expected an {} of the timeline's {}, found number {}", what, size, index);
  return list[static_cast<std::size_t>(index)];
}

constexpr bool equal(int number, StepKind kind) { return number == static_cast<int>(kind); }
static_assert(equal(BATON_STEP_SEND, StepKind::send) && equal(BATON_STEP_RECV, StepKind::recv) &&
              equal(BATON_STEP_FOLD, StepKind::fold) && equal(BATON_STEP_COPY, StepKind::copy) &&
              equal(BATON_STEP_DIVIDE, StepKind::divide) &&
              equal(BATON_STEP_COMPUTE, StepKind::compute));

}  // namespace

int baton_start_recording(baton_communicator* communicator, int64_t events) {
  return guarded(
      [&] { given(communicator).start_recording(events == 0 ? Options().trace_events : events); });
}
int baton_stop_recording(baton_communicator* communicator, const char* file) {
  return guarded([&] { given(communicator).stop_recording(&given(file, "a name of a file")); });
}
int baton_stop_recording_timeline(baton_communicator* communicator, baton_timeline** timeline) {
  return guarded([&] {
    given(timeline, "an address for the handle") = nullptr;
    Communicator& c = given(communicator);
    Timeline recorded = c.stop_recording();
    if (c.rank() == 0) *timeline = new baton_timeline{std::move(recorded)};
  });
}
int baton_record_computation(const char* name, const char* kind, int64_t begin_ns, int64_t end_ns) {
  return guarded([&] {
    record_computation({&given(name, "a name of a computation"),
                        computation_kind_named(&given(kind, "a class of computations"))},
                       begin_ns, end_ns);
  });
}

int baton_read_trace(const char* const* files, int number, int force, baton_timeline** timeline) {
  return made(timeline, [&] {
    if (number < 1) base::refuse("expected at least 1 file, found {}", number);
    std::vector<std::string> names;
    for (int i = 0; i < number; ++i)
      names.emplace_back(&given((&given(files, "a list of files"))[i], "a name of a file"));
    return read_trace(names, force != 0).timeline;
  });
}

int baton_timeline_facts_of(const baton_timeline* timeline, baton_timeline_facts* facts) {
  return guarded([&] {
    const Timeline& t = shown(timeline);
    const auto dropped = std::accumulate(t.dropped.begin(), t.dropped.end(), std::uint64_t{0});
    fill(facts,
         {0, t.ranks, static_cast<int>(t.operations.size()),
          static_cast<std::int64_t>(t.events.size()), t.duration(),
          static_cast<std::int64_t>(dropped), t.clock_error},
         "baton_timeline_facts");
  });
}
int baton_timeline_event(const baton_timeline* timeline, int64_t index, baton_event* event) {
  return guarded([&] {
    const Event& e = element(shown(timeline).events, index, "event");
    fill(event,
         {0, static_cast<int>(e.operation), static_cast<int>(e.step), e.rank, e.peer,
          static_cast<int>(e.kind), e.bytes, e.posted, e.start, e.end},
         "baton_event");
  });
}
int baton_timeline_operation(const baton_timeline* timeline, int operation, char* text, size_t room,
                             size_t* length) {
  return guarded([&] {
    const TimedOperation& o = element(shown(timeline).operations, operation, "operation");
    const std::string choice =
        o.choice.algorithm.empty()
            ? ""
            : fmt::format(" {}:{}", o.choice.algorithm, o.choice.segment.value_or(0));
    give_text(o.name + choice, text, room, length);
  });
}
int baton_critical_path(const baton_timeline* timeline, int64_t* events, int64_t room,
                        int64_t* number) {
  return guarded([&] {
    const std::vector<std::uint32_t> path = critical_path(shown(timeline));
    given(number, "an address for the number") = static_cast<std::int64_t>(path.size());
    if (room <= 0) return;
    std::copy_n(path.begin(), std::min(path.size(), static_cast<std::size_t>(room)),
                &given(events, "an address for the events"));
  });
}
void baton_timeline_destroy(baton_timeline* timeline) { delete timeline; }
