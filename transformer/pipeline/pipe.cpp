#include "pipe.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "../accelerator.hpp"
#include "../held.hpp"
#include "../shape_guard.hpp"
#include "../training/batch.hpp"
#include "baton/error.hpp"
#include "failure.hpp"
#include "schedule.hpp"

namespace baton::transformer {
namespace {

/// Values from one thread to another, in order.
template <class V>
class Queue {
 public:
  void put(V value) {
    {
      const std::lock_guard lock(mutex_);
      values_.push_back(std::move(value));
    }
    changed_.notify_one();
  }
  /// Waits for one.
  V take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !values_.empty(); });
    V value = std::move(values_.front());
    values_.pop_front();
    return value;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<V> values_;
};

/// Throws what a task has thrown, with the place of the task.
[[noreturn]] void refuse_task(const std::exception_ptr& thrown, const std::string& place) {
  Failure failure{ErrorCode::invalid_argument, place + ": an unknown exception"};
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    failure = Failure::of(error, place);
    std::throw_with_nested(Error(failure.code, failure.sentence));
  } catch (...) {
    std::throw_with_nested(Error(failure.code, failure.sentence));
  }
}

}  // namespace

/// A thread that computes what comes in.
template <class T>
class Pipe<T>::Worker {
 public:
  using Task = std::function<Array<T>()>;
  struct Result {
    Array<T> value;
    std::exception_ptr thrown;
  };
  Worker() : thread_([this] { compute(); }) {}
  ~Worker() {
    in.put({});
    thread_.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  Queue<Task> in;  ///< the worker ends with an empty one
  Queue<Result> out;

 private:
  void compute() {
    while (Task task = in.take()) {
      Result result;
      try {
        result.value = task();
      } catch (...) {
        result.thrown = std::current_exception();
      }
      task = {};  // before the result: what it holds is the caller's again
      out.put(std::move(result));
    }
  }
  std::thread thread_;
};

/// The tasks of one direction. When it ends, all tasks have ended.
template <class T>
class Pipe<T>::Run {
 public:
  Run(Pipe& pipe, bool back)
      : pipe_(pipe), back_(back), given_(pipe.workers_.size()), taken_(pipe.workers_.size()) {}
  ~Run() { drain(); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void give(std::size_t partition, typename Worker::Task task) {
    pipe_.workers_[partition]->in.put(std::move(task));
    ++given_[partition];
  }
  /// The next result of a partition; those of micro-batches come in order.
  Array<T> take(std::size_t partition) {
    Array<T> value = next(partition);
    if (thrown_.empty()) return value;
    drain();
    const auto first =
        std::min_element(thrown_.begin(), thrown_.end(),
                         [](const Thrown& a, const Thrown& b) { return a.clock < b.clock; });
    refuse_task(first->exception, fmt::format("partition {}, micro-batch {}, {}", first->partition,
                                              first->micro_batch, back_ ? "backward" : "forward"));
  }

 private:
  struct Thrown {
    std::size_t clock, partition, micro_batch;
    std::exception_ptr exception;
  };
  Array<T> next(std::size_t partition) {
    auto result = pipe_.workers_[partition]->out.take();
    const std::size_t micro_batch = taken_[partition]++;
    const std::size_t place = back_ ? given_.size() - 1 - partition : partition;
    if (result.thrown)
      thrown_.push_back({place + micro_batch, partition, micro_batch, result.thrown});
    return std::move(result.value);
  }
  void drain() {
    for (std::size_t p = 0; p < given_.size(); ++p)
      while (taken_[p] < given_[p]) next(p);
  }

  Pipe& pipe_;
  bool back_;
  std::vector<std::size_t> given_, taken_;
  std::vector<Thrown> thrown_;
};

template <class T>
struct Pipe<T>::Saved {
  std::vector<std::vector<Context>> contexts;  // of each partition, by micro-batch
  Shape output;
};

template <class T>
Pipe<T>::Pipe(std::vector<Sequential<T>> partitions, int micro_batches)
    : partitions_(std::move(partitions)), micro_batches_(micro_batches) {
  if (partitions_.empty() || micro_batches < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("Pipe: expected at least 1 partition and 1 micro-batch, found {} and "
                            "{}",
                            partitions_.size(), micro_batches));
  }
  std::set<const Module<T>*> before;
  for (const Sequential<T>& partition : partitions_) {
    std::set<const Module<T>*> own;
    for (const auto& layer : partition.layers()) {
      own.insert(layer.module.get());
      if (!before.contains(layer.module.get())) continue;
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("Pipe: expected each layer in one partition, found {} in two", layer.name));
    }
    before.insert(own.begin(), own.end());
  }
  for (std::size_t p = 0; p < partitions_.size(); ++p)
    workers_.push_back(std::make_unique<Worker>());
}

