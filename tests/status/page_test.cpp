/// A rank's page, as others read it; processes and threads as the system shows them.

#include "status/page.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <latch>
#include <thread>
#include <vector>

#include "baton/collective.hpp"
#include "support/sanitizer.hpp"

using namespace baton;
using namespace baton::status;
using namespace std::chrono_literals;

namespace {

// Of this process alone: ranks of others would keep its pages, and doors go to any page.
const std::uint64_t communicator = 0xba707e57ull << 32 | static_cast<std::uint64_t>(getpid()) << 1;

Call call_of(std::int64_t count) {
  Call call;
  call.kind = Call::Kind::collective;
  call.collective = static_cast<std::uint8_t>(Collective::all_gather);
  call.count = count;
  return call;
}

PeerPage seen(int rank = 0) { return PeerPage(file_of(own_process(), communicator, rank)); }

/// A child that sleeps until it is killed.
pid_t sleeper() {
  const pid_t child = fork();
  if (child == 0)
    for (;;) pause();
  return child;
}

ProcessId id_of(pid_t child) {
  ProcessId id = own_process();
  id.pid = child;
  std::string line;
  std::getline(std::ifstream("/proc/" + std::to_string(child) + "/stat"), line);
  std::size_t at = line.rfind(')') + 1;
  for (int field = 3; field < 22; ++field) at = line.find(' ', at + 1);
  id.start = std::stoull(line.substr(at + 1));
  return id;
}

/// Waits until the process is in this condition; whether it came.
bool becomes(const ProcessId& id, Life life) {
  for (int i = 0; i < 5000; ++i) {
    if (condition_of(id, 0).life == life) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

}  // namespace

TEST_CASE("a text that is being written, or whose writer has ended amid it, is read as none") {
  SharedText<64> text;
  text.write("whole");
  CHECK(text.read() == "whole");
  std::uint32_t version = 0;  // the first member
  std::memcpy(&version, static_cast<const void*>(&text), sizeof version);
  ++version;
  std::memcpy(static_cast<void*>(&text), &version, sizeof version);
  CHECK(text.read().empty());
}

TEST_CASE("page: others read its operations and texts while it exists") {
  CHECK_FALSE(seen().valid());
  {
    Page page(communicator, 0, 3, 7, "world");
    const PeerPage other = seen();
    REQUIRE(other.valid());
    Standing s = other.read();
    CHECK(s.communicator == communicator);
    CHECK(s.size == 3);
    CHECK(s.label == "world");
    CHECK(s.process == own_process());
    CHECK(s.thread == own_thread());
    CHECK(s.blocker == -1);
    CHECK(s.operations.empty());
    CHECK(s.pending() == 8);

    page.layout().label.write("ocean");
    CHECK(other.read().label == "ocean");

    const std::uint64_t first = page.begin(8, call_of(5)), second = page.begin(9, call_of(6));
    std::this_thread::sleep_for(20ms);
    page.end(second);
    s = other.read();
    REQUIRE(s.operations.size() == 2);
    CHECK(s.pending() == 8);
    CHECK(s.operations[0].under_way());
    CHECK(s.operations[1].call == call_of(6));
    CHECK(s.operations[1].end_ns - s.operations[1].begin_ns >= 19'000'000);
    CHECK(s.operations[1].end_ns - s.operations[1].begin_ns < 10'000'000'000);
    CHECK(s.read_ns >= s.operations[1].end_ns - 1'000'000);
    CHECK(s.last_complete()->number == 9);
    CHECK(s.collective(8)->call.count == 5);
    CHECK(s.collective(10) == nullptr);
    page.end(first);
    CHECK(other.read().pending() == 10);

    page.layout().waits.write("waits for rank 2");
    CHECK(other.read().waits.empty());  // it waits for nobody
    page.layout().blocker = 3;
    CHECK(other.read().waits == "waits for rank 2");
    CHECK(other.read().blocker == 2);
    CHECK(waits(other.layout()));
    page.layout().failure.write(std::string(5000, 'x'));
    CHECK(other.read().failure == std::string(1023, 'x'));
    page.layout().failure.write("short");
    CHECK(other.read().failure == "short");
  }
  CHECK_FALSE(seen().valid());
}

TEST_CASE("page: others read what the rank waits for inside a blocking call") {
  Page page(communicator, 0, 4, 0, "world");
  const PeerPage other = seen();
  page.enters({3, 7}, {1, 6});
  CHECK(waits(other.layout()));
  CHECK(other.read().waits == "waits for rank 3 (step 7: recv), rank 1 (step 6: send)");
  CHECK(other.read().blocker == 3);
  page.enters({}, {0, 0});
  CHECK(waits(other.layout()));
  CHECK(other.read().waits == "waits for rank 0 (step 0: send)");
  CHECK(other.read().blocker == 0);
  page.layout().waits.write("waits for rank 2");
  page.layout().blocker = 3;  // as it is more precise
  CHECK(other.read().waits == "waits for rank 2");
  page.layout().blocker = 0;
  page.leaves();
  CHECK_FALSE(waits(other.layout()));
  CHECK(other.read().waits.empty());
  CHECK(other.read().blocker == -1);
}

TEST_CASE("page: doors stay until the last rank of the machine has left") {
  const std::vector<std::byte> doors(100, std::byte{7});
  const auto file = [&](int rank) { return file_of(own_process(), communicator, rank); };
  Page stranger(communicator + 1, 0, 3, 0, "other");
  auto first = std::make_unique<Page>(communicator, 0, 3, 0, "world");
  auto second = std::make_unique<Page>(communicator, 1, 3, 0, "world");
  first->put_doors(doors);
  CHECK(doors_beside(file(0)) == doors);
  CHECK(doors_beside(file(1)).empty());
  first.reset();
  CHECK(doors_beside(file(0)).empty());
  CHECK(doors_beside(file(1)) == doors);
  second.reset();
  CHECK(doors_beside(file(1)).empty());
  CHECK(doors_beside(file_of(own_process(), communicator + 1, 0)).empty());
}

TEST_CASE("page: it remembers the latest operations") {
  Page page(communicator, 1, 2, 0, "world");
  for (std::uint64_t number = 1; number <= 200; ++number) {
    const std::uint64_t place = page.begin(number, call_of(static_cast<std::int64_t>(number)));
    if (number != 150) page.end(place);
  }
  const Standing s = seen(1).read();
  REQUIRE(s.operations.size() == remembered);
  CHECK(s.operations.front().number == 137);
  CHECK(s.operations.back().number == 200);
  CHECK(s.pending() == 150);
  page.end(149 - 2 * remembered);  // long forgotten: must not end number 150, in its place now
  CHECK(seen(1).read().pending() == 150);
}

TEST_CASE("page: texts and operations are never torn") {
  Page page(communicator, 0, 1, 0, "world");
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (std::uint64_t i = 1; !done; ++i) {
      page.layout().verdict.write(std::string(1 + i % 700, static_cast<char>('a' + i % 26)));
      page.end(page.begin(i, call_of(static_cast<std::int64_t>(i))));
    }
  });
  const PeerPage other = seen();
  for (int i = 0; i < 3000; ++i) {
    const std::string text = other.layout().verdict.read();
    CHECK(std::ranges::all_of(text, [&](char c) { return c == text.front(); }));
    other.read();
  }
  done = true;
  writer.join();
}

TEST_CASE("page: codes and times that mean nothing are no call, and far away") {
  Page page(communicator, 0, 2, 0, "world");
  for (const int member : {0, 1, 2, 3}) {
    Call call = call_of(3);
    (member == 0   ? reinterpret_cast<std::uint8_t&>(call.kind)
     : member == 1 ? call.collective
     : member == 2 ? call.type
                   : call.op) = 200;
    page.begin(1, call);
    const Standing standing = seen().read();
    CHECK(describe(standing.operations.back().call) == "an operation");
  }
  page.layout().entries[0].begin.store(UINT64_MAX / 2);
  page.layout().anchor_ns = INT64_MIN;
  page.layout().blocker.store(INT32_MIN);
  const Standing standing = seen().read();
  CHECK(standing.blocker == -1);
  for (const Operation& operation : standing.operations)
    CHECK(std::abs(operation.begin_ns) <= std::int64_t{1} << 61);
}

TEST_CASE("page: a file that is none is refused") {
  const std::string file = file_of(own_process(), communicator, 5);
  std::ofstream(file) << std::string(sizeof(Layout), 'x');
  CHECK_FALSE(PeerPage(file).valid());
  std::ofstream(file) << "short";
  CHECK_FALSE(PeerPage(file).valid());
  // Nor does it stop a rank from working.
  Page page(communicator, 5, 6, 0, "world");
  page.end(page.begin(1, call_of(1)));
  CHECK_FALSE(seen(5).valid());
  std::filesystem::remove(file);
}

TEST_CASE("page: a process sleeps, is stopped, and ends by a signal") {
  const pid_t child = sleeper();
  const ProcessId id = id_of(child);
  CHECK(becomes(id, Life::sleeps));
  CHECK(describe(condition_of(id, 0)) == "its process is alive and sleeps");
  CHECK(condition_of(id, 1).thread_ended);
  CHECK_FALSE(condition_of(id, static_cast<std::int32_t>(child)).thread_ended);
  kill(child, SIGSTOP);
  CHECK(becomes(id, Life::stopped));
  kill(child, SIGKILL);
  CHECK(becomes(id, Life::ended));
  CHECK(describe(condition_of(id, 0)) ==
        "its process has ended with signal 9");  // nobody has waited for it
  waitpid(child, nullptr, 0);
  CHECK(describe(condition_of(id, 0)) == "its process has ended");
  ProcessId later = own_process();
  ++later.start;  // another process that has its number
  CHECK(condition_of(later, 0).life == Life::ended);
  later = own_process();
  ++later.machine;
  CHECK(condition_of(later, 0).life == Life::elsewhere);
}

TEST_CASE("page: a process lives as long as one of its threads, also where its first has ended") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    std::thread([&] {
      char any = 0;
      close(ends[1]);
      _exit(static_cast<int>(read(ends[0], &any, 1)));
    }).detach();
    syscall(SYS_exit, 0);  // as pthread_exit does, which would unwind the test's frames before
  }
  close(ends[0]);
  const ProcessId id = id_of(child);
  const std::string own = "/proc/" + std::to_string(child) + "/stat";
  std::string line;
  do {
    std::getline(std::ifstream(own), line);
  } while (line.find(") Z ") == std::string::npos);
  CHECK(becomes(id, Life::sleeps));
  const auto first = static_cast<std::int32_t>(child);
  CHECK(describe(condition_of(id, first)) == "its process is alive, its thread has ended");
  kill(child, SIGSTOP);
  CHECK(becomes(id, Life::stopped));
  kill(child, SIGCONT);
  CHECK(becomes(id, Life::sleeps));
  close(ends[1]);
  CHECK(becomes(id, Life::ended));
  CHECK(waitpid(child, nullptr, 0) == child);
}

