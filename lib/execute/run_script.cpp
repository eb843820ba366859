// Runs by the script of a plan.

#include <algorithm>

#include "run.hpp"

namespace baton::execute {
namespace {

constexpr std::size_t most_together = 4096;  // bytes; with more under way, the rank had better copy
constexpr std::uint32_t alone = ~std::uint32_t{0};

}  // namespace

void Run::write_script() {
  script_.reserve(plan_->script().size());
  std::vector<std::uint32_t> waits = initial_waits_;
  for (const ScriptLine& from : plan_->script()) {
    const Plan::Item& item = plan_->items()[from.step];
    Line line{};
    line.step = from.step;
    if (item.local()) {
      line.pieces = plan_->pieces_of(item);
      if (line.pieces.size() == 1 && line.pieces[0].rows == 1)
        line.bytes = static_cast<std::size_t>(line.pieces[0].block) * plan_->element_bytes();
    } else {
      line = message_line(from.step, item.channel * window_ + from.turn);
    }
    line.kind = item.kind;
    line.act = from.act;
    line.with = alone;
    line.fold = fold_after(from.step, waits);
    script_.push_back(line);
    if (line.act == ScriptLine::Act::post) continue;
    for (const std::uint32_t next : plan_->dependents_of(from.step)) --waits[next];
  }
  write_waiting_script();
}

void Run::write_waiting_script() {
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
    return drop(send);  // there is but one last receive
  }
  // Or the last message is a small send that only sends are under way with.
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

void Run::send(const Line& line) {
  const std::int64_t posted = recorded_ ? tracing::now() : 0;
  blocking_->send({line.peer, tag_ + line.lane, address(line.place), line.bytes});
  if (recorded_) [[unlikely]] {
    const std::int64_t end = tracing::now();
    moments_[line.step] = {posted, end, end};
  }
}

void Run::receive(const Line& line) {
  std::size_t bytes = 0;
  const std::int64_t posted = recorded_ ? tracing::now() : 0;
  const IncomingMessage in{line.peer, tag_ + line.lane, address(line.place), line.bytes};
  if (line.with == alone) {
    bytes = blocking_->recv(in);
  } else {
    const Line& send = script_[line.with];
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

bool Run::start_scripted(Transport& transport, const Kernels& kernels, int tag, int attempts,
                         bool may_wait) {
  begin(transport, kernels, tag);
  const auto landed = [&](const Line& line) {
    std::size_t bytes = 0;
    if (!transport.test(flights_[line.flight].message, bytes)) return false;
    if (bytes != line.bytes && !line.sends) [[unlikely]]
      fail_length(line.step, bytes);
    land(flights_[line.flight]);
    return true;
  };
  const std::vector<Line>& script = may_wait ? waiting_script_ : script_;
  const Line* line = script.data();
  const Line* const end = line + script.size();
  const auto progress = [&] { return progress_at({script.data(), line}); };
  bool near = true, posted = false;  // whether a receive that is awaited has been posted
  try {
    for (; line != end; ++line) {
      switch (line->act) {
        case ScriptLine::Act::post:
          send_off(*line);
          continue;
        case ScriptLine::Act::local:
          if (done_before(line->step)) [[unlikely]]
            continue;
          if (recorded_) [[unlikely]] {
            const std::int64_t posted = tracing::now();
            run_local(line->kind, line->pieces);
            moments_[line->step] = {posted, posted, tracing::now()};
          } else if (line->kind == StepKind::copy && line->bytes > 0) {
            const Piece& piece = line->pieces.front();
            host::copy(address(piece.at[0]), address(piece.at[1]), line->bytes);
          } else {
            run_local(line->kind, line->pieces);
          }
          continue;
        case ScriptLine::Act::send:
        case ScriptLine::Act::receive:
          if (may_wait && !reads(*line)) [[likely]] {
            line->sends ? send(*line) : receive(*line);
            continue;
          }
          send_off(*line);
          posted = true;
          [[fallthrough]];
        case ScriptLine::Act::await:
          while (near && !landed(*line)) near = --attempts > 0;
      }
      if (!near) break;
      posted = false;
    }
  } catch (...) {
    const auto [sent, complete] = progress();
    note_flights(sent & ~complete & ~(std::uint64_t{1} << line->step));
    throw;
  }
  if (near) {
    completed_ = plan_->items().size();
    hand_over();
    return true;
  }
  Progress so_far = progress();
  if (posted) so_far.posted |= std::uint64_t{1} << line->step;
  return leave_script(so_far);
}

Run::Progress Run::progress_at(std::span<const Line> before) const {
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

}  // namespace baton::execute
