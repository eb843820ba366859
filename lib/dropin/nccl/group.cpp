#include "group.hpp"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

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
  Failure failure;

  void run() noexcept {
    try {
      for (const auto& body : bodies) body();
      if (!messages.empty())
        member->run([&](StreamCommunicator& ranks) { ranks.exchange(messages); });
    } catch (...) {
      failure = failure_in_flight();
      if (member && failure.code != ncclInvalidArgument) member->keep(failure);
    }
  }
};

std::vector<Strand> strands_of(std::vector<Job> jobs) {
  std::vector<Strand> strands;
  for (Job& job : jobs) {
    auto found = strands.end();
    if (job.member) found = std::ranges::find(strands, job.member, &Strand::member);
    Strand& strand = found != strands.end() ? *found : strands.emplace_back();
    strand.member = std::move(job.member);
    if (job.message)
      strand.messages.push_back(*job.message);
    else
      strand.bodies.push_back(std::move(job.body));
  }
  return strands;
}

ncclResult_t run(std::vector<Job> jobs) {
  std::vector<Strand> strands = strands_of(std::move(jobs));
  std::vector<std::thread> threads;
  std::size_t begun = 1;
  const ncclResult_t started = guarded([&] {
    for (; begun < strands.size(); ++begun)
      threads.emplace_back([&strand = strands[begun]] { strand.run(); });
  });
  if (started == ncclSuccess && !strands.empty()) strands.front().run();
  for (std::thread& thread : threads) thread.join();
  if (started != ncclSuccess) return started;
  for (const Strand& strand : strands)
    if (strand.failure.code != ncclSuccess) return reported(strand.failure);
  return ncclSuccess;
}

}  // namespace

void begin_group() { ++group.depth; }
bool in_group() { return group.depth > 0; }

ncclResult_t give(Job job) {
  if (in_group()) {
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
    return reported({ncclInvalidUsage, "ncclGroupEnd: expected an open group, found none"});
  if (--group.depth > 0) return ncclSuccess;
  std::vector<Job> jobs = std::exchange(group.jobs, {});
  const ncclResult_t spoiled = std::exchange(group.spoiled, ncclSuccess);
  if (spoiled != ncclSuccess || drop) return spoiled;
  return run(std::move(jobs));
}

}  // namespace baton::nccl_abi
