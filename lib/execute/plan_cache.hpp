#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device_run.hpp"
#include "run_fused.hpp"
#include "scripted_run.hpp"

namespace baton::execute {

/// Everything that a plan depends on, as words. Calls with equal keys have equal plans.
class PlanKey {
 public:
  void clear() { words_.clear(); }
  void add(std::int64_t word) { words_.push_back(word); }
  template <class Words>
  void add_all(const Words& words) {
    add(static_cast<std::int64_t>(std::size(words)));
    for (const auto word : words) add(static_cast<std::int64_t>(word));
  }
  bool operator==(const PlanKey&) const = default;
  std::size_t hash() const {
    std::uint64_t h = 0x9e3779b97f4a7c15ull;
    for (const std::int64_t word : words_) {
      h = (h ^ static_cast<std::uint64_t>(word)) * 0xff51afd7ed558ccdull;
      h ^= h >> 32;
    }
    return static_cast<std::size_t>(h);
  }

 private:
  std::vector<std::int64_t> words_;
};

/// A plan and its idle runs. A run is taken for one execution and then given back.
class CachedPlan {
 public:
  /// `queue`: for data in a device's memory; it outlives this. `groups`: for messages in fused
  /// groups, which need no runs.
  CachedPlan(std::shared_ptr<const Plan> plan, std::string algorithm, std::int64_t segment,
             const DeviceQueue* queue = nullptr, std::vector<FusedGroup> groups = {})
      : plan(std::move(plan)),
        algorithm(std::move(algorithm)),
        segment(segment),
        groups(std::move(groups)),
        queue_(queue) {
    idle_.reserve(4);
    const std::string text =
        this->segment > 0 ? this->algorithm + ":" + std::to_string(this->segment) : this->algorithm;
    text.copy(label.data(), label.size() - 1);
  }
  std::unique_ptr<Run> take(int window) {
    ++taken_;
    if (idle_.empty()) {
      if (queue_) return std::make_unique<DeviceRun>(plan, window, *queue_);
      return std::make_unique<ScriptedRun>(plan, window);
    }
    std::unique_ptr<Run> run = std::move(idle_.back());
    idle_.pop_back();
    return run;
  }
  /// take() for a run that has its own scratch; null if there is none.
  std::unique_ptr<Run> take_small(int window) {
    std::unique_ptr<Run> run = take(window);
    if (!run->has_scratch()) give(std::exchange(run, nullptr));
    return run;
  }
  void give(std::unique_ptr<Run> run) {
    --taken_;
    idle_.push_back(std::move(run));
  }
  bool in_use() const { return taken_ > 0; }

  const std::shared_ptr<const Plan> plan;
  const std::string algorithm;
  const std::int64_t segment;  ///< bytes; 0: not cut
  const std::vector<FusedGroup> groups;
  std::array<char, 24> label{};  ///< algorithm and segment, "ring:65536"
  bool reached = false;          ///< whether a call's buffers have been checked (Planner::plan())

  /// The plan's number in a recorder, for one element type and one op.
  struct Recorded {
    std::weak_ptr<const tracing::Recorder> recorder;
    Datatype type;
    OpKind op;
    std::string name;  ///< RecordedName's
    std::uint32_t number;

    bool of(const std::shared_ptr<tracing::Recorder>& other) const {
      return !recorder.owner_before(other) && !other.owner_before(recorder);
    }
  };
  std::vector<Recorded> recorded;

 private:
  const DeviceQueue* queue_;
  std::vector<std::unique_ptr<Run>> idle_;
  int taken_ = 0;
  friend class Pin;
};

/// While it exists, the plan counts as in use, even without a run.
class Pin {
 public:
  explicit Pin(CachedPlan& plan) : plan_(plan) { ++plan_.taken_; }
  ~Pin() { --plan_.taken_; }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

 private:
  CachedPlan& plan_;
};

/// The most recently used plans. The number is bounded, except for plans in use. The least recently
/// used plan is dropped first.
class PlanCache {
 public:
  explicit PlanCache(std::size_t bound) : bound_(bound < 1 ? 1 : bound) {}

  /// The plan of this key, or null.
  CachedPlan* find(const PlanKey& key) {
    const auto found = plans_.find(key);
    if (found == plans_.end()) return nullptr;
    found->second.used = ++clock_;
    return found->second.plan.get();
  }
  /// Whether the next insert() drops a plan.
  bool full() const { return plans_.size() >= bound_; }
  CachedPlan& insert(const PlanKey& key, std::unique_ptr<CachedPlan> plan) {
    if (full()) evict();
    return *plans_.insert_or_assign(key, Entry{std::move(plan), ++clock_}).first->second.plan;
  }
  std::size_t size() const { return plans_.size(); }

 private:
  struct Entry {
    std::unique_ptr<CachedPlan> plan;
    std::uint64_t used;
  };
  struct Hash {
    std::size_t operator()(const PlanKey& key) const { return key.hash(); }
  };
  void evict() {
    auto oldest = plans_.end();
    for (auto i = plans_.begin(); i != plans_.end(); ++i) {
      if (i->second.plan->in_use()) continue;
      if (oldest == plans_.end() || i->second.used < oldest->second.used) oldest = i;
    }
    if (oldest != plans_.end()) plans_.erase(oldest);
  }

  std::size_t bound_;
  std::uint64_t clock_ = 0;
  std::unordered_map<PlanKey, Entry, Hash> plans_;
};

}  // namespace baton::execute
