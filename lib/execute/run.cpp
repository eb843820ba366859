#include "run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <iterator>
#include <utility>

#include "../base/raise.hpp"
#include "../memory/copy.hpp"

namespace baton::execute {
namespace {

constexpr std::uint32_t largest_window = 32;

}  // namespace

Run::Run(std::shared_ptr<const Plan> plan, int window)
    : plan_(std::move(plan)),
      window_(std::clamp<std::uint32_t>(static_cast<std::uint32_t>(window), 1, largest_window)),
      bases_(plan_->bases()) {
  initial_waits_.reserve(plan_->items().size());
  for (const Plan::Item& item : plan_->items()) initial_waits_.push_back(item.waits);
  waits_.resize(initial_waits_.size());
  channels_.resize(plan_->channels().size());
  flights_.resize(channels_.size() * window_);
  active_.reserve(flights_.size());
  ready_.resize(plan_->items().size() - plan_->messages().size());
}

bool Run::start(Transport& transport, const Kernels& kernels, int tag, const Patience&) {
  begin(transport, kernels, tag);
  reset();
  post_all();
  const std::int64_t now = recorded_ ? tracing::now() : 0;
  for (const std::uint32_t step : plan_->initial()) make_ready(step, now);
  work_on_ready();
  return finish();
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
    const std::uint32_t step = flights_[flight].step;
    const Plan::Item& item = plan_->items()[step];
    if (item.kind == StepKind::recv && bytes != static_cast<std::size_t>(item.bytes)) [[unlikely]]
      fail_length(step, bytes);
    if (recorded_) [[unlikely]]
      moments_[step].end = tracing::now();
    landed(flight);
    Channel& channel = channels_[item.channel];
    channel.free |= std::uint32_t{1} << (flight % window_);
    --channel.in_flight;
    post_ready(item.channel);
    complete(step);
    work_on_ready();
  }
  return finish();
}

bool Run::finish() {
  if (!done()) return false;
  end_recording();
  return true;
}

void Run::use(Transport& transport) { transport_ = &transport; }

void Run::reset() {
  std::copy(initial_waits_.begin(), initial_waits_.end(), waits_.begin());
  const std::uint32_t all_free =
      window_ == largest_window ? ~std::uint32_t{0} : (std::uint32_t{1} << window_) - 1;
  for (std::size_t c = 0; c < channels_.size(); ++c)
    channels_[c] = {plan_->channels()[c].first, 0, all_free};
  ready_begin_ = ready_end_ = 0;
}

void Run::post_all() {
  for (std::uint32_t c = 0; c < channels_.size(); ++c) post_ready(c);
}

void Run::post_ready(std::uint32_t which) {
  Channel& channel = channels_[which];
  const std::uint32_t last = plan_->channels()[which].last;
  while (channel.next < last && channel.in_flight < window_) {
    const std::uint32_t step = plan_->messages()[channel.next];
    if (waits_[step] != 0) return;
    ++channel.next;
    const auto k = static_cast<std::uint32_t>(std::countr_zero(channel.free));
    assert(k < window_);
    channel.free &= ~(std::uint32_t{1} << k);
    ++channel.in_flight;
    const std::uint32_t flight = which * window_ + k;
    flights_[flight].step = step;
    if (recorded_) [[unlikely]]
      moments_[step].posted = tracing::now();
    post(flight);
    if (recorded_) [[unlikely]]
      moments_[step].start = tracing::now();
    active_.push_back(flight);
  }
}

void Run::post(std::uint32_t which) {
  Flight& flight = flights_[which];
  const Plan::Item& item = plan_->items()[flight.step];
  hand_over(item.kind == StepKind::send, item.peer, item.lane, address(message_place(item)),
            static_cast<std::size_t>(item.bytes), flight.message);
}

void Run::complete(std::uint32_t step) {
  ++completed_;
  for (const std::uint32_t next : plan_->dependents_of(step)) {
    if (--waits_[next] != 0) continue;
    const Plan::Item& item = plan_->items()[next];
    if (item.local()) {
      make_ready(next, recorded_ ? moments_[step].end : 0);
    } else {
      post_ready(item.channel);
    }
  }
}

