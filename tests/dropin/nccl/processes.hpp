#pragma once
/// Forks of a test program, and the memory that they share.

#include <doctest/doctest.h>
#include <nccl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

class Processes {
 public:
  /// Forks until there are `count` processes, and returns in each of them.
  explicit Processes(int count) : count_(count) {
    void* const memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("cannot share memory");
    shared_ = new (memory) Shared;
    for (int process = 1; process < count && own_ == 0; ++process) {
      others_.push_back(fork());
      if (others_.back() == 0) own_ = process;
    }
  }

  /// This process's number; 0: the one that forked.
  int own() const { return own_; }

  /// The next identifier, which one of the processes makes; all call it equally often.
  ncclUniqueId identifier(int maker) {
    const int index = identifiers_++;
    REQUIRE(index < static_cast<int>(shared_->identifiers.size()));
    ncclUniqueId& identifier = shared_->identifiers[static_cast<std::size_t>(index)];
    if (own_ == maker) {
      REQUIRE(ncclGetUniqueId(&identifier) == ncclSuccess);
      shared_->made = index + 1;
    }
    reaches(shared_->made, index + 1);
    return identifier;
  }

  /// Returns when all processes have called it equally often.
  void meet() {
    ++shared_->arrived;
    reaches(shared_->arrived, ++meetings_ * count_);
  }

  /// Runs doctest's cases. The first process then waits for the others and returns 0 if all of them
  /// passed; the others end here.
  int run(int argc, char** argv) const {
    alarm(280);  // a hang becomes a failure
    int failed = doctest::Context(argc, argv).run();
    if (own_ > 0) std::exit(failed);
    for (const pid_t other : others_) {
      int status = 0;
      if (waitpid(other, &status, 0) == other && status == 0) continue;
      std::fprintf(stderr, "expected the end of process %d, found status %d\n", other, status);
      failed = 1;
    }
    return failed;
  }

 private:
  struct Shared {
    std::array<ncclUniqueId, 64> identifiers;
    std::atomic<int> made = 0;     // identifiers
    std::atomic<int> arrived = 0;  // processes, at all meetings together
  };

  static void reaches(const std::atomic<int>& number, int enough) {
    while (number < enough) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  int count_, own_ = 0;
  int identifiers_ = 0, meetings_ = 0;  // those that this process has asked for
  Shared* shared_ = nullptr;
  std::vector<pid_t> others_;
};
