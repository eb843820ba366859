#include "communicator.hpp"

#include <fmt/core.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <string_view>
#include <thread>
#include <utility>

#include "../../base/backoff.hpp"
#include "../../base/raise.hpp"
#include "platform.hpp"

namespace baton::nccl_abi {
namespace {

using namespace std::chrono_literals;

/// All handles. At the end of the program, those that are left are ended.
class Handles {
 public:
  ~Handles() {
    const std::vector<std::shared_ptr<ncclComm>> left = [&] {
      const std::lock_guard lock(mutex_);
      std::vector<std::shared_ptr<ncclComm>> all;
      for (auto& [handle, member] : members_) all.push_back(std::move(member));
      members_.clear();
      return all;
    }();
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t ended = 0;
    std::vector<std::thread> threads;
    for (const auto& member : left) {
      const auto end = [&, member] {
        guarded([&] { member->finalize(); });
        const std::lock_guard lock(mutex);
        ++ended;
        changed.notify_all();
      };
      try {
        threads.emplace_back(end);
      } catch (...) {  // no thread can wait for its calls
        guarded([&] { member->abort("the program has ended"); });
        end();
      }
    }
    {
      std::unique_lock lock(mutex);
      if (!changed.wait_for(lock, 5s, [&] { return ended == left.size(); }))
        for (const auto& member : left) member->abort("the program has ended");
    }
    for (std::thread& thread : threads) thread.join();
  }

  ncclComm_t add(std::shared_ptr<ncclComm> member) {
    const std::lock_guard lock(mutex_);
    ncclComm* const handle = member.get();
    members_[handle] = std::move(member);
    return handle;
  }
  std::shared_ptr<ncclComm> find(const ncclComm* handle) {
    const std::lock_guard lock(mutex_);
    const auto found = members_.find(handle);
    return found == members_.end() ? nullptr : found->second;
  }
  void remove(const ncclComm* handle) {
    const std::lock_guard lock(mutex_);
    members_.erase(handle);
  }

 private:
  std::mutex mutex_;
  std::map<const ncclComm*, std::shared_ptr<ncclComm>> members_;
};

/// Threads that end communicators: a farewell, or the end of a recording, waits for other ranks,
/// and ncclCommDestroy of theirs may come later in this very thread. After an abort, streams may
/// have yet to come to the memory of scaled inputs.
class Endings {
 public:
  ~Endings() {
    over_ = true;
    start();
    for (const auto& one : endings_)
      if (one->thread.joinable()) one->thread.join();
  }
  /// What this throws has taken neither.
  void add(std::shared_ptr<StreamCommunicator>&& communicator,
           std::unique_ptr<Scalings>&& scalings) {
    const std::lock_guard lock(mutex_);
    std::erase_if(endings_, [](const auto& one) {
      if (!one->done) return false;
      one->thread.join();
      return true;
    });
    auto ending = std::make_shared<Ending>();
    endings_.push_back(ending);
    ending->communicator = std::move(communicator);
    ending->scalings = std::move(scalings);
    start();
  }

 private:
  struct Ending {
    std::shared_ptr<StreamCommunicator> communicator;
    std::unique_ptr<Scalings> scalings;
    std::atomic<bool> done = false;
    std::thread thread;
  };
  /// Where a thread cannot be started, the next call tries again.
  void start() noexcept {
    try {
      for (const auto& one : endings_)
        if (!one->thread.joinable())
          one->thread = std::thread([this, one] {
            one->communicator.reset();
            for (base::Backoff backoff; !one->scalings->passed() && !over_;) backoff.wait();
            one->scalings.reset();
            one->done = true;
          });
    } catch (...) {  // no thread
    }
  }
  std::atomic<bool> over_ = false;  // the program ends: nobody waits for its streams
  std::mutex mutex_;
  std::vector<std::shared_ptr<Ending>> endings_;
};

Endings& endings() {
  static Endings endings;
  return endings;
}
Handles& handles() {
  endings();  // is there for the last handles
  static Handles handles;
  return handles;
}

Options options_with(const std::string& name) {
  Options options = Options::from_environment();
  if (!name.empty()) options.name = name;
  return options;
}

/// What programs do behind a call may stop the calls by which its messages move, see Returns.
Returns returns() {
  static const Returns once = [] {
    const char* const streams = std::getenv("BATON_NCCL_STREAMS");
    if (!streams || !*streams) return Returns::complete;
    if (std::string_view(streams) == "held") return Returns::at_once;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("BATON_NCCL_STREAMS: expected held or nothing, found '{}'", streams));
  }();
  return once;
}

}  // namespace