void Run::work_on_ready() {
  while (ready_begin_ < ready_end_) {
    const std::uint32_t step = ready_[ready_begin_++];
    work(step);
    complete(step);
  }
}

void Run::work(std::uint32_t step) {
  const Plan::Item& item = plan_->items()[step];
  if (recorded_) [[unlikely]]
    moments_[step].start = tracing::now();
  apply(item.kind, plan_->pieces_of(item));
  if (recorded_) [[unlikely]]
    moments_[step].end = tracing::now();
}

void Run::apply(StepKind kind, std::span<const Piece> pieces) {
  for (const Piece& piece : pieces) {
    const auto count = static_cast<std::size_t>(piece.block);
    const std::size_t bytes = count * plan_->element_bytes();
    const bool outgrows = host::outgrows_cache(bytes * static_cast<std::size_t>(piece.rows));
    for (std::int64_t row = 0; row < piece.rows; ++row) {
      const auto operand = [&](int k) { return address(piece.at[k]) + row * piece.stride[k]; };
      switch (kind) {
        case StepKind::copy:
          host::copy(operand(0), operand(1), bytes, outgrows);
          break;
        case StepKind::fold:
          fold(operand(0), operand(1), operand(2), count);
          break;
        case StepKind::divide:
          kernels_.divide(operand(0), count, plan_->header().size);
          break;
        default:
          assert(false && "messages are not local");
      }
    }
  }
}

void Run::abandon() noexcept {
  end_recording();
  for (const std::uint32_t flight : active_) {
    try {
      transport_->cancel(flights_[flight].message);
    } catch (const Error&) {
      // Already failing: the first error is reported.
    }
  }
  active_.clear();
}

void Run::record(const std::shared_ptr<tracing::Recorder>& recorder, std::uint32_t plan,
                 std::uint32_t sequence) {
  if (recorder_ != recorder) recorder_ = recorder;
  recorded_plan_ = plan;
  recorded_sequence_ = sequence;
  moments_.assign(plan_->items().size(), {});
  recorded_ = true;
}

void Run::add_to_recorder() noexcept {
  recorder_->add_run(recorded_plan_, recorded_sequence_, moments_);
  recorded_ = false;
}

void Run::waiting(fmt::memory_buffer& text) const {
  const auto add = [&]<class... Parts>(fmt::format_string<Parts...> form, Parts&&... parts) {
    fmt::format_to(std::back_inserter(text), form, std::forward<Parts>(parts)...);
  };
  if (active_.empty()) return add("waits for no message");
  constexpr std::size_t most = 4;
  add("waits for ");
  for (std::size_t i = 0; i < std::min(active_.size(), most); ++i) {
    const std::uint32_t step = flights_[active_[i]].step;
    const Plan::Item& item = plan_->items()[step];
    add("{}rank {} (step {}: {} {} B, lane {})", i == 0 ? "" : ", ", item.peer, step,
        name(item.kind), item.bytes, item.lane);
  }
  if (active_.size() > most) add(" and {} more", active_.size() - most);
}

std::string Run::waiting() const {
  fmt::memory_buffer text;
  waiting(text);
  return fmt::to_string(text);
}

std::pair<int, int> Run::blocker() const {
  if (active_.empty()) return {-1, -1};
  const std::uint32_t step = flights_[active_.front()].step;
  return {plan_->items()[step].peer, static_cast<int>(step)};
}

void Run::fail_length(std::uint32_t step, std::size_t bytes) const {
  const Plan::Item& item = plan_->items()[step];
  const int rank = transport_->rank();
  base::raise(ErrorCode::truncated,
              fmt::format("rank {}, step {}: expected a message of {} bytes from rank {}, found {}",
                          rank, step, item.bytes, item.peer, bytes),
              {.rank = rank, .peer = item.peer, .step = static_cast<int>(step)});
}

}  // namespace baton::execute