TEST_CASE("page: a process has ended as soon as its memory is gone") {
  for (int turn = 0; turn < (support::under_sanitizer ? 8 : 20); ++turn) {
    std::vector<char> memory(std::size_t{32} << 20, 'x');  // the system takes a while to free it
    const pid_t child = fork();
    if (child == 0) {
      // The threads of one process end one after another.
      for (int others = turn % 4; others > 0; --others) std::thread([] { pause(); }).detach();
      std::ranges::fill(memory, 'y');
      for (;;) pause();
    }
    const ProcessId id = id_of(child);
    char found = 'x';
    const iovec to{&found, 1}, from{&memory.back(), 1};
    while (found == 'x') REQUIRE(process_vm_readv(child, &to, 1, &from, 1, 0) == 1);
    kill(child, SIGKILL);
    while (process_vm_readv(child, &to, 1, &from, 1, 0) == 1) continue;
    const Condition condition = condition_of(id, 0);
    CHECK(condition.life == Life::ended);
    CHECK(condition.signal == SIGKILL);
    CHECK(waitpid(child, nullptr, 0) == child);
  }
}

TEST_CASE("page: nobody is taken for dead or gone by a process that may open no more files") {
  const pid_t child = sleeper();
  const ProcessId id = id_of(child);
  const Page page(communicator, 0, 1, 0, "world");
  rlimit usual{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &usual) == 0);
  const rlimit none{0, usual.rlim_max};
  // It starts before, since sanitizers open files for each thread that starts.
  std::latch started(1), limited(1);
  std::thread fresh([&] {
    started.count_down();
    limited.wait();
    CHECK(own_process().pid == getpid());
  });
  started.wait();
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  const Life alive = condition_of(id, 0).life;
  const bool there = exists(file_of(own_process(), communicator, 0));
  const bool another = exists(file_of(own_process(), communicator, 1));
  limited.count_down();
  fresh.join();
  remove_abandoned();
  REQUIRE(setrlimit(RLIMIT_NOFILE, &usual) == 0);
  CHECK(alive == Life::unknown);
  CHECK(there);
  CHECK_FALSE(another);
  CHECK(seen().valid());
  ProcessId early = id;
  early.start = 0;  // could not be read when the process asked for it
  CHECK(condition_of(early, 0).life != Life::ended);
  kill(child, SIGKILL);
  CHECK(waitpid(child, nullptr, 0) == child);
  CHECK(condition_of(id, 0).life == Life::ended);
}

