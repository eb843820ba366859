#include "run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

#include "baton/error.hpp"

namespace baton {
namespace {

constexpr std::uint32_t largest_window = 32;
constexpr std::size_t most_own_scratch = 4096;  // bytes

std::string describe(const Plan::Item& item) {
  return fmt::format("{} {} B, lane {}", name(item.kind), item.bytes, item.lane);
}

}  // namespace

Run::Run(std::shared_ptr<const Plan> plan, int window)
    : plan_(std::move(plan)),
      window_(std::clamp<std::uint32_t>(static_cast<std::uint32_t>(window), 1, largest_window)),
      scripted_(!plan_->script().empty() && plan_->longest_stream() <= window_),
      bases_(plan_->bases()) {
  initial_waits_.reserve(plan_->items().size());
  for (const Plan::Item& item : plan_->items()) initial_waits_.push_back(item.waits);
  waits_.resize(initial_waits_.size());
  streams_.resize(plan_->streams().size());
  flights_.resize(streams_.size() * window_);
  active_.reserve(flights_.size());
  local_.resize(plan_->items().size() - plan_->messages().size());
  // Slots behind scratch, both aligned well enough for any element.
  const std::size_t slots_at = (plan_->scratch_bytes() + 63) / 64 * 64;
  if (slots_at + plan_->slot_bytes() <= most_own_scratch) {
    own_scratch_.resize(slots_at + plan_->slot_bytes() + 1);
    bases_[scratch_base] = own_scratch_.data();
    bases_[slot_base] = own_scratch_.data() + slots_at;
  }
}

void Run::begin(Transport& transport, const Kernels& kernels, int tag) {
  transport_ = &transport;
  kernels_ = kernels;
  tag_ = tag;
  completed_ = 0;
  active_.clear();
}

void Run::start(Transport& transport, const Kernels& kernels, int tag) {
  begin(transport, kernels, tag);
  leave_script(0, 0);
}

void Run::note_flights(std::uint64_t steps) {
  for (const ScriptLine& line : plan_->script()) {
    if (line.act != ScriptLine::Act::post || (steps >> line.step & 1) == 0) continue;
    active_.push_back(plan_->items()[line.step].stream * window_ + line.turn);
  }
}

bool Run::leave_script(std::uint64_t posted, std::uint64_t complete) {
  local_head_ = local_tail_ = 0;
  std::copy(initial_waits_.begin(), initial_waits_.end(), waits_.begin());
  const std::uint32_t all_free =
      window_ == largest_window ? ~std::uint32_t{0} : (std::uint32_t{1} << window_) - 1;
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    streams_[s] = {plan_->streams()[s].first, 0, all_free};
  }
  const auto in_order = [](std::uint64_t steps, const auto& visit) {
    for (; steps != 0; steps &= steps - 1)
      visit(static_cast<std::uint32_t>(std::countr_zero(steps)));
  };
  in_order(posted, [&](std::uint32_t step) { ++streams_[plan_->items()[step].stream].next; });
  note_flights(posted & ~complete);
  for (const std::uint32_t flight : active_) {
    StreamState& stream = streams_[flight / window_];
    ++stream.in_flight;
    stream.free &= ~(std::uint32_t{1} << (flight % window_));
  }
  in_order(complete, [&](std::uint32_t step) {
    ++completed_;
    for (const std::uint32_t next : plan_->dependents_of(step)) --waits_[next];
  });
  for (std::uint32_t s = 0; s < streams_.size(); ++s) post_ready(s);
  if (complete == 0) {
    for (const std::uint32_t step : plan_->initial()) local_[local_tail_++] = step;
  } else {
    for (std::uint32_t step = 0; step < waits_.size(); ++step) {
      const bool waiting = plan_->items()[step].local() && (complete >> step & 1) == 0;
      if (waiting && waits_[step] == 0) local_[local_tail_++] = step;
    }
  }
  drain_local();
  return done();
}

bool Run::start_scripted(Transport& transport, const Kernels& kernels, int tag, int attempts) {
  begin(transport, kernels, tag);
  std::uint64_t posted = 0, complete = 0;  // step i as bit i
  const auto flight = [&](const ScriptLine& line) {
    return plan_->items()[line.step].stream * window_ + line.turn;
  };
  for (const ScriptLine& line : plan_->script()) {
    const std::uint64_t step = std::uint64_t{1} << line.step;
    bool near = true;
    try {
      if (line.act == ScriptLine::Act::post) {
        send_off(flight(line), line.step);
        posted |= step;
        continue;
      }
      if (line.act == ScriptLine::Act::local) {
        run_local(line.step);
      } else {
        while (near && !landed(flight(line))) near = --attempts > 0;
      }
    } catch (...) {
      note_flights(posted & ~complete & ~step);
      throw;
    }
    if (!near) return leave_script(posted, complete);
    complete |= step;
  }
  completed_ = plan_->items().size();
  return true;
}

bool Run::drive() {
  for (std::size_t i = 0; i < active_.size();) {
    const std::uint32_t flight = active_[i];
    std::size_t bytes = 0;
    if (!transport_->test(flights_[flight].message, bytes)) {
      ++i;
      continue;
    }
    active_[i] = active_.back();
    active_.pop_back();
    const std::uint32_t step = flights_[flight].step;  // the flight is free to be another's
    const std::uint32_t stream = flight / window_;
    streams_[stream].free |= std::uint32_t{1} << (flight % window_);
    --streams_[stream].in_flight;
    check_length(step, bytes);
    post_ready(stream);
    complete(step);
    drain_local();
  }
  return done();
}

