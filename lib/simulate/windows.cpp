#include <algorithm>
#include <barrier>
#include <thread>
#include <vector>

#include "engine.hpp"

namespace baton::simulating {
namespace {

/// Domains in a block share one earliest time; threads take blocks in turn.
constexpr std::size_t block = 64;
/// A window with fewer events does not pay for waking other threads.
constexpr std::int64_t few = 256;

std::size_t threads_for(const State& state) {
  constexpr std::size_t most = 16, blocks_each = 4;
  const std::size_t processors =
      std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, most);
  return std::clamp<std::size_t>(state.queues.size() / (block * blocks_each), 1, processors);
}

class Windows {
 public:
  Windows(State& state, const Network& network, const SimulateOptions& options)
      : state_(state),
        next_(state.queues.size(), never),
        block_next_((next_.size() + block - 1) / block, never) {
    const std::size_t threads = threads_for(state);
    for (std::size_t t = 0; t < threads; ++t) {
      threads_.push_back({Engine(state, network, options, threads), {}, never});
      threads_.back().inboxes.resize(threads);
    }
  }

  Outcome run() {
    std::barrier all(static_cast<std::ptrdiff_t>(threads_.size()),
                     [this]() noexcept { advance(); });
    const auto work = [&](std::size_t t) {
      start(t);
      for (all.arrive_and_wait(); end_ != over; all.arrive_and_wait()) follow(t);
    };
    {
      std::vector<std::jthread> others;
      for (std::size_t t = 1; t < threads_.size(); ++t) others.emplace_back(work, t);
      work(0);
    }
    Outcome outcome;
    for (const Thread& thread : threads_) {
      outcome.events += thread.engine.events();
      outcome.bytes_within += thread.engine.bytes_within();
    }
    return outcome;
  }

 private:
  static constexpr std::int64_t over = -1;

  struct alignas(64) Thread {
    Engine engine;
    std::vector<std::vector<Event>> inboxes;  ///< from each thread
    std::int64_t earliest;                    ///< of the events that it knows
  };

  void start(std::size_t t) {
    for (std::size_t r = 0; r < state_.ranks.size(); ++r) {
      const std::uint32_t domain = state_.domain_of[r];
      if (thread_of(domain, threads_.size()) != t) continue;
      threads_[t].engine.start(static_cast<int>(r));
      look(domain);
    }
    for (std::size_t b = t; b < block_next_.size(); b += threads_.size()) settle(b);
    report(t);
  }

  /// Runs all events of the window in a thread's domains.
  void follow(std::size_t t) {
    Engine& engine = threads_[t].engine;
    for (std::vector<Event>& inbox : threads_[t].inboxes) {
      for (const Event& event : inbox) {
        const std::uint32_t domain = state_.domain_of[static_cast<std::size_t>(event.rank())];
        state_.queues[domain].push(event);
        next_[domain] = std::min(next_[domain], event.time);
        block_next_[domain / block] = std::min(block_next_[domain / block], event.time);
      }
      inbox.clear();
    }
    for (std::size_t b = t; b < block_next_.size(); b += threads_.size()) {
      if (block_next_[b] >= end_) continue;
      const std::size_t last = std::min(next_.size(), (b + 1) * block);
      for (std::size_t d = b * block; d < last; ++d) {
        if (next_[d] >= end_) continue;
        engine.follow(static_cast<std::uint32_t>(d), end_);
        look(d);
      }
      settle(b);
    }
    report(t);
  }

  void look(std::size_t domain) {
    const EventQueue& queue = state_.queues[domain];
    next_[domain] = queue.empty() ? never : queue.next().time;
  }
  void settle(std::size_t b) {
    const auto first = next_.begin() + static_cast<std::ptrdiff_t>(b * block);
    const auto last =
        next_.begin() + static_cast<std::ptrdiff_t>(std::min(next_.size(), (b + 1) * block));
    block_next_[b] = *std::min_element(first, last);
  }
  void report(std::size_t t) {
    std::int64_t earliest = threads_[t].engine.earliest_sent();
    for (std::size_t b = t; b < block_next_.size(); b += threads_.size()) {
      earliest = std::min(earliest, block_next_[b]);
    }
    threads_[t].earliest = earliest;
  }

  /// Begins the next window, while no thread works. Runs short windows at once.
  void advance() {
    for (;;) {
      std::int64_t begin = never, events = 0;
      for (std::size_t from = 0; from < threads_.size(); ++from) {
        Thread& thread = threads_[from];
        begin = std::min(begin, thread.earliest);
        events += thread.engine.events();
        for (std::size_t to = 0; to < threads_.size(); ++to) {
          thread.engine.outboxes()[to].swap(threads_[to].inboxes[from]);
        }
        thread.engine.forget_sent();
      }
      end_ = begin == never                     ? over
             : begin > never - state_.lookahead ? never
                                                : begin + state_.lookahead;
      const bool short_one = events - events_ < few;
      events_ = events;
      if (end_ == over || !short_one) return;
      for (std::size_t t = 0; t < threads_.size(); ++t) follow(t);
    }
  }

  State& state_;
  std::vector<Thread> threads_;
  std::vector<std::int64_t> next_;        ///< time of the next event, by domain
  std::vector<std::int64_t> block_next_;  ///< the least of each block
  std::int64_t end_ = 0;                  ///< end of the window
  std::int64_t events_ = 0;               ///< events before it
};

}  // namespace

std::size_t thread_of(std::uint32_t domain, std::size_t threads) {
  return domain / block % threads;
}

Outcome run(State& state, const Network& network, const SimulateOptions& options) {
  return Windows(state, network, options).run();
}

}  // namespace baton::simulating