TEST_CASE("page: a process descends from those that started it") {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  CHECK(descends(child, child));
  CHECK(descends(child, getpid()));
  CHECK(descends(child, getppid()));
  CHECK_FALSE(descends(getpid(), child));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK_FALSE(descends(child, getpid()));
}

TEST_CASE("page: pages of the dead go when their communicator has no living rank") {
  Page page(communicator, 0, 2, 0, "world");
  const pid_t child = fork();
  if (child == 0) {
    new Page(communicator, 1, 2, 0, "world");                          // of the same communicator
    auto* const alone = new Page(communicator + 1, 0, 1, 0, "alone");  // of the child's own
    const std::byte any{};
    alone->put_doors(std::span(&any, 1));
    raise(SIGSTOP);
  }
  // While the child lives, no other process of the machine removes its pages either.
  waitpid(child, nullptr, WUNTRACED);
  const ProcessId id = id_of(child);
  CHECK(PeerPage(file_of(id, communicator, 1)).valid());
  CHECK(PeerPage(file_of(id, communicator + 1, 0)).valid());
  CHECK(doors_beside(file_of(id, communicator + 1, 0)).size() == 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  remove_abandoned();
  CHECK(PeerPage(file_of(id, communicator, 1)).valid());
  CHECK_FALSE(PeerPage(file_of(id, communicator + 1, 0)).valid());
  CHECK(doors_beside(file_of(id, communicator + 1, 0)).empty());
  std::filesystem::remove(file_of(id, communicator, 1));
}

TEST_CASE("page: pages of the dead stay if a living rank made its page after they were listed") {
  // It is there from the beginning, or other processes of the machine would remove the child's.
  const Page late(communicator, 0, 2, 0, "world");
  const pid_t child = fork();
  if (child == 0) {
    new Page(communicator, 1, 2, 0, "world");
    raise(SIGKILL);
  }
  const ProcessId id = id_of(child);
  waitpid(child, nullptr, 0);
  remove_abandoned({file_of(id, communicator, 1)});
  CHECK(PeerPage(file_of(id, communicator, 1)).valid());
  std::filesystem::remove(file_of(id, communicator, 1));
}
