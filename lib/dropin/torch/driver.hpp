#pragma once
/// The thread that advances all groups of a process, and the waiting of other threads.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "baton/communicator.hpp"

namespace baton::pytorch {

using Clock = std::chrono::steady_clock;

/// An operation of one group, as the driver sees it. The driver calls all functions but ended() in
/// its turn.
class Task {
 public:
  virtual ~Task() = default;
  /// Goes on without waiting; true when it is complete. Throws its failure.
  virtual bool advance() = 0;
  /// "waits for rank 3 (step 4 …)".
  virtual std::string waits_for() const = 0;
  /// Why it does not complete, as all ranks tell it. It is given up then.
  virtual std::string cause() const = 0;
  /// Gives up all that is under way.
  virtual void abandon(const std::string& why) noexcept = 0;
  /// Called once, outside the driver's turn: it is complete, or has failed with `error`.
  virtual void ended(std::exception_ptr error) = 0;

  std::string name;             ///< "all_reduce #12"
  const void* group = nullptr;  ///< that it belongs to
  bool collective = true;       ///< not a single message
  bool closes = false;          ///< is over only after the group's older collectives, or fails
  std::chrono::milliseconds timeout{0};
  Clock::time_point deadline = Clock::time_point::max();  ///< now, when it began, and `timeout`

 private:
  friend class Driver;
  bool over_ = false;
  std::exception_ptr older_failed_;  // the failure of one that this one closes
};

/// Advances the tasks of all groups. A thread that waits for a task advances all of them itself, so
/// a blocking collective costs no change of threads. The driver's own thread does so while tasks
/// are under way and nobody waits. Both leave the core to others while nothing comes.
///
/// Communicators are used in the driver's turn only: one thread at a time, whichever it is. Ends
/// are told outside of it. The callbacks that are called then may wait for other tasks: meanwhile
/// there is a further thread, which advances and tells those.
class Driver {
 public:
  Driver() = default;
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  /// The turn: communicators may be used while it is held.
  std::unique_lock<std::mutex> turn() { return std::unique_lock(mutex_); }

  /// From now on the communicator is advanced. The thread starts with the first group and ends
  /// with the last.
  void add(const void* group, Communicator& communicator);
  /// No longer. Tasks of the group that are not over fail with `why`; nobody starts further ones.
  void remove(const void* group, const std::string& why);
  /// Fails all tasks of the group that are not over with `why`.
  void abort(const void* group, const std::string& why);

  /// Fails the task with `why`, unless it is over.
  void abort(const Task& task, const std::string& why);
  std::string waits_for(const Task& task);

  /// Begins a task. `waits`: the caller is about to wait for it. Throws its failure, if it fails at
  /// once; ended() is not called then.
  void start(std::shared_ptr<Task> task, bool waits);
  /// Somebody depends on the task without waiting for it.
  void hurry();
  /// Advances all tasks until this one is over, or `until`; whether it is over.
  bool wait(const Task& task, Clock::time_point until);
  /// Advances all tasks until those of the group are over, or `until`; whether they are.
  bool wait_all(const void* group, Clock::time_point until);

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Member {
    const void* group;
    Communicator* communicator;
    int tasks = 0;
  };
  /// A task that is over, whose end has not been told.
  struct Over {
    std::shared_ptr<Task> task;
    std::exception_ptr error;
  };

  Member* member(const void* group);
  /// Looks at the messages of groups without tasks: ranks that leave wait for an answer.
  void look();
  /// Advances it; whether it is complete, and all older tasks that it closes are over. `older`:
  /// how many tasks are older.
  bool complete(Task& task, std::size_t older);
  /// Advances everything once. True if there was progress.
  bool advance();
  void take_over(std::size_t index, std::exception_ptr error);
  template <class Which>
  void fail(const Which& which, const std::string& why);
  /// Tells all ends that nobody tells yet, outside the turn.
  void tell(Lock& lock);
  /// Waits for messages, outside the turn.
  void idle(Lock& lock, std::chrono::microseconds at_most);
  template <class Done>
  bool drive(Lock& lock, Clock::time_point until, const Done& done);
  void run();
  /// Another thread of the driver.
  void spawn();
  /// Waits for the end of the driver's threads, unless this is one of them.
  void join();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Member> members_;
  std::vector<std::shared_ptr<Task>> tasks_;  // under way, oldest first
  std::deque<Over> over_;                     // to be told, in this order
  std::size_t turn_ = 0;                      // of the member to wait in
  Clock::time_point next_look_;
  std::atomic<int> driving_ = 0;           // threads that advance tasks; written in the turn
  std::vector<const Transport*> idle_in_;  // one for each thread in idle()
  std::condition_variable idle_ended_;
  bool stop_ = false;
  std::mutex starting_;  // of the first thread, and the end of all
  std::vector<std::thread> threads_;
  int free_ = 0;  // of them, those that tell no end
};

}  // namespace baton::pytorch