template <class T>
Pipe<T>::~Pipe() = default;

template <class T>
std::vector<Array<T>> Pipe<T>::through(std::vector<Array<T>> micro_batches, bool back,
                                       const Work& work) {
  const std::size_t last = partitions_.size() - 1;
  const auto place = [&](int at) {
    const auto p = static_cast<std::size_t>(at);
    return back ? last - p : p;
  };
  const auto counted = MemoryCount::of_thread();
  std::vector<Array<T>> results;
  Run run(*this, back);
  for (const auto& clock :
       clock_cycles(static_cast<int>(micro_batches.size()), static_cast<int>(partitions_.size()))) {
    for (const auto& pair : clock) {
      const auto m = static_cast<std::size_t>(pair.first);
      const std::size_t p = place(pair.second);
      Array<T> x =
          pair.second == 0 ? std::move(micro_batches[m]) : run.take(place(pair.second - 1));
      run.give(p, [&work, &counted, p, m, x = std::move(x)]() mutable {
        std::optional<CountingScope> scope;
        if (counted) scope.emplace(*counted);
        return work(p, m, std::move(x));
      });
    }
  }
  for (std::size_t m = 0; m < micro_batches.size(); ++m)
    results.push_back(run.take(back ? 0 : last));
  return results;
}

template <class T>
Array<T> Pipe<T>::forward(const Array<T>& x, Context& context) {
  if (accelerator()) {
    throw Error(ErrorCode::unsupported,
                "Pipe: expected a thread without an accelerator, found one: its workers compute on "
                "the host");
  }
  if (x.shape().rank() == 0) expect_shape("Pipe: input", x.shape(), {any});
  const int count =
      std::max(1, static_cast<int>(std::min<std::int64_t>(micro_batches_, x.extent(0))));
  Saved saved;
  saved.contexts.resize(partitions_.size());
  std::vector<Array<T>> micro_batches;
  for (int m = 0; m < count; ++m) {
    const Range range = slice_of(x.extent(0), count, m);
    micro_batches.push_back(samples_of(x, range));
    for (auto& contexts : saved.contexts) {
      Context& own = contexts.emplace_back();
      own.keeps = context.keeps, own.training = context.training;
      own.random = context.random;
      own.first_sample = context.first_sample + range.begin;
    }
  }
  const auto outputs = through(std::move(micro_batches), false,
                               [&](std::size_t p, std::size_t m, const Array<T>& from) {
                                 return partitions_[p].forward(from, saved.contexts[p][m]);
                               });
  Array<T> y = joined_samples(outputs);
  saved.output = y.shape();
  context.push(std::move(saved));
  return y;
}

template <class T>
Array<T> Pipe<T>::backward(const Array<T>& dy, Context& context) {
  auto saved = context.pop<Saved>();
  expect_shape("Pipe: gradient of the output", dy.shape(), saved.output);
  const int count = static_cast<int>(saved.contexts[0].size());
  std::vector<Array<T>> micro_batches;
  for (int m = 0; m < count; ++m)
    micro_batches.push_back(samples_of(dy, slice_of(dy.extent(0), count, m)));
  const auto gradients = through(std::move(micro_batches), true,
                                 [&](std::size_t p, std::size_t m, const Array<T>& from) {
                                   return partitions_[p].backward(from, saved.contexts[p][m]);
                                 });
  for (const Param<T>* param : params()) context.complete(*param);
  return joined_samples(gradients);
}

template <class T>
Params<T> Pipe<T>::params() {
  Params<T> all;
  for (auto partition = partitions_.rbegin(); partition != partitions_.rend(); ++partition) {
    const Params<T> its = partition->params();
    all.insert(all.end(), its.begin(), its.end());
  }
  return all;
}

template class Pipe<float>;
template class Pipe<double>;
template class Pipe<bf16>;

}  // namespace baton::transformer