Member::Member(Origin origin, int rank, int size, int ordinal, const std::string& name)
    : Member(origin,
             StreamCommunicator(connect(origin, rank, size, ordinal), platform::device(ordinal),
                                options_with(name), returns()),
             ordinal) {}

Member::Member(Origin origin, StreamCommunicator communicator, int ordinal)
    : origin_(std::move(origin)),
      ordinal_(ordinal),
      communicator_(std::make_shared<StreamCommunicator>(std::move(communicator))),
      rank_(communicator_->rank()),
      size_(communicator_->size()),
      scalings_(std::make_unique<Scalings>(platform::device(ordinal))) {}

Member::~Member() {
  try {
    endings().add(std::move(communicator_), std::move(scalings_));
  } catch (...) {  // no memory: no thread ends it, it ends in this one
  }
}

void Member::require_in_use() const {
  const Phase phase = phase_;
  if (phase == Phase::finalized || phase == Phase::revoked)
    base::refuse("expected a communicator in use, found one after its {}",
                 phase == Phase::finalized ? "ncclCommFinalize" : "ncclCommRevoke");
}

void Member::run(const Use& use) {
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::finalized) require_in_use();
  use(*communicator_);
}

std::shared_ptr<ncclComm> Member::split(int color, int key, const std::string& name) {
  std::shared_ptr<ncclComm> part;
  run([&](StreamCommunicator& whole) {
    const std::uint64_t number = ++parts_;
    StreamCommunicator made = whole.split(color, key);
    if (!made.valid()) return;
    if (!name.empty()) made.set_name(name);
    part = std::make_shared<ncclComm>(
        origin_.with(number << 32 | static_cast<std::uint32_t>(color)), std::move(made), ordinal_);
  });
  return part;
}

std::shared_ptr<ncclComm> Member::without(const std::set<int>& ranks, const std::string& name) {
  std::uint64_t what = 0;
  {
    const std::lock_guard lock(mutex_);
    what = ++parts_ << 32 | 0x80000000u;
  }
  int rank = rank_;
  Origin origin = origin_.with(what);
  for (const int excluded : ranks) {
    origin = origin.with(static_cast<std::uint64_t>(excluded));
    rank -= excluded < rank_ ? 1 : 0;
  }
  return std::make_shared<ncclComm>(origin, rank, size_ - static_cast<int>(ranks.size()), ordinal_,
                                    name);
}

void Member::finalize() {
  const std::lock_guard lock(mutex_);
  Phase before = Phase::in_use;
  if (phase_.compare_exchange_strong(before, Phase::finalized)) communicator_->synchronize();
}

void Member::end(Phase phase, const std::string& why) {
  phase_ = phase;
  communicator_->abort(why);
}

ncclResult_t Member::asynchronous_error() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock() && phase_ == Phase::in_use) {
    try {
      communicator_->check();
    } catch (...) {
      keep(failure_in_flight());
    }
  }
  const std::lock_guard told(told_mutex_);
  return told_.code;
}

void Member::keep(const Failure& failure) noexcept {
  const std::lock_guard lock(told_mutex_);
  if (told_.code != ncclSuccess) return;
  told_.code = failure.code;
  try {
    told_.text = failure.text;
  } catch (...) {  // no memory for the sentence
  }
}

std::string Member::last_text() const {
  const std::lock_guard lock(told_mutex_);
  return told_.text;
}

void* Member::register_memory() {
  const std::lock_guard lock(registered_mutex_);
  return registered_.insert(std::make_unique<char>()).first->get();
}

bool Member::deregister(void* handle) {
  const std::lock_guard lock(registered_mutex_);
  return std::erase_if(registered_, [&](const auto& one) { return one.get() == handle; }) > 0;
}

ncclComm_t given_out(std::shared_ptr<ncclComm> member) { return handles().add(std::move(member)); }
std::shared_ptr<ncclComm> of_handle(const ncclComm* handle) { return handles().find(handle); }
void take_back(const ncclComm* handle) { handles().remove(handle); }

}  // namespace baton::nccl_abi
