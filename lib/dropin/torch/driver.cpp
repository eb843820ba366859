#include "driver.hpp"

#include <algorithm>
#include <utility>

#include "baton/error.hpp"

namespace baton::pytorch {
namespace {

using namespace std::chrono_literals;

// How often messages of groups without tasks are looked at, and whether a thread that advanced
// tasks is held up by what it tells.
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

void Driver::spawn() {
  ++free_;
  threads_.emplace_back([this] { run(); });
}

void Driver::join() {
  changed_.notify_all();
  Lock lock(mutex_);
  if (std::ranges::any_of(threads_, [self = std::this_thread::get_id()](const std::thread& one) {
        return one.get_id() == self;
      }))
    return;
  while (!threads_.empty()) {
    std::thread ending = std::move(threads_.back());
    threads_.pop_back();
    lock.unlock();
    ending.join();
    lock.lock();
  }
}

void Driver::add(const void* group, Communicator& communicator) {
  const std::lock_guard starting(starting_);
  {
    const Lock lock(mutex_);
    members_.push_back({group, &communicator});
    if (members_.size() > 1) return;
  }
  join();  // those that the last group has stopped
  const Lock lock(mutex_);
  stop_ = false;
  if (free_ == 0) spawn();
}

void Driver::remove(const void* group, const std::string& why) {
  abort(group, why);  // tells ends, which may make groups
  const std::lock_guard starting(starting_);
  {
    Lock lock(mutex_);
    const Member* const found = member(group);
    if (!found) return;
    const Transport* const transport = &found->communicator->transport();
    std::erase_if(members_, [&](const Member& m) { return m.group == group; });
    idle_ended_.wait(lock,
                     [&] { return std::ranges::find(idle_in_, transport) == idle_in_.end(); });
    if (!members_.empty()) return;
    stop_ = true;
  }
  join();
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
  if (!waits) hurry();
}

bool Driver::complete(Task& task, std::size_t older) {
  if (!task.advance()) return false;
  return !task.closes || std::none_of(tasks_.begin(), tasks_.begin() + std::ptrdiff_t(older),
                                      [&](const std::shared_ptr<Task>& one) {
                                        return one->group == task.group && one->collective;
                                      });
}

void Driver::hurry() {
  if (driving_ == 0) changed_.notify_one();
}

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
    {
      // One by one: a callback may wait for the end of the next.
      const Over one = std::move(over_.front());
      over_.pop_front();
      lock.unlock();
      one.task->ended(one.error);
    }
    lock.lock();
  }
}

void Driver::look() {
  for (const Member& m : members_)
    if (m.tasks == 0) m.communicator->transport().progress();
}

bool Driver::advance() {
  bool further = false;
  for (const Member& m : members_)
    if (m.tasks > 0) further |= m.communicator->progress();
  const auto now = further ? Clock::time_point::min() : Clock::now();
  if (now > next_look_) {
    look();
    next_look_ = now + watch;
  }
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
  return further;
}

void Driver::idle(Lock& lock, std::chrono::microseconds at_most) {
  const auto busy = std::ranges::count_if(members_, [](const Member& m) { return m.tasks > 0; });
  if (busy == 0) return;
  do turn_ = turn_ + 1 < members_.size() ? turn_ + 1 : 0;
  while (members_[turn_].tasks == 0);
  Transport& transport = members_[turn_].communicator->transport();
  idle_in_.push_back(&transport);
  lock.unlock();
  transport.idle(busy > 1 ? std::min(at_most, std::chrono::microseconds(50us)) : at_most);
  lock.lock();
  idle_in_.erase(std::ranges::find(idle_in_, &transport));
  idle_ended_.notify_all();
}

template <class Done>
bool Driver::drive(Lock& lock, Clock::time_point until, const Done& done) {
  ++driving_;
  while (!done()) {
    if (!advance()) {
      if (until != Clock::time_point::max() && Clock::now() > until) break;
      idle(lock, 200us);
    } else if (!over_.empty()) {
      --driving_;
      tell(lock);
      ++driving_;
    }
  }
  if (--driving_ == 0 && !tasks_.empty()) changed_.notify_one();
  const bool is_done = done();
  tell(lock);  // its end, too, if the thread that found it is held up by another one
  return is_done;
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
  for (;;) {
    if (!over_.empty()) {
      if (--free_ == 0) spawn();  // it goes on if a callback waits
      tell(lock);
      ++free_;
    } else if (stop_) {
      break;
    } else if (driving_ > 0 || tasks_.empty()) {
      changed_.wait_for(lock, watch);
      if (driving_ == 0 && tasks_.empty() && !stop_) look();
    } else {
      ++driving_;
      if (!advance()) idle(lock, 1ms);
      --driving_;
    }
  }
  --free_;
}

}  // namespace baton::pytorch
