#include "cases.hpp"

#include <atomic>
#include <barrier>
#include <chrono>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "allocations.hpp"
#include "baton/communicator.hpp"
#include "baton/error.hpp"
#include "baton/thread.hpp"
#include "support/tasks.hpp"

namespace faults {

using namespace baton;
using namespace std::chrono_literals;

namespace {

constexpr int block = 5;
constexpr std::chrono::milliseconds silence = 1s, patience = 20s;

/// What the ranks of a case find.
class Judge {
 public:
  void problem(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (!problem_.empty()) problem_ += "; ";
    problem_ += text;
  }
  void failed(const Error& error) {
    const std::lock_guard lock(mutex_);
    sentences_.insert(error.what());
    ++failed_;
  }
  const std::set<std::string>& sentences() const { return sentences_; }
  int failed() const { return failed_; }
  const std::string& found() const { return problem_; }

 private:
  std::mutex mutex_;
  std::string problem_;
  std::set<std::string> sentences_;
  int failed_ = 0;
};

/// One case's ranks and what they share.
struct Stage {
  explicit Stage(const Case& one) : one(one), ready(one.size) {}
  const Case& one;
  Course course{};
  Judge judge{};
  std::barrier<> ready;
  std::atomic<int> done = 0, ended = 0;
  std::atomic<bool> served = true;

  bool harmless() const { return one.plan.kind <= Kind::reordered; }
  /// The plan's rank ends with its fault.
  bool loses_rank() const {
    return one.plan.kind == Kind::dead || one.plan.kind == Kind::stopped ||
           one.plan.kind == Kind::no_memory;
  }
};

void go_on(Stage& stage, Communicator& c) {
  const int lost = stage.course.happened && stage.loses_rank() ? 1 : 0;
  Communicator survivors = c.shrink(patience);
  if (survivors.size() != stage.one.size - lost)
    stage.judge.problem("expected " + std::to_string(stage.one.size - lost) + " survivors, found " +
                        std::to_string(survivors.size()));
  std::vector<std::int32_t> ones(100, 1);
  survivors.all_reduce(ones, sum);
  if (ones[99] != survivors.size()) stage.judge.problem("the survivors' all_reduce is wrong");
}

/// The collective and a barrier; what it throws is the caller's.
void collective(Stage& stage, Communicator& c, Work& work, int rank) {
  const Plan& plan = stage.one.plan;
  std::optional<FailingAllocation> fails;
  if (plan.kind == Kind::no_memory && rank == plan.rank)
    fails.emplace(plan.at, stage.course.happened);
  Call call = work.call();
  call.choice = stage.one.choice;
  c.run(call);
  fails.reset();
  if (rank == plan.rank) stage.course.armed = false;  // the barrier is sound
  if (!work.right()) stage.judge.problem("rank " + std::to_string(rank) + ": a wrong result");
  c.barrier();
}

void survive(Stage& stage, Communicator& c, const Error& error) {
  // A rank that has stopped leaves when the others have found that it is missing.
  if (++stage.done == stage.one.size - 1) stage.course.over = true;
  if (error.code == ErrorCode::invalid_argument) {  // the algorithm does not serve them
    stage.served = false;
    return;
  }
  stage.judge.failed(error);
  if (error.code != ErrorCode::mismatch) go_on(stage, c);
}

void rank(Stage& stage, std::unique_ptr<Transport> transport) {
  const int rank = transport->rank();
  Options options;
  options.check = stage.one.check;
  options.timeout = stage.harmless() ? 60s : silence;
  try {
    std::optional<Communicator> made;
    try {
      made.emplace(faulty_transport(std::move(transport), stage.one.plan, stage.course), options);
    } catch (...) {
      stage.ready.arrive_and_drop();  // the others wait for it
      throw;
    }
    Communicator& c = *made;
    Work work(stage.one.collective, rank, stage.one.size, block);
    stage.ready.arrive_and_wait();
    if (rank == 0) stage.course.armed = true;
    stage.ready.arrive_and_wait();
    try {
      collective(stage, c, work, rank);
    } catch (const Error& error) {
      stage.course.armed = false;
      survive(stage, c, error);
    }
  } catch (const Ended&) {
    ++stage.ended;
  } catch (const std::bad_alloc&) {
    ++stage.ended;
  } catch (const std::exception& error) {
    stage.judge.problem("rank " + std::to_string(rank) + ": " + error.what());
  }
}

/// Whether there are as many as before; one that was joined may be seen for a moment longer.
bool threads_are(std::size_t before) {
  for (int i = 0; i < 2000; ++i) {
    if (support::threads() == before) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

void judge(Stage& stage) {
  Judge& judge = stage.judge;
  const bool happened = stage.course.happened;
  if (stage.harmless() || !happened) {
    for (const std::string& sentence : judge.sentences()) judge.problem(sentence);
    return;
  }
  const int survivors = stage.one.size - stage.ended;
  if (judge.failed() != 0 && judge.failed() != survivors)
    judge.problem("of " + std::to_string(survivors) + " survivors " +
                  std::to_string(judge.failed()) + " got an error");
  if (judge.sentences().size() > 1) {
    judge.problem("different sentences");
    for (const std::string& sentence : judge.sentences()) judge.problem(sentence);
  }
  const std::string culprit = "rank " + std::to_string(stage.one.plan.rank);
  for (const std::string& sentence : judge.sentences())
    if (stage.loses_rank() && sentence.find(culprit) == std::string::npos)
      judge.problem("no word of " + culprit + ": " + sentence);
}

}  // namespace

std::string describe(const Case& one) {
  std::string text = std::string(name(one.collective)) + " " + one.choice.algorithm;
  if (one.choice.segment.value_or(0) > 0) text += ":" + std::to_string(*one.choice.segment);
  return text + " on " + std::to_string(one.size) + " ranks, check " + std::to_string(one.check) +
         ", " + describe(one.plan);
}

namespace {

Outcome run_anew(const Case& one) {
  const std::size_t threads_before = support::threads();
  Outcome outcome;
  outcome.problem.reserve(10'000);
  const std::int64_t blocks_before = live_blocks();
  {
    Stage stage(one);
    ThreadOptions options;
    if (one.plan.kind != Kind::reordered) options.seed = one.plan.seed;
    for (int r = 0; r < one.size; ++r) options.hosts.push_back(r % 2);
    run_threads(
        one.size, [&](auto transport) { rank(stage, std::move(transport)); }, options);
    judge(stage);
    outcome.happened = stage.course.happened;
    outcome.served = stage.served;
    outcome.right = stage.judge.failed() == 0 && stage.ended == 0;
    if (outcome.served) outcome.problem.append(stage.judge.found(), 0, 9000);
  }
  if (live_blocks() != blocks_before)
    outcome.problem +=
        "; blocks of memory are left: " + std::to_string(live_blocks() - blocks_before);
  if (!threads_are(threads_before)) outcome.problem += "; threads are left";
  return outcome;
}

}  // namespace

Outcome run(const Case& one) {
  // What the library keeps for good is allocated before the count.
  static const bool warm = [] {
    for (const Kind kind : {Kind::none, Kind::shortened})
      run_anew({Collective::all_reduce, {"tree", 8}, 4, 2, {kind}});
    return true;
  }();
  static_cast<void>(warm);
  return run_anew(one);
}

}  // namespace faults