void Run::post_ready(std::uint32_t stream) {
  StreamState& state = streams_[stream];
  const std::uint32_t last = plan_->streams()[stream].last;
  while (state.next < last && state.in_flight < window_) {
    const std::uint32_t step = plan_->messages()[state.next];
    if (waits_[step] != 0) return;
    ++state.next;
    post(stream, step);
  }
}

void Run::post(std::uint32_t stream, std::uint32_t step) {
  StreamState& state = streams_[stream];
  const auto k = static_cast<std::uint32_t>(std::countr_zero(state.free));
  assert(k < window_);
  state.free &= ~(std::uint32_t{1} << k);
  ++state.in_flight;
  const std::uint32_t index = stream * window_ + k;
  send_off(index, step);
  active_.push_back(index);
}

void Run::send_off(std::uint32_t index, std::uint32_t step) {
  Flight& flight = flights_[index];
  flight.step = step;
  const Plan::Item& item = plan_->items()[step];
  std::byte* data = address(plan_->pieces()[item.first_piece].at[0]);
  const auto bytes = static_cast<std::size_t>(item.bytes);
  if (item.kind == StepKind::send) {
    transport_->isend(item.peer, tag_ + item.lane, data, bytes, flight.message);
  } else {
    transport_->irecv(item.peer, tag_ + item.lane, data, bytes, flight.message);
  }
}

bool Run::landed(std::uint32_t index) {
  std::size_t bytes = 0;
  if (!transport_->test(flights_[index].message, bytes)) return false;
  check_length(flights_[index].step, bytes);
  return true;
}

void Run::complete(std::uint32_t step) {
  ++completed_;
  for (const std::uint32_t next : plan_->dependents_of(step)) {
    if (--waits_[next] != 0) continue;
    const Plan::Item& ready = plan_->items()[next];
    if (ready.local()) {
      local_[local_tail_++] = next;
    } else {
      post_ready(ready.stream);
    }
  }
}

void Run::drain_local() {
  while (local_head_ < local_tail_) {
    const std::uint32_t step = local_[local_head_++];
    run_local(step);
    complete(step);
  }
}

void Run::run_local(std::uint32_t step) {
  const Plan::Item& item = plan_->items()[step];
  for (std::uint32_t i = 0; i < item.piece_count; ++i) {
    const Piece& piece = plan_->pieces()[item.first_piece + i];
    const auto count = static_cast<std::size_t>(piece.block);
    std::byte* into = address(piece.at[0]);
    switch (item.kind) {
      case StepKind::copy: {
        const std::byte* from = address(piece.at[1]);
        const std::size_t bytes = count * plan_->element_bytes();
        for (std::int64_t row = 0; row < piece.rows; ++row) {
          std::memcpy(into + row * piece.stride[0], from + row * piece.stride[1], bytes);
        }
        break;
      }
      case StepKind::fold: {
        const std::byte* left = address(piece.at[1]);
        const std::byte* right = address(piece.at[2]);
        for (std::int64_t row = 0; row < piece.rows; ++row) {
          std::byte* to = into + row * piece.stride[0];
          const std::byte* a = left + row * piece.stride[1];
          const std::byte* b = right + row * piece.stride[2];
          if (kernels_.user) {
            kernels_.user(to, a, b, count, kernels_.context);
          } else {
            kernels_.fold(to, a, b, count);
          }
        }
        break;
      }
      case StepKind::finish:
        for (std::int64_t row = 0; row < piece.rows; ++row) {
          kernels_.finish(into + row * piece.stride[0], count, plan_->header().size);
        }
        break;
      default:
        assert(false && "messages are not local");
    }
  }
}

void Run::abandon() noexcept {
  for (const std::uint32_t flight : active_) {
    try {
      transport_->cancel(flights_[flight].message);
    } catch (const Error&) {
      // Already failing: the first error is the one that is reported.
    }
  }
  active_.clear();
}

std::string Run::waiting() const {
  if (active_.empty()) return "waits for no message";
  constexpr std::size_t most = 4;
  std::string text = "waits for ";
  for (std::size_t i = 0; i < std::min(active_.size(), most); ++i) {
    const std::uint32_t step = flights_[active_[i]].step;
    const Plan::Item& item = plan_->items()[step];
    text +=
        fmt::format("{}rank {} (step {}: {})", i == 0 ? "" : ", ", item.peer, step, describe(item));
  }
  if (active_.size() > most) text += fmt::format(" and {} more", active_.size() - most);
  return text;
}

std::pair<int, int> Run::blocker() const {
  if (active_.empty()) return {-1, -1};
  const std::uint32_t step = flights_[active_.front()].step;
  return {plan_->items()[step].peer, static_cast<int>(step)};
}

void Run::check_length(std::uint32_t step, std::size_t bytes) const {
  const Plan::Item& item = plan_->items()[step];
  if (item.kind != StepKind::recv || bytes == static_cast<std::size_t>(item.bytes)) return;
  Error error(ErrorCode::truncated,
              fmt::format("rank {}, step {}: expected a message of {} bytes from rank {}, found {}",
                          plan_->header().rank, step, item.bytes, item.peer, bytes));
  error.rank = plan_->header().rank;
  error.peer = item.peer;
  error.step = static_cast<int>(step);
  throw error;
}

}  // namespace baton
