/// A process of processes.py: in rounds, every collective by changing algorithms, messages, splits,
/// a tuning table and a recording that are written as files; all results are checked. After a
/// failure the survivors go on by shrink(). Ends when FOLDER/stop exists.
///
/// FOLDER/RANK.log tells the course, a line for each event with the time of the monotonic clock:
/// `round NUMBER RANK SIZE` (complete), `error SENTENCE`, `refused SENTENCE` (of a file), `wrong
/// RESULT`, `survived RANK SIZE` (of the survivors' communicator), `late SENTENCE`, `failed
/// EXCEPTION`, `end`. Files of the job go to FOLDER/files.
///
/// Usage: job ucx|shm FOLDER RANK SIZE HOST:PORT [interrupted | unreadable]
/// interrupted: a signal without SA_RESTART every millisecond. unreadable: others may not read this
/// process's memory.

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "baton/communicator.hpp"
#include "baton/error.hpp"
#include "baton/shm.hpp"
#ifdef WITH_UCX
#include "baton/ucx.hpp"
#endif
#include "work.hpp"

namespace {

using namespace baton;
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds patience = 8s;
constexpr int blocks[] = {1, 100, 20000};
constexpr int all_ranks = 2;  // a color; halves have 0 and 1, and so their names

/// Opened once: the job goes on when its descriptors are used up.
class Log {
 public:
  explicit Log(const std::string& file)
      : descriptor_(open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}
  void operator()(const std::string& event, const std::string& text = {}) const {
    const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
    const std::string line = std::to_string(now.count()) + " " + event + " " + text + "\n";
    while (write(descriptor_, line.data(), line.size()) < 0 && errno == EINTR) continue;
  }

 private:
  int descriptor_;
};

class Job {
 public:
  Job(std::string over, std::filesystem::path folder, const Log& log)
      : over_(std::move(over)),
        folder_(std::move(folder)),
        log_(log),
        subjects_(faults::subjects()) {}

  /// One round; false if it was the last.
  bool round(Communicator& c) {
    collectives(c);
    messages(c);
    splits(c);
    if (round_ % 4 == 0) files(c);
    std::vector<std::int32_t> stop(1, std::filesystem::exists(folder_ / "stop") ? 1 : 0);
    c.all_reduce(stop, max);
    log_("round",
         std::to_string(round_) + " " + std::to_string(c.rank()) + " " + std::to_string(c.size()));
    ++round_;
    return stop[0] == 0;
  }
  /// Survivors of an earlier failure continue at the highest number that one of them has.
  void align(Communicator& c) {
    std::vector<std::int64_t> number(1, round_ + 1);
    c.all_reduce(number, max);
    round_ = number[0];
  }

 private:
  void collectives(Communicator& c) {
    const int block = blocks[round_ % std::size(blocks)];
    for (int k = 0; k < static_cast<int>(Collective::program); ++k) {
      const auto collective = static_cast<Collective>(k);
      std::vector<faults::Subject> candidates;
      for (const faults::Subject& subject : subjects_)
        if (subject.collective == collective) candidates.push_back(subject);
      const auto& subject = candidates[static_cast<std::size_t>(round_) % candidates.size()];
      faults::Work work(collective, c.rank(), c.size(), block);
      Call call = work.call();
      call.choice = subject.choice;
      if (block > 1000 && call.choice.segment > 0) call.choice.segment = 4096;
      try {
        c.run(call);
      } catch (const Error& error) {
        if (error.code != ErrorCode::invalid_argument) throw;
        call.choice = {};  // it does not serve this number of ranks
        c.run(call);
      }
      if (!work.right())
        log_("wrong", std::string(name(collective)) + " by " + call.choice.algorithm);
    }
  }
  void messages(Communicator& c) {
    const int next = (c.rank() + 1) % c.size(), before = (c.rank() + c.size() - 1) % c.size();
    const std::vector<std::int64_t> out(5000, c.rank() * 1000 + round_);
    std::vector<std::int64_t> in(out.size());
    Request receive = c.start_recv(in, before, 7);
    Request send = c.start_send(out, next, 7);
    receive.wait();
    send.wait();
    if (in != std::vector<std::int64_t>(out.size(), before * 1000 + round_)) log_("wrong", "recv");
  }
  void splits(Communicator& c) {
    Communicator half = c.split(c.rank() % 2);
    std::vector<std::int32_t> first(1000, 1), second(10, 2);
    Request one = half.start_all_reduce(first, sum);
    Request two = half.start_all_reduce(second, sum);
    two.wait();
    one.wait();
    if (first.back() != half.size() || second.back() != 2 * half.size())
      log_("wrong", "all_reduce of a half");
  }
  /// Makes a communicator with a tuning table and records it.
  void files(Communicator& c) {
    try {
      Options options = c.options();
      options.trace.clear();
      options.table = (folder_ / "files" / "table").string();
      if (c.rank() == 0)
        std::ofstream(options.table) << "baton-table 1\ntransport " << over_ << "\nhosts 1x"
                                     << c.size() << "\nall_reduce 0 ring 0\n";
      Communicator part = c.split(all_ranks, c.rank(), options);
      part.start_recording(1000);
      std::vector<std::int32_t> ones(100, 1);
      part.all_reduce(ones, sum);
      if (ones[99] != c.size() || part.chosen(calls::all_reduce(ones, sum)).algorithm != "ring")
        log_("wrong", "all_reduce by a table");
      part.stop_recording((folder_ / "files" / "recording.trace").string());
    } catch (const Error& error) {
      if (error.code != ErrorCode::invalid_argument) throw;
      log_("refused", error.what());
    }
  }

  const std::string over_;  // a transport
  const std::filesystem::path folder_;
  const Log& log_;
  const std::vector<faults::Subject> subjects_;
  std::int64_t round_ = 0;
};

void run(Job& job, Communicator world, const Log& log) {
  std::vector<Communicator> all;  // the last is in use
  all.push_back(std::move(world));
  for (bool more = true; more;) {
    try {
      if (all.size() > 1) job.align(all.back());
      while (more) more = job.round(all.back());
    } catch (const Error& error) {
      log("error", error.what());
      all.push_back(all.back().shrink(patience));
      log("survived", std::to_string(all.back().rank()) + " " + std::to_string(all.back().size()));
    }
  }
}

std::unique_ptr<Transport> transport(const std::string& over, int rank, int size,
                                     const std::string& address) {
  if (over == "shm") return shm_transport(rank, size, address, {.meeting = 60s});
#ifdef WITH_UCX
  return ucx_transport(rank, size, address, {.meeting = 60s, .farewell = 2s});
#endif
  throw Error(ErrorCode::unsupported, "no transport " + over);
}

void interrupt() {
  struct sigaction action {};
  action.sa_handler = [](int) {};  // without SA_RESTART
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &often, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // does not outlive the script that started it
  const std::string over = argv[1], folder = argv[2], rank = argv[3], way = argc > 6 ? argv[6] : "";
  if (way == "interrupted") interrupt();
  if (way == "unreadable") prctl(PR_SET_DUMPABLE, 0);
  const Log log(folder + "/" + rank + ".log");
  try {
    Job job(over, folder, log);
    run(job, Communicator(transport(over, std::atoi(argv[3]), std::atoi(argv[4]), argv[5])), log);
    log("end");
  } catch (const Error& error) {
    log("late", error.what());
    return 3;
  } catch (const std::exception& error) {
    log("failed", error.what());
    return 4;
  }
}
