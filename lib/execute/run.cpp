#include "run.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cassert>

#include "baton/error.hpp"

namespace baton::execute {
namespace {

constexpr std::uint32_t largest_window = 32;
constexpr std::size_t most_own_scratch = 4096;  // bytes

std::string describe(const Plan::Item& item) {
  return fmt::format("{} {} B, lane {}", name(item.kind), item.bytes, item.lane);
}

}  // namespace

Run::Run(std::shared_ptr<const Plan> plan, int window, const DeviceQueue* queue)
    : plan_(std::move(plan)),
      window_(std::clamp<std::uint32_t>(static_cast<std::uint32_t>(window), 1, largest_window)),
      bases_(plan_->bases()),
      queue_(queue) {
  initial_waits_.reserve(plan_->items().size());
  for (const Plan::Item& item : plan_->items()) initial_waits_.push_back(item.waits);
  waits_.resize(initial_waits_.size());
  channels_.resize(plan_->channels().size());
  flights_.resize(channels_.size() * window_);
  active_.reserve(flights_.size());
  local_.resize(plan_->items().size() - plan_->messages().size());
  if (queue_) {
    launched_.reserve(local_.size());
    markers_.reserve(local_.size());
    return;
  }
  if (std::ranges::any_of(plan_->items(), [](const auto& item) { return item.folds(); }))
    folded_.resize(plan_->items().size());
  // Slots behind scratch, both aligned well enough for any element.
  const std::size_t slots_at = (plan_->scratch_bytes() + 63) / 64 * 64;
  if (slots_at + plan_->slot_bytes() <= most_own_scratch) {
    own_scratch_.resize(slots_at + plan_->slot_bytes() + 1);
    bases_[scratch_base] = own_scratch_.data();
    bases_[slot_base] = own_scratch_.data() + slots_at;
  }
  if (plan_->longest_channel() <= window_) write_script();
}

Run::Line Run::message_line(std::uint32_t step, std::uint32_t flight) const {
  const Plan::Item& item = plan_->items()[step];
  Line line{};
  line.sends = item.kind == StepKind::send;
  line.step = step;
  line.flight = flight;
  line.peer = item.peer;
  line.lane = item.lane;
  line.place = plan_->pieces()[item.first_piece].at[0];
  line.bytes = static_cast<std::size_t>(item.bytes);
  return line;
}

std::uint32_t Run::fold_after(std::uint32_t step, std::span<const std::uint32_t> waits) const {
  const std::uint32_t fold = plan_->items()[step].fold;
  return fold != Plan::no_fold && waits[fold] == 1 ? fold : Plan::no_fold;
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

void Run::use(Transport& transport) {
  transport_ = &transport;
  blocking_ = transport.blocking();
  single_copy_ = transport.single_copy();
  least_read_ =
      single_copy_ ? single_copy_->least_bytes() : std::numeric_limits<std::size_t>::max();
}

void Run::begin(Transport& transport, const Kernels& kernels, int tag) {
  if (transport_ != &transport) use(transport);
  kernels_ = kernels;
  tag_ = tag;
  completed_ = 0;
  active_.clear();
  forget_launched();
}

void Run::start(Transport& transport, const Kernels& kernels, int tag) {
  begin(transport, kernels, tag);
  leave_script({});
}

void Run::note_flights(std::uint64_t steps) {
  for (const Line& line : script_) {
    const bool posts = line.act == ScriptLine::Act::post || line.act == ScriptLine::Act::receive;
    if (posts && (steps >> line.step & 1) != 0) active_.push_back(line.flight);
  }
}

bool Run::leave_script(const Progress& progress) {
  const auto [posted, complete] = progress;
  local_head_ = local_tail_ = 0;
  std::copy(initial_waits_.begin(), initial_waits_.end(), waits_.begin());
  const std::uint32_t all_free =
      window_ == largest_window ? ~std::uint32_t{0} : (std::uint32_t{1} << window_) - 1;
  for (std::size_t s = 0; s < channels_.size(); ++s) {
    channels_[s] = {plan_->channels()[s].first, 0, all_free};
  }
  const auto in_order = [](std::uint64_t steps, const auto& visit) {
    for (; steps != 0; steps &= steps - 1)
      visit(static_cast<std::uint32_t>(std::countr_zero(steps)));
  };
  in_order(posted, [&](std::uint32_t step) { ++channels_[plan_->items()[step].channel].next; });
  note_flights(posted & ~complete);
  for (const std::uint32_t flight : active_) {
    ChannelState& channel = channels_[flight / window_];
    ++channel.in_flight;
    channel.free &= ~(std::uint32_t{1} << (flight % window_));
  }
  in_order(complete, [&](std::uint32_t step) {
    ++completed_;
    for (const std::uint32_t next : plan_->dependents_of(step)) --waits_[next];
  });
  for (std::uint32_t s = 0; s < channels_.size(); ++s) post_ready(s);
  const std::int64_t ready = recorded_ ? tracing::now() : 0;
  const auto add_local = [&](std::uint32_t step) {
    local_[local_tail_++] = step;
    if (recorded_) [[unlikely]]
      moments_[step].posted = ready;
  };
  if (complete == 0) {
    for (const std::uint32_t step : plan_->initial()) add_local(step);
  } else {
    for (std::uint32_t step = 0; step < waits_.size(); ++step) {
      const bool waiting = plan_->items()[step].local() && (complete >> step & 1) == 0;
      if (waiting && waits_[step] == 0) add_local(step);
    }
  }
  drain_local();
  if (done()) hand_over();
  return done();
}

bool Run::drive() {
  if (collected_ < launched_.size()) [[unlikely]]
    collect_launched();
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
    const std::uint32_t channel = flight / window_;
    channels_[channel].free |= std::uint32_t{1} << (flight % window_);
    --channels_[channel].in_flight;
    check_length(step, bytes);
    land(flights_[flight]);
    post_ready(channel);
    complete(step);
    drain_local();
  }
  if (done()) hand_over();
  return done();
}

void Run::post_ready(std::uint32_t channel) {
  ChannelState& state = channels_[channel];
  const std::uint32_t last = plan_->channels()[channel].last;
  while (state.next < last && state.in_flight < window_) {
    const std::uint32_t step = plan_->messages()[state.next];
    if (waits_[step] != 0) return;
    ++state.next;
    post(channel, step);
  }
}

void Run::post(std::uint32_t channel, std::uint32_t step) {
  ChannelState& state = channels_[channel];
  const auto k = static_cast<std::uint32_t>(std::countr_zero(state.free));
  assert(k < window_);
  state.free &= ~(std::uint32_t{1} << k);
  ++state.in_flight;
  const std::uint32_t index = channel * window_ + k;
  Line line = message_line(step, index);
  line.fold = fold_after(step, waits_);
  send_off(line);
  active_.push_back(index);
}

void Run::send_off_recorded(const Line& line) {
  tracing::Moments& moments = moments_[line.step];
  moments.posted = tracing::now();
  hand_to_transport(line);
  moments.start = tracing::now();
}

void Run::complete(std::uint32_t step) {
  ++completed_;
  for (const std::uint32_t next : plan_->dependents_of(step)) {
    if (--waits_[next] != 0) continue;
    const Plan::Item& ready = plan_->items()[next];
    if (ready.local()) {
      local_[local_tail_++] = next;
      if (recorded_) [[unlikely]]
        moments_[next].posted = moments_[step].end;
    } else {
      post_ready(ready.channel);
    }
  }
}

void Run::drain_local() {
  if (queue_) [[unlikely]]
    return launch_local();
  while (local_head_ < local_tail_) {
    const std::uint32_t step = local_[local_head_++];
    const Plan::Item& item = plan_->items()[step];
    if (done_before(step)) {
      // Noted where its message landed.
    } else if (recorded_) [[unlikely]] {
      run_local(step, item.kind, plan_->pieces_of(item));
    } else {
      run_local(item.kind, plan_->pieces_of(item));
    }
    complete(step);
  }
}

void Run::run_local(std::uint32_t step, StepKind kind, std::span<const Piece> pieces) {
  moments_[step].start = tracing::now();
  run_local(kind, pieces);
  note_end(step);
}

void Run::run_local(StepKind kind, std::span<const Piece> pieces) {
  for (const Piece& piece : pieces) {
    const auto count = static_cast<std::size_t>(piece.block);
    std::byte* into = address(piece.at[0]);
    switch (kind) {
      case StepKind::copy: {
        const std::byte* from = address(piece.at[1]);
        const std::size_t bytes = count * plan_->element_bytes();
        for (std::int64_t row = 0; row < piece.rows; ++row) {
          host::copy(into + row * piece.stride[0], from + row * piece.stride[1], bytes);
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
          fold(to, a, b, count);
        }
        break;
      }
      case StepKind::divide:
        for (std::int64_t row = 0; row < piece.rows; ++row) {
          kernels_.divide(into + row * piece.stride[0], count, plan_->header().size);
        }
        break;
      default:
        assert(false && "messages are not local");
    }
  }
}

void Run::abandon() noexcept {
  hand_over();
  wait_for_device();
  for (const std::uint32_t flight : active_) {
    try {
      transport_->cancel(flights_[flight].message);
    } catch (const Error&) {
      // Already failing: the first error is the one that is reported.
    }
  }
  active_.clear();
  std::fill(folded_.begin(), folded_.end(), char{0});
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

void Run::fail_length(std::uint32_t step, std::size_t bytes) const {
  const Plan::Item& item = plan_->items()[step];
  Error error(ErrorCode::truncated,
              fmt::format("rank {}, step {}: expected a message of {} bytes from rank {}, found {}",
                          transport_->rank(), step, item.bytes, item.peer, bytes));
  error.rank = transport_->rank();
  error.peer = item.peer;
  error.step = static_cast<int>(step);
  throw error;
}

}  // namespace baton::execute
