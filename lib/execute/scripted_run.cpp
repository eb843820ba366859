#include "scripted_run.hpp"

#include <algorithm>
#include <bit>

#include "../memory/copy.hpp"
#include "spins.hpp"

namespace baton::execute {
namespace {

constexpr std::size_t most_own_scratch = 4096;  // bytes
constexpr std::size_t most_together = 4096;     // bytes; above this, copying is faster
constexpr std::uint32_t alone = ~std::uint32_t{0};

}  // namespace

ScriptedRun::ScriptedRun(std::shared_ptr<const Plan> plan, int window)
    : SingleCopyRun(std::move(plan), window) {
  // Slots behind scratch, both aligned well enough for any element.
  const std::size_t slots_at = (plan_->scratch_bytes() + 63) / 64 * 64;
  if (slots_at + plan_->slot_bytes() <= most_own_scratch) {
    own_scratch_.resize(slots_at + plan_->slot_bytes() + 1);
    bases_[scratch_base] = own_scratch_.data();
    bases_[slot_base] = own_scratch_.data() + slots_at;
    has_scratch_ = true;
  }
  if (plan_->longest_channel() <= window_) write_script();
}

void ScriptedRun::use(Transport& transport) {
  SingleCopyRun::use(transport);
  blocking_ = transport.blocking();
}

void ScriptedRun::write_script() {
  script_.reserve(plan_->script().size());
  std::vector<std::uint32_t> waits = initial_waits_;
  for (const ScriptLine& from : plan_->script()) {
    const Plan::Item& item = plan_->items()[from.step];
    Line line{};
    line.act = from.act;
    line.kind = item.kind;
    line.step = from.step;
    line.with = alone;
    line.taker = taker_after(from.step, waits);
    if (item.local()) {
      line.pieces = plan_->pieces_of(item);
      if (line.pieces.size() == 1 && line.pieces[0].rows == 1)
        line.bytes = static_cast<std::size_t>(line.pieces[0].block) * plan_->element_bytes();
    } else {
      line.sends = item.kind == StepKind::send;
      line.flight = item.channel * window_ + from.turn;
      line.peer = item.peer;
      line.lane = item.lane;
      line.place = message_place(item);
      line.bytes = static_cast<std::size_t>(item.bytes);
    }
    script_.push_back(line);
    if (line.act == ScriptLine::Act::post) continue;
    for (const std::uint32_t next : plan_->dependents_of(from.step)) --waits[next];
  }
  write_waiting_script();
}

void ScriptedRun::write_waiting_script() {
  waiting_script_ = script_;
  const auto drop = [&](std::uint32_t step) {
    std::erase_if(waiting_script_, [&](const Line& line) { return line.step == step; });
  };
  // The last receive takes a small send with it.
  for (std::size_t i = 0; i < script_.size(); ++i) {
    const std::uint8_t send = plan_->script()[i].with;
    if (send == ScriptLine::none || script_[i].bytes > most_together) continue;
    const auto posted = std::find_if(script_.begin(), script_.end(),
                                     [&](const Line& line) { return line.step == send; });
    if (posted->bytes > most_together) continue;
    waiting_script_[i].with = static_cast<std::uint32_t>(posted - script_.begin());
    return drop(send);  // there is only one last receive
  }
  // Otherwise the last message may be a small send, with only sends under way.
  for (auto line = waiting_script_.rbegin(); line != waiting_script_.rend(); ++line) {
    if (line->act == ScriptLine::Act::local) continue;
    if (line->act == ScriptLine::Act::await && line->sends) continue;
    if (line->act != ScriptLine::Act::post || !line->sends || line->bytes > most_together) return;
    const std::uint32_t step = line->step;
    line->act = ScriptLine::Act::send;
    std::erase_if(waiting_script_, [&](const Line& other) {
      return other.step == step && other.act == ScriptLine::Act::await;
    });
    return;
  }
}

bool ScriptedRun::start(Transport& transport, const Kernels& kernels, int tag,
                        const Patience& patience) {
  if (script_.empty() || patience.attempts <= 0) return Run::start(transport, kernels, tag);
  begin(transport, kernels, tag);
  Spins spins(patience.attempts);
  const bool may_wait = patience.view && blocking_;
  const std::vector<Line>& script = may_wait ? waiting_script_ : script_;
  const Line* line = script.data();
  const Line* const end = line + script.size();
  bool near = true;
  std::uint64_t posted = 0;  // messages of the awaited line
  try {
    for (; line != end; ++line) {
      switch (line->act) {
        case ScriptLine::Act::post:
          post_line(*line);
          continue;
        case ScriptLine::Act::local:
          work_line(*line);
          continue;
        case ScriptLine::Act::send:
        case ScriptLine::Act::receive:
          if (may_wait && waits_inside(*line)) [[likely]] {
            line->sends ? send(*line, *patience.view) : receive(*line, *patience.view);
            continue;
          }
          if (line->with != alone) {
            const Line& send = script_[line->with];
            post_line(send);
            posted = std::uint64_t{1} << send.step;
            near = false;
          }
          post_line(*line);
          posted |= std::uint64_t{1} << line->step;
          [[fallthrough]];
        case ScriptLine::Act::await:
          while (near && !line_landed(*line)) near = spins.again();
      }
      if (!near) break;
      posted = 0;
    }
  } catch (...) {
    const auto [sent, complete] = progress_at({script.data(), line});
    note_flights((sent | posted) & ~complete & ~(std::uint64_t{1} << line->step));
    throw;
  }
  if (near) {
    completed_ = plan_->items().size();
    end_recording();
    return true;
  }
  Progress so_far = progress_at({script.data(), line});
  so_far.posted |= posted;
  return leave_script(so_far);
}

/// Whether blocking calls serve the line's messages: their receivers do not read them in the
/// senders' memory.
inline bool ScriptedRun::waits_inside(const Line& line) const {
  if (reads(line.peer, line.bytes)) return false;
  return line.with == alone || !reads(script_[line.with].peer, script_[line.with].bytes);
}

inline void ScriptedRun::hand_to_transport(const Line& line) {
  Flight& flight = flights_[line.flight];
  flight.step = line.step;
  if (reads(line.peer, line.bytes)) [[unlikely]]
    return post_read(line.flight, line.taker);
  hand_over(line.sends, line.peer, line.lane, address(line.place), line.bytes, flight.message);
}

inline void ScriptedRun::post_line(const Line& line) {
  if (recorded_) [[unlikely]]
    return post_recorded(line);
  hand_to_transport(line);
}

void ScriptedRun::post_recorded(const Line& line) {
  moments_[line.step].posted = tracing::now();
  hand_to_transport(line);
  moments_[line.step].start = tracing::now();
}

inline bool ScriptedRun::line_landed(const Line& line) {
  std::size_t bytes = 0;
  if (!transport_->test(flights_[line.flight].message, bytes)) return false;
  if (bytes != line.bytes && !line.sends) [[unlikely]]
    fail_length(line.step, bytes);
  if (recorded_) [[unlikely]]
    moments_[line.step].end = tracing::now();
  landed(line.flight);
  return true;
}

inline void ScriptedRun::work_line(const Line& line) {
  if (with_message(line.step)) [[unlikely]]
    return;
  if (recorded_) [[unlikely]] {
    const std::int64_t posted = tracing::now();
    apply(line.kind, line.pieces);
    moments_[line.step] = {posted, posted, tracing::now()};
  } else if (line.kind == StepKind::copy && line.bytes > 0) {
    const Piece& piece = line.pieces.front();
    host::copy(address(piece.at[0]), address(piece.at[1]), line.bytes);
  } else {
    apply(line.kind, line.pieces);
  }
}

namespace {

/// The time inside a blocking call.
class Inside {
 public:
  Inside(BlockedView& view, BlockedView::Wait receive, BlockedView::Wait send) : view_(view) {
    view_.enters(receive, send);
  }
  ~Inside() { view_.leaves(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  BlockedView& view_;
};

}  // namespace

void ScriptedRun::send(const Line& line, BlockedView& view) {
  const std::int64_t posted = recorded_ ? tracing::now() : 0;
  {
    const Inside inside(view, {}, {line.peer, line.step});
    blocking_->send({line.peer, tag_ + line.lane, address(line.place), line.bytes});
  }
  if (recorded_) [[unlikely]] {
    const std::int64_t end = tracing::now();
    moments_[line.step] = {posted, end, end};
  }
}

void ScriptedRun::receive(const Line& line, BlockedView& view) {
  std::size_t bytes = 0;
  const std::int64_t posted = recorded_ ? tracing::now() : 0;
  const IncomingMessage in{line.peer, tag_ + line.lane, address(line.place), line.bytes};
  if (line.with == alone) {
    const Inside inside(view, {line.peer, line.step}, {});
    bytes = blocking_->recv(in);
  } else {
    const Line& send = script_[line.with];
    const Inside inside(view, {line.peer, line.step}, {send.peer, send.step});
    bytes =
        blocking_->send_recv({send.peer, tag_ + send.lane, address(send.place), send.bytes}, in);
  }
  if (bytes != line.bytes) [[unlikely]]
    fail_length(line.step, bytes);
  if (recorded_) [[unlikely]] {
    const std::int64_t end = tracing::now();
    moments_[line.step] = {posted, posted, end};
    if (line.with != alone) moments_[script_[line.with].step] = {posted, posted, end};
  }
}

ScriptedRun::Progress ScriptedRun::progress_at(std::span<const Line> before) const {
  Progress progress;
  for (const Line& line : before) {
    std::uint64_t steps = std::uint64_t{1} << line.step;
    const bool receives = line.act == ScriptLine::Act::receive;
    if (receives && line.with != alone) steps |= std::uint64_t{1} << script_[line.with].step;
    const bool sends = line.act == ScriptLine::Act::send;
    if (line.act == ScriptLine::Act::post || receives || sends) progress.posted |= steps;
    if (line.act != ScriptLine::Act::post) progress.complete |= steps;
  }
  return progress;
}

void ScriptedRun::note_flights(std::uint64_t steps) {
  for (const Line& line : script_) {
    const bool posts = line.act == ScriptLine::Act::post || line.act == ScriptLine::Act::receive;
    if (posts && (steps >> line.step & 1) != 0) active_.push_back(line.flight);
  }
}

bool ScriptedRun::leave_script(const Progress& progress) {
  reset();
  const auto [posted, complete] = progress;
  const auto in_order = [](std::uint64_t steps, const auto& visit) {
    for (; steps != 0; steps &= steps - 1)
      visit(static_cast<std::uint32_t>(std::countr_zero(steps)));
  };
  in_order(posted, [&](std::uint32_t step) { ++channels_[plan_->items()[step].channel].next; });
  note_flights(posted & ~complete);
  for (const std::uint32_t flight : active_) {
    Channel& channel = channels_[flight / window_];
    ++channel.in_flight;
    channel.free &= ~(std::uint32_t{1} << (flight % window_));
  }
  in_order(complete, [&](std::uint32_t step) {
    ++completed_;
    for (const std::uint32_t next : plan_->dependents_of(step)) --waits_[next];
  });
  post_all();
  const std::int64_t now = recorded_ ? tracing::now() : 0;
  for (std::uint32_t step = 0; step < waits_.size(); ++step) {
    const bool waiting = plan_->items()[step].local() && (complete >> step & 1) == 0;
    if (waiting && waits_[step] == 0) make_ready(step, now);
  }
  work_on_ready();
  return finish();
}

}  // namespace baton::execute
