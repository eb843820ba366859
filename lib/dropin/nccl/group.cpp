#include "group.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <memory>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "../../base/raise.hpp"

namespace baton::nccl_abi {
namespace {

struct Group {
  int depth = 0;
  ncclResult_t spoiled = ncclSuccess;
  std::vector<Job> jobs;
};
thread_local Group group;

/// The jobs of one communicator, or one job that makes one.
struct Strand {
  std::shared_ptr<ncclComm> member;
  std::vector<std::function<void()>> bodies;
  std::vector<StreamMessage> messages;
  std::vector<Stream> streams;  // of all jobs, each once
  /// Strands with messages that are beside this one, itself included, and have not come so far:
  /// their streams may share hardware queues.
  std::shared_ptr<std::atomic<int>> missing;
  bool has_come = false;
  bool of_thread = false;  // must run in the group's own thread
  Failure failure;

  bool others_came() {
    if (!std::exchange(has_come, true)) --*missing;
    return *missing == 0;
  }

  void add(Stream stream) {
    if (std::ranges::find(streams, stream) == streams.end()) streams.push_back(stream);
  }

  /// What a stream is given later comes after all that each of them has been given.
  void join_streams() {
    if (streams.size() < 2) return;
    member->run([&](StreamCommunicator& ranks) {
      Device& device = ranks.device();
      try {
        for (const Stream stream : streams) device.check_stream(stream);
      } catch (const Error&) {  // its job says so
        return streams.clear();
      }
      try {
        const std::unique_ptr<Marker> marker = device.make_marker();
        const std::span others(streams.begin() + 1, streams.end());
        for (const Stream other : others) {
          marker->set(other);
          marker->hold(streams.front());
        }
        marker->set(streams.front());
        for (const Stream other : others) marker->hold(other);
      } catch (const Error& error) {
        ranks.abort(error.what());  // other ranks may wait for this one
        throw;
      }
    });
  }

  /// Throws unless this rank receives as many messages of its own as it sends: one that is left
  /// might wait for ever.
  void check_own_messages() const {
    const auto own = [&](bool send) {
      return std::ranges::count_if(messages, [&](const StreamMessage& message) {
        return message.send == send && message.peer == member->rank();
      });
    };
    const auto sends = own(true), receives = own(false);
    if (sends == receives) return;
    member->run(
        [](StreamCommunicator& ranks) { ranks.check(); });  // an earlier failure comes first
    base::raise(ErrorCode::unsupported,
                fmt::format("rank {}: expected as many receives from itself as sends to itself in "
                            "one group, found {} receives and {} sends",
                            member->rank(), receives, sends),
                {.rank = member->rank(), .peer = member->rank()});
  }

  void run() noexcept {
    try {
      check_own_messages();
      join_streams();
      for (const auto& body : bodies) body();
      if (!messages.empty())
        member->run([&](StreamCommunicator& ranks) {
          ranks.exchange(messages, [&] { return others_came(); });
        });
      join_streams();
    } catch (...) {
      if (missing) others_came();
      failure = failure_in_flight();
      if (member && failure.code != ncclInvalidArgument) member->keep(failure);
    }
  }
};

std::vector<Strand> strands_of(std::vector<Job>& jobs) {
  std::vector<Strand> strands;
  for (Job& job : jobs) {
    auto found = strands.end();
    if (job.member) found = std::ranges::find(strands, job.member, &Strand::member);
    Strand& strand = found != strands.end() ? *found : strands.emplace_back();
    strand.member = job.member;
    strand.of_thread |= job.of_thread();
    if (job.message)
      strand.messages.push_back(*job.message);
    else
      strand.bodies.push_back(std::move(job.body));
    if (const auto stream = job.message ? job.message->stream : job.stream) strand.add(*stream);
  }
  std::stable_partition(strands.begin(), strands.end(),
                        [](const Strand& strand) { return strand.of_thread; });
  return strands;
}

/// Lets strands with messages wait for those beside them.
void join_those_beside(std::vector<Strand>& strands) {
  for (Strand& strand : strands) {
    if (strand.messages.empty()) continue;
    for (Strand& other : strands)  // up to this one
      if (other.missing && other.member->beside(*strand.member)) strand.missing = other.missing;
    if (!strand.missing) strand.missing = std::make_shared<std::atomic<int>>(0);
    ++*strand.missing;
  }
}

/// Runs the strands side by side, the first in this thread. None begins before each has its thread.
/// Throws std::system_error, std::bad_alloc; then nothing has begun.
void run_together(std::vector<Strand>& strands) {
  std::latch all_there(1);
  bool begin = false;
  std::vector<std::thread> threads;
  const auto let_go = [&](bool all) {
    begin = all;
    all_there.count_down();
  };
  const auto join = [&] {
    for (std::thread& thread : threads) thread.join();
  };
  try {
    for (std::size_t i = 1; i < strands.size(); ++i)
      threads.emplace_back([&, i] {
        all_there.wait();
        if (begin) strands[i].run();
      });
  } catch (const std::system_error& error) {
    let_go(false);
    join();
    throw std::system_error(error.code(),
                            fmt::format("expected {} more threads for the communicators of a "
                                        "group, found {}",
                                        strands.size() - 1, threads.size()));
  } catch (...) {
    let_go(false);
    join();
    throw;
  }
  let_go(true);
  strands.front().run();
  join();
}

ncclResult_t run(std::vector<Job> jobs) {
  if (jobs.empty()) return ncclSuccess;
  std::vector<Strand> strands;
  try {
    strands = strands_of(jobs);
    join_those_beside(strands);
    run_together(strands);
  } catch (...) {
    // This rank leaves out calls that other processes make: it is out of step with them.
    const Failure failure = failure_in_flight();
    for (const Job& job : jobs) {
      if (!job.member) continue;
      job.member->keep(failure);
      guarded([&] { job.member->abort(failure.text); });
    }
    return reported(failure);
  }
  for (const Strand& strand : strands)
    if (strand.failure.code != ncclSuccess) return reported(strand.failure);
  return ncclSuccess;
}

}  // namespace

void begin_group() { ++group.depth; }
bool in_group() { return group.depth > 0; }

ncclResult_t give(Job job) {
  if (in_group()) {
    const auto in_the_way = [&](const Job& other) {
      return other.of_thread() && other.member != job.member;
    };
    if (job.of_thread() && std::ranges::any_of(group.jobs, in_the_way))
      throw Error(ErrorCode::unsupported,
                  "expected one communicator at most with calls in cudaStreamPerThread in a group, "
                  "found two");
    group.jobs.push_back(std::move(job));
    return ncclSuccess;
  }
  std::vector<Job> one;
  one.push_back(std::move(job));
  return run(std::move(one));
}

ncclResult_t spoil_group(ncclResult_t code) {
  if (in_group() && group.spoiled == ncclSuccess) group.spoiled = code;
  return code;
}

ncclResult_t end_group(bool drop) {
  if (group.depth == 0)
    return guarded([] {
      throw Error(ErrorCode::unsupported, "ncclGroupEnd: expected an open group, found none");
    });
  if (--group.depth > 0) return ncclSuccess;
  std::vector<Job> jobs = std::exchange(group.jobs, {});
  const ncclResult_t spoiled = std::exchange(group.spoiled, ncclSuccess);
  if (spoiled != ncclSuccess || drop) return spoiled;
  return run(std::move(jobs));
}

}  // namespace baton::nccl_abi
