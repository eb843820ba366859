#include "driver.hpp"

#include <algorithm>
#include <utility>

#include "baton/error.hpp"

namespace baton::pytorch {
namespace {

using namespace std::chrono_literals;

// How often the driver's thread looks at messages while no task is under way: ranks that leave wait
// for an answer.
constexpr auto watch = 50ms;

Error timed_out(const Task& task, const Error& error) {
  return Error(ErrorCode::timeout, task.name + ": Timed out waiting " +
                                       std::to_string(task.timeout.count()) + "ms; " +
                                       error.what());
}

}  // namespace

Driver::~Driver() {
  {
    const Lock lock(mutex_);
    stop_ = true;
  }
  join();
}

void Driver::join() {
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Driver::add(const void* group, Communicator& communicator) {
  const std::lock_guard starting(starting_);
  bool first = false;
  {
    const Lock lock(mutex_);
    first = members_.empty();
    members_.push_back({group, &communicator});
  }
  if (!first) return;
  join();  // the one that the last group has stopped
  stop_ = false;
  thread_ = std::thread([this] { run(); });
}

void Driver::remove(const void* group, const std::string& why) {
  abort(group, why);  // tells ends, which may make groups
  const std::lock_guard starting(starting_);
  {
    Lock lock(mutex_);
    std::erase_if(members_, [&](const Member& m) { return m.group == group; });
    nobody_idle_.wait(lock, [&] { return idle_ == 0; });
    if (!members_.empty()) return;
    stop_ = true;
  }
  // A group may end where this very thread tells the end of its last task.
  if (thread_.get_id() != std::this_thread::get_id()) join();
}

void Driver::abort(const void* group, const std::string& why) {
  Lock lock(mutex_);
  fail([&](const Task& task) { return task.group == group; }, why);
  tell(lock);
}

void Driver::abort(const Task& task, const std::string& why) {
  Lock lock(mutex_);
  fail([&](const Task& one) { return &one == &task; }, why);
  tell(lock);
}

std::string Driver::waits_for(const Task& task) {
  const Lock lock(mutex_);
  return task.over_ ? "waits for nothing" : task.waits_for();
}

template <class Which>
void Driver::fail(const Which& which, const std::string& why) {
  for (std::size_t i = tasks_.size(); i-- > 0;) {
    if (!which(*tasks_[i])) continue;
    tasks_[i]->abandon(why);
    take_over(i,
              std::make_exception_ptr(Error(ErrorCode::transport, tasks_[i]->name + ": " + why)));
  }
}

Driver::Member* Driver::member(const void* group) {
  const auto found = std::ranges::find(members_, group, &Member::group);
  return found == members_.end() ? nullptr : &*found;
}

void Driver::start(std::shared_ptr<Task> task, bool waits) {
  Lock lock(mutex_);
  Member* const owner = member(task->group);
  if (!owner)
    throw Error(ErrorCode::transport,
                task->name + ": expected a process group, found one that has been destroyed");
  if (complete(*task, tasks_.size())) {
    task->over_ = true;
    lock.unlock();
    return task->ended(nullptr);
  }
  ++owner->tasks;
  tasks_.push_back(std::move(task));
  if (!waits && waiting_ == 0) changed_.notify_one();
}

bool Driver::complete(Task& task, std::size_t older) {
  if (!task.advance()) return false;
  return !task.closes || std::none_of(tasks_.begin(), tasks_.begin() + std::ptrdiff_t(older),
                                      [&](const std::shared_ptr<Task>& one) {
                                        return one->group == task.group && one->collective;
                                      });
}

void Driver::hurry() { changed_.notify_one(); }

void Driver::take_over(std::size_t index, std::exception_ptr error) {
  std::shared_ptr<Task> task = std::move(tasks_[index]);
  tasks_.erase(tasks_.begin() + static_cast<std::ptrdiff_t>(index));
  task->over_ = true;
  if (error && task->collective)
    for (std::size_t i = index; i < tasks_.size(); ++i)
      if (tasks_[i]->group == task->group && tasks_[i]->closes) tasks_[i]->older_failed_ = error;
  if (Member* const owner = member(task->group)) --owner->tasks;
  over_.push_back({std::move(task), std::move(error)});
}

void Driver::tell(Lock& lock) {
  while (!over_.empty()) {
    std::vector<Over> told = std::exchange(over_, {});
    lock.unlock();
    for (Over& one : told) one.task->ended(one.error);
    told.clear();
    lock.lock();
  }
}

bool Driver::advance(Lock& lock) {
  bool further = false;
  for (const Member& m : members_)
    if (m.tasks > 0) further |= m.communicator->progress();
  const auto now = further ? Clock::time_point::min() : Clock::now();
  for (std::size_t i = 0; i < tasks_.size();) {
    Task& task = *tasks_[i];
    try {
      if (!complete(task, i)) {
        if (now <= task.deadline) {
          ++i;
          continue;
        }
        const std::string why = task.cause();
        task.abandon("an operation took longer than its timeout");
        throw Error(ErrorCode::timeout, why);
      }
      take_over(i, task.older_failed_);
    } catch (const Error& error) {
      // This rank's time is over, or another's that depends on it.
      take_over(i, error.code == ErrorCode::timeout
                       ? std::make_exception_ptr(timed_out(task, error))
                       : std::current_exception());
    } catch (...) {
      take_over(i, std::current_exception());
    }
    further = true;
  }
  if (!over_.empty()) tell(lock);
  return further;
}

void Driver::idle(Lock& lock, std::chrono::microseconds at_most) {
  const auto busy = std::ranges::count_if(members_, [](const Member& m) { return m.tasks > 0; });
  if (busy == 0) return;
  do turn_ = turn_ + 1 < members_.size() ? turn_ + 1 : 0;
  while (members_[turn_].tasks == 0);
  Transport& transport = members_[turn_].communicator->transport();
  ++idle_;
  lock.unlock();
  transport.idle(busy > 1 ? std::min(at_most, std::chrono::microseconds(50us)) : at_most);
  lock.lock();
  if (--idle_ == 0) nobody_idle_.notify_all();
}

template <class Done>
bool Driver::drive(Lock& lock, Clock::time_point until, const Done& done) {
  ++waiting_;
  while (!done()) {
    if (advance(lock)) continue;
    if (until != Clock::time_point::max() && Clock::now() > until) break;
    idle(lock, 200us);
  }
  if (--waiting_ == 0 && !tasks_.empty()) changed_.notify_one();
  return done();
}

bool Driver::wait(const Task& task, Clock::time_point until) {
  Lock lock(mutex_);
  return drive(lock, until, [&] { return task.over_; });
}

bool Driver::wait_all(const void* group, Clock::time_point until) {
  Lock lock(mutex_);
  return drive(lock, until, [&] {
    return std::ranges::none_of(
        tasks_, [&](const std::shared_ptr<Task>& task) { return task->group == group; });
  });
}

void Driver::run() {
  Lock lock(mutex_);
  while (!stop_) {
    if (waiting_ > 0 || tasks_.empty()) {
      changed_.wait_for(lock, watch);
      if (waiting_ == 0 && tasks_.empty() && !stop_)
        for (const Member& m : members_) m.communicator->transport().progress();
    } else if (!advance(lock)) {
      idle(lock, 1ms);
    }
  }
}

}  // namespace baton::pytorch
