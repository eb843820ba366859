/// All survivors of a hang name the same cause: a row per kind of fault, on 2 to 16 ranks.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <fstream>
#include <functional>
#include <latch>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "baton/forwarding.hpp"
#include "baton/schedule/text.hpp"
#include "baton/shm.hpp"
#include "baton/trace.hpp"
#include "status/page.hpp"
#include "support/ranks.hpp"
#include "support/temporary_folder.hpp"

using namespace baton;
using namespace support;
using namespace std::chrono_literals;

namespace {

Options patient(bool check = false) {
  Options options = giving_up_after(1s);
  options.check = check;
  return options;
}

/// Runs `body` on each rank. Ranks whose body throws a timeout have survived; all survivors must
/// say the same, which is returned. Nobody leaves before all are done.
std::string sentence_of(int size, int survivors, const Options& options,
                        const std::function<void(Communicator&)>& body) {
  std::mutex mutex;
  std::set<std::string> sentences;
  int count = 0;
  std::barrier all(size);
  on_ranks(
      size,
      [&](Communicator& c) {
        try {
          body(c);
        } catch (const Error& error) {
          const std::lock_guard lock(mutex);
          CHECK(error.code == ErrorCode::timeout);
          CHECK(error.rank == c.rank());
          sentences.insert(error.what());
          ++count;
        }
        all.arrive_and_wait();
      },
      options);
  CHECK(count == survivors);
  CHECK(sentences.size() == 1);
  for (const std::string& sentence : sentences) MESSAGE(sentence);
  return sentences.empty() ? "" : *sentences.begin();
}

constexpr int sizes[] = {2, 3, 4, 7, 16};

}  // namespace

TEST_CASE("root cause: a rank that does not come to a split is named by all") {
  for (const int size : sizes) {
    const int absent = size / 2;
    const std::string text = sentence_of(size, size - 1, patient(), [&](Communicator& c) {
      if (c.rank() != absent) c.split(0);
    });
    CHECK(text.find("split #") == 0);
    CHECK(text.find("rank " + std::to_string(absent) + " has not entered it") != std::string::npos);
  }
}

TEST_CASE("root cause: a rank that does not come where a communicator is made is named by all") {
  for (const int size : {2, 5, 16})
    for (const int absent : {0, size / 2}) {
      auto transports = thread_transports(size);
      std::mutex mutex;
      std::set<std::string> sentences;
      const auto make = [&](int rank) {
        Options options = patient();
        options.check = absent == 0 ? 0 : 2;
        if (rank == size - 1) std::this_thread::sleep_for(500ms);  // it comes later, but in time
        const Error error = error_of([&] {
          const Communicator c(std::move(transports[static_cast<std::size_t>(rank)]), options);
        });
        CHECK(error.code == ErrorCode::timeout);
        CHECK(error.rank == rank);
        const std::lock_guard lock(mutex);
        sentences.insert(error.what());
      };
      std::vector<std::thread> ranks;
      for (int r = 0; r < size; ++r)
        if (r != absent) ranks.emplace_back(make, r);
      for (std::thread& rank : ranks) rank.join();
      REQUIRE(sentences.size() == 1);
      CHECK(holds(*sentences.begin(),
                  {"communicator 'world' of " + std::to_string(size) + " ranks cannot be made",
                   "no progress for 1 s: rank " + std::to_string(absent) + " does not answer"}));
    }
}

namespace {

/// A transport on a crowded machine: who gives up the processor gets it back late.
class Crowded final : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;
  void idle(std::chrono::microseconds) override { std::this_thread::sleep_for(300ms); }

 private:
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override {
    return std::make_unique<Crowded>(std::move(part));
  }
};

}  // namespace

TEST_CASE("root cause: a rank with few turns shows that it waits") {
  std::barrier all(3);
  run_threads(3, [&](std::unique_ptr<Transport> transport) {
    if (transport->rank() == 0) transport = std::make_unique<Crowded>(std::move(transport));
    Communicator c(std::move(transport), giving_up_after(4s));
    std::vector<float> x(10);
    if (c.rank() == 1) {
      const Error error = error_of([&] { c.all_reduce(x, sum); });
      CHECK(holds(error.what(), {"rank 2 has not entered it", "rank 0 waits for rank"}));
      CHECK(std::string(error.what()).find("does not wait in it") == std::string::npos);
    } else if (c.rank() == 0) {
      std::this_thread::sleep_for(2s);  // its own time is not over when rank 1 asks
      CHECK(error_of([&] { c.all_reduce(x, sum); }).code == ErrorCode::timeout);
    }
    all.arrive_and_wait();
  });
}

TEST_CASE("root cause: one sentence, also by a rank that fails in an operation before") {
  std::latch left(1), failed(1);
  std::mutex mutex;
  std::vector<std::string> sentences;
  on_ranks(
      3,
      [&](Communicator& c) {
        if (c.rank() == 2) return left.count_down();  // it leaves
        left.wait();
        std::vector<std::int32_t> one(1), all(3);
        if (c.rank() == 0) failed.wait();
        const Error error = error_of([&] {
          c.gather(one, all, 0, {"linear", 0});
          c.broadcast(all, 2, {"linear", 0});
        });
        CHECK(error.code == ErrorCode::transport);
        CHECK(holds(error.operation, {c.rank() == 0 ? "gather #" : "broadcast #"}));
        {
          const std::lock_guard lock(mutex);
          sentences.emplace_back(error.what());
        }
        if (c.rank() == 1) failed.count_down();
      },
      Options());
  REQUIRE(sentences.size() == 2);
  CHECK(sentences[0] == sentences[1]);
  CHECK(holds(sentences[0], {"rank 2 has left the communicator"}));
}

TEST_CASE("root cause: a sentence that is too long for a page is the same on all ranks") {
  std::string text = sentence_of(16, 8, patient(), [&](Communicator& c) {
    c.set_name("a communicator whose name is as long as names may be, and longer");
    std::vector<std::int32_t> x(16), y(16);
    c.all_reduce(x, sum);
    if (c.rank() < 8) c.all_to_all(x, y, {"spread_out", 0});
  });
  CHECK(text.size() <= status::longest_verdict);
}

TEST_CASE("root cause: a rank that does not come is named by all, with its last operation") {
  for (const int size : sizes)
    for (const bool check : {false, true}) {
      const int absent = size / 2;
      const std::string text = sentence_of(size, size - 1, patient(check), [&](Communicator& c) {
        std::vector<float> x(100);
        c.broadcast(x, 0);
        if (c.rank() == absent) return;
        c.all_reduce(x, sum, {"ring", 0});
        c.all_reduce(x, sum, {"ring", 0});  // far ranks may only notice here
      });
      CHECK(holds(text,
                  {"all_reduce #", "of communicator 'world' cannot complete", "no progress for 1 s",
                   "rank " + std::to_string(absent) + " has not entered it (last: broadcast #",
                   "ago; its process is alive", "waits for rank"}));
      // It is the only one at fault.
      CHECK(text.find("entered it") == text.rfind("entered it"));
      CHECK(text.find("disagree") == std::string::npos);
    }
}

TEST_CASE("root cause: a thread that has ended") {
  auto transports = thread_transports(2);
  std::optional<Communicator> stays;
  std::thread other([&] { stays.emplace(std::move(transports[1]), patient()); });
  Communicator own(std::move(transports[0]), patient());
  other.join();
  const std::string text = error_of([&] { own.barrier(); }).what();
  CHECK(holds(text, {"barrier #", "rank 1 has not entered it", "its thread has ended"}));
}

TEST_CASE("root cause: a rank that left") {
  auto transports = thread_transports(2);
  std::thread other([&] { const Communicator gone(std::move(transports[1]), patient()); });
  Communicator own(std::move(transports[0]), patient());
  other.join();
  const std::string text = error_of([&] { own.barrier(); }).what();
  CHECK(holds(text, {"barrier #", "rank 1 has left the communicator"}));
}

TEST_CASE("root cause: different operations, roots and counts") {
  const auto text_of = [](int size, const auto& one, const auto& rest) {
    std::mutex mutex;
    std::set<std::string> sentences;
    std::barrier all(size);
    on_ranks(
        size,
        [&](Communicator& c) {
          std::vector<float> x(64), y(64 * static_cast<std::size_t>(size));
          try {
            c.rank() == size - 1 ? one(c, x, y) : rest(c, x, y);
            c.barrier();
          } catch (const Error& error) {
            const std::lock_guard lock(mutex);
            if (error.code == ErrorCode::timeout) sentences.insert(error.what());
          }
          all.arrive_and_wait();
        },
        patient());
    CHECK(sentences.size() <= 1);
    return sentences.empty() ? std::string() : *sentences.begin();
  };
  for (const int size : sizes) {
    // A root that differs: nobody sends, or two do.
    std::string text = text_of(
        size, [](Communicator& c, auto& x, auto&) { c.broadcast(x, 0); },
        [](Communicator& c, auto& x, auto&) { c.broadcast(x, c.size() - 1); });
    CHECK(holds(text, {"broadcast #", "ranks disagree about it", "root 0",
                       "on rank " + std::to_string(size - 1)}));
    if (size == 2) continue;  // the one message of either call fits the other
    text = text_of(
        size,
        [](Communicator& c, auto& x, auto& y) {
          c.all_gather(x, y, Choice{"ring", 0});
        },
        [](Communicator& c, auto& x, auto&) {
          c.reduce(x, x, sum, c.size() - 1, Choice{"binomial", 0});
        });
    INFO(text);
    CHECK(holds(text, {"ranks disagree about it", "reduce of 64 f32, sum, root",
                       "all_gather of 64 f32 (ring) on rank " + std::to_string(size - 1)}));
  }
}

TEST_CASE("root cause: a call that ranks have refused is over, and waits for nobody") {
  for (const bool late : {false, true}) {  // a rank comes when the others show that they wait
    CAPTURE(late);
    std::barrier all(3);
    const std::string text = sentence_of(3, 1, patient(true), [&](Communicator& c) {
      std::vector<float> x(c.rank() == 2 ? 5 : 4);
      if (late && c.rank() == 2) std::this_thread::sleep_for(100ms);
      CHECK(error_of([&] { c.all_reduce(x, sum); }).code == ErrorCode::mismatch);
      all.arrive_and_wait();
      if (c.rank() == 0) c.broadcast(x, 1);
    });
    CHECK(holds(text, {"broadcast #", "rank 1 has not entered it", "all_reduce"}));
    CHECK(text.find("disagree") == std::string::npos);
  }
}

TEST_CASE("root cause: an operation shows that it waits, also when another one has ended") {
  for (const bool message_first : {true, false}) {
    const std::string text = sentence_of(3, 2, patient(), [&](Communicator& c) {
      std::vector<float> x(4);
      if (c.rank() == 2) {
        std::this_thread::sleep_for(300ms);  // both of rank 0 are shown
        return c.send(x, 0);
      }
      if (c.rank() == 1) return c.barrier();
      const auto poll = [&](int times) {
        for (int i = 0; i < times; ++i, std::this_thread::sleep_for(100us)) c.progress();
      };
      Request message, barrier;
      const auto receive = [&] { message = c.start_recv(std::span(x), 2); };
      const auto enter = [&] { barrier = c.start_barrier(); };
      message_first ? receive() : enter();
      poll(300);  // the first is shown
      message_first ? enter() : receive();
      while (!barrier.done()) poll(1);
      message.wait();
      barrier.wait();
    });
    CHECK(holds(text, {"barrier #", "rank 2 has not entered it"}));
    CHECK(text.find("does not wait in it") == std::string::npos);
  }
}

TEST_CASE("root cause: a rank that computes between start and wait") {
  const std::string text = sentence_of(3, 2, patient(), [&](Communicator& c) {
    std::vector<float> x(1 << 16);
    Request request = c.start_all_reduce(x, sum, {"ring", 0});
    if (c.rank() == 1) {
      std::this_thread::sleep_for(2500ms);  // longer than the others wait
      request.abandon("the others have given up");
      return;
    }
    request.wait();
  });
  CHECK(holds(text, {"all_reduce #", "rank 1 began it", "and does not wait in it", "is alive"}));
}

TEST_CASE("root cause: communicators that wait for each other") {
  // Rank 0 calls on the pair first, rank 1 on the whole.
  std::mutex mutex;
  std::vector<std::string> texts;
  std::barrier all(3);
  on_ranks(
      3,
      [&](Communicator& c) {
        Communicator pair = c.split(c.rank() < 2 ? 0 : 1);
        std::vector<float> x(10);
        try {
          if (c.rank() == 0) pair.all_reduce(x, sum);
          c.all_reduce(x, sum);
          if (c.rank() == 1) pair.all_reduce(x, sum);
        } catch (const Error& error) {
          const std::lock_guard lock(mutex);
          texts.emplace_back(error.what());
        }
        all.arrive_and_wait();
      },
      patient());
  REQUIRE(texts.size() == 3);
  for (const std::string& text : texts) {
    const bool of_pair = text.find("communicator 'world/1:0' cannot") != std::string::npos;
    CHECK(holds(text, {of_pair ? "rank 1 has not entered it" : "rank 0 has not entered it",
                       of_pair ? "of communicator 'world' for" : "of communicator 'world/1:0' for",
                       "where it waits for rank"}));
  }
}

TEST_CASE("root cause: schedules that wait for each other in a circle") {
  std::string text = "baton-schedule 1\ncollective all_reduce\nsize 3\ninput 1\noutput 1\n";
  for (int r = 0; r < 3; ++r)
    text += "rank " + std::to_string(r) + "\nrecv " + std::to_string((r + 2) % 3) +
            " output[0:1]\nsend " + std::to_string((r + 1) % 3) + " output[0:1]\n";
  const std::vector<Schedule> schedules = parse(text);
  const std::string said = sentence_of(3, 3, patient(), [&](Communicator& c) {
    std::vector<float> in(1), out(1);
    c.run(schedules[static_cast<std::size_t>(c.rank())], in, out);
  });
  CHECK(holds(said, {"all_reduce #", "ranks 0, 2, 1 wait for each other in a circle",
                     "rank 0 waits for rank 2 (step 0: recv 4 B"}));
}

TEST_CASE("root cause: the last operations of all ranks are written") {
  const support::TemporaryFolder folder;
  Options options = patient();
  options.flight = folder / "flight.trace";
  sentence_of(3, 2, options, [&](Communicator& c) {
    std::vector<float> x(100);
    c.broadcast(x, 0, {"binomial", 0});
    Communicator all = c.split(0);
    all.all_gather(std::vector<float>(1), std::span(x).first(3), {"ring", 0});
    if (c.rank() == 1) return std::this_thread::sleep_for(2s);
    c.all_reduce(x, sum, {"ring", 0});
  });
  const std::string files[] = {options.flight};
  const Trace trace = read_trace(files);
  CHECK(trace.damage.empty());
  CHECK(trace.timeline.ranks == 3);
  std::map<std::string, int> times;  // events by name
  for (const Event& event : trace.timeline.events) {
    const std::string& name = trace.timeline.operations[event.operation].name;
    ++times[name];
    if (name.ends_with("way")) {
      CHECK(event.end - event.start > 900'000'000);
      CHECK(event.rank != 1);
    }
  }
  CHECK(times["broadcast of 100 f32, root 0 (binomial)"] == 3);
  CHECK(times["all_gather of 1 f32 (ring), world/1:0"] == 3);
  CHECK(times["all_reduce of 100 f32, sum (ring), under way"] == 2);
}

namespace {

/// The lines that reach standard error.
std::vector<std::string> lines_of(const std::function<void()>& body) {
  const support::TemporaryFolder folder;
  const std::string file = folder / "errors";
  const int before = dup(STDERR_FILENO);
  const int errors = open(file.c_str(), O_WRONLY | O_CREAT, 0600);
  dup2(errors, STDERR_FILENO);
  body();
  dup2(before, STDERR_FILENO);
  close(errors);
  close(before);
  std::vector<std::string> lines;
  std::ifstream from(file);
  for (std::string line; std::getline(from, line);) lines.push_back(line);
  return lines;
}

/// A transport whose parts cannot be used.
class WithoutParts final : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;

 private:
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport>) override {
    throw Error(ErrorCode::transport, "no part");
  }
};

}  // namespace

TEST_CASE("root cause: a sentence is reported once, also where a communicator is made") {
  const std::string file = "/missing/flight.trace",
                    unwritten = ": expected a file to write, found No such file or directory";
  const std::vector<std::string> lines = lines_of([&] {
    Options options = patient();
    options.flight = file;
    std::barrier all(3);
    run_threads(3, [&](std::unique_ptr<Transport> transport) {
      const bool first = transport->rank() == 0;
      if (first) transport = std::make_unique<WithoutParts>(std::move(transport));
      Communicator c(std::move(transport), options);
      // Ranks 1 and 2 wait for rank 0 in the new communicator, give it up and report the file.
      CHECK(holds(error_of([&] { c.split(0); }).what(), {"no part"}));
      all.arrive_and_wait();
      if (first) c.report(file + unwritten);
      all.arrive_and_wait();
    });
  });
  for (const std::string& line : lines) CHECK(line == "baton: " + file + unwritten);
  CHECK(lines.size() == 1);
}

TEST_CASE("root cause: a message whose peer is elsewhere") {
  const std::string text = sentence_of(2, 1, patient(), [&](Communicator& c) {
    std::vector<float> x(10);
    c.broadcast(x, 0);
    if (c.rank() == 0) c.recv(x, 1, 5);
  });
  CHECK(holds(text, {"recv of communicator 'world' cannot complete", "rank 1 has not answered it",
                     "last: broadcast #", "rank 0 waits for rank 1"}));
}

TEST_CASE("root cause: a rank that failed tells all others at once") {
  // Ranks 1 and 2 find a message of another length.
  std::mutex mutex;
  std::set<std::string> texts;
  Options options = patient();
  options.timeout = {};  // none
  std::barrier all(3);
  on_ranks(
      3,
      [&](Communicator& c) {
        std::vector<float> x(c.rank() == 0 ? 9 : 10);
        const Error error = error_of([&] {
          c.broadcast(x, 0, {"linear", 0});
          c.barrier();
        });
        CHECK(error.code == ErrorCode::truncated);
        {
          const std::lock_guard lock(mutex);
          texts.insert(error.what());
        }
        all.arrive_and_wait();
      },
      options);
  REQUIRE(texts.size() == 1);
  INFO(*texts.begin());
  CHECK(holds(*texts.begin(),
              {"broadcast #", "of communicator 'world' failed: ", "found: ", "found 36"}));
}

TEST_CASE("root cause: ranks that find failures at the same moment agree on one sentence") {
  for (int turn = 0; turn < 40; ++turn) {
    std::mutex mutex;
    std::set<std::string> texts;
    std::barrier all(4);
    on_ranks(
        4,
        [&](Communicator& c) {
          std::vector<float> x(static_cast<std::size_t>(10 + c.rank()));
          all.arrive_and_wait();
          const Error error = error_of([&] { c.all_reduce(x, sum, {"recursive_doubling", 0}); });
          CHECK(error.code == ErrorCode::truncated);
          {
            const std::lock_guard lock(mutex);
            texts.insert(std::string(error.what()));
          }
          all.arrive_and_wait();
        },
        patient());
    CHECK(texts.size() == 1);
  }
}

TEST_CASE("root cause: who waits is seen while it waits, without a timeout, and no longer") {
  const auto waits = [] {  // of rank 0 of this process
    for (const std::string& file : status::all_files()) {
      const status::PeerPage page(file);
      if (!page.valid() || page.layout().process != status::own_process()) continue;
      if (page.layout().rank == 0) return page.read().waits;
    }
    return std::string("no page");
  };
  for (const bool polls : {false, true}) {
    std::barrier all(2);
    on_ranks(
        2,
        [&](Communicator& c) {
          std::vector<float> x(4);
          if (c.rank() == 0) {
            Request request = c.start_all_reduce(x, sum, {"ring", 0});
            while (polls && !request.test()) std::this_thread::yield();
            request.wait();
          } else {
            for (int i = 0; i < 20'000 && waits().empty(); ++i) std::this_thread::sleep_for(1ms);
            CHECK(holds(waits(), {"waits for rank 1 (step "}));
            c.all_reduce(x, sum, {"ring", 0});
          }
          all.arrive_and_wait();
          CHECK(waits().empty());
          all.arrive_and_wait();
        },
        Options());
  }
}

TEST_CASE("root cause: without a timeout, a rank that has left is noticed at once") {
  Options options;  // no timeout
  for (const int size : sizes)
    for (const std::uint64_t seed : {0, 3}) {
      CAPTURE(size);
      const int absent = size / 2;
      std::mutex mutex;
      std::set<std::string> sentences;
      on_ranks(size,
               [&](Communicator& c) {
                 std::vector<float> x(1000, 1);
                 c.all_reduce(x, sum);
                 if (c.rank() == absent) return;
                 const Error error = error_of([&] {
                   for (;;) c.all_reduce(x, sum, {"ring"});
                 });
                 CHECK(error.code == ErrorCode::transport);
                 const std::lock_guard lock(mutex);
                 sentences.insert(error.what());
               },
               options, {.seed = seed});
      REQUIRE(sentences.size() == 1);
      MESSAGE(*sentences.begin());
      CHECK(holds(*sentences.begin(),
                  {"of communicator 'world' cannot complete (no progress for",
                   "rank " + std::to_string(absent), "has left the communicator"}));
    }
}

namespace {

/// The exchange of two processes, over a socket of each.
Exchange over(int rank, int socket) {
  return [=](const std::vector<std::byte>& own) {
    std::vector<std::byte> other(own.size());
    const auto bytes = static_cast<ssize_t>(own.size());
    if (write(socket, own.data(), own.size()) != bytes ||
        recv(socket, other.data(), other.size(), MSG_WAITALL) != bytes)
      throw Error(ErrorCode::transport, "the other process has ended");
    return rank == 0 ? std::vector{own, other} : std::vector{other, own};
  };
}

/// Parts and survivors of a communicator whose ranks in the first one are unknown: rank 1 comes to
/// their collectives so late that it would be taken for one that has left.
void late_in_parts_of_unknown_ranks(int rank, int socket) {
  const Communicator first(shm_transport(rank, 2, over(rank, socket)), Options());
  Communicator unknown(first.transport().split(0, 0), first);
  Communicator part = unknown.split(0), survivors = unknown.shrink(60s), again = part.split(0);
  CHECK(part.name() == "/1:0");
  for (Communicator* const c : {&part, &survivors, &again}) {
    if (rank == 1) std::this_thread::sleep_for(2500ms);
    c->barrier();
    c->barrier();
  }
}

}  // namespace

TEST_CASE("root cause: a late rank of unknown place is not taken for one that has left") {
  int sockets[2] = {};
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  close(sockets[child == 0 ? 0 : 1]);
  if (child == 0) {
    int failed = 0;
    try {
      late_in_parts_of_unknown_ranks(1, sockets[1]);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank 1: %s\n", error.what());
      failed = 1;
    }
    _exit(failed);
  }
  CHECK_NOTHROW(late_in_parts_of_unknown_ranks(0, sockets[0]));
  close(sockets[0]);
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("root cause: a message of a rank that has left is not lost") {
  on_ranks(2,
           [](Communicator& c) {
             std::vector<int> x(10, c.rank());
             if (c.rank() == 1) return c.send(x, 0, 7);
             std::this_thread::sleep_for(50ms);
             c.recv(x, 1, 7);
             CHECK(x == std::vector<int>(10, 1));
             CHECK(holds(error_of([&] { c.recv(x, 1, 7); }).what(), {"recv", "rank 1"}));
           },
           Options{}, {.seed = 9});
}

TEST_CASE("root cause: a rank that comes late has no result that others have given up") {
  std::mutex mutex;
  std::vector<std::string> said;
  std::barrier both(2);
  on_ranks(
      2,
      [&](Communicator& c) {
        std::vector<float> x(10, 1);
        c.all_reduce(x, sum, {"recursive_doubling", 0});
        if (c.rank() == 1) both.arrive_and_wait();
        // All that rank 1 waits for has come when it comes.
        const Error error = error_of([&] { c.all_reduce(x, sum, {"recursive_doubling", 0}); });
        CHECK(error.code == ErrorCode::timeout);
        if (c.rank() == 0) both.arrive_and_wait();
        const std::lock_guard lock(mutex);
        said.emplace_back(error.what());
        if (said.size() == 2) CHECK(said[0] == said[1]);
      },
      patient());
  CHECK(said.size() == 2);
}

TEST_CASE("a communicator is called by its name") {
  Options options = giving_up_after(200ms);
  options.name = "pipeline";
  on_ranks(
      3,
      [](Communicator& c) {
        Options own = giving_up_after(200ms);
        own.name = "columns";
        Communicator part = c.split(0, 0, own), unnamed = c.split(0),
                     again = c.split(0, 0, c.options());
        const auto sentence = [&](Communicator& which) {
          std::vector<float> x(10);
          if (c.rank() == 0) return std::string();
          return std::string(error_of([&] { which.all_reduce(x, sum, {"ring", 0}); }).what());
        };
        const std::string of_part = sentence(part), of_unnamed = sentence(unnamed),
                          of_again = sentence(again), of_whole = sentence(c);
        if (c.rank() == 0) {
          std::this_thread::sleep_for(2s);
          return;
        }
        CHECK(holds(of_part, {"of communicator 'columns' cannot complete"}));
        CHECK(holds(of_unnamed, {"of communicator 'pipeline/2:0' cannot complete"}));
        CHECK(holds(of_again, {"of communicator 'pipeline/3:0' cannot complete"}));
        CHECK(holds(of_whole, {"of communicator 'pipeline' cannot complete"}));
      },
      options);
}

TEST_CASE("a communicator is renamed") {
  on_ranks(
      2,
      [](Communicator& c) {
        CHECK(c.name() == "world");
        CHECK(holds(error_of([&] { c.set_name(""); }).what(),
                    {"expected a name, found an empty one"}));
        c.set_name("ocean\nand ice");
        CHECK(c.name() == "ocean and ice");
        Communicator part = c.split(0);
        CHECK(part.name() == "ocean and ice/1:0");
        std::string lines;
        for (int i = 0; i < 32; ++i) lines += "ä";  // 64 bytes
        part.set_name(lines + "!");
        CHECK(part.name() == lines.substr(0, 62));
        Communicator renamed = c.split(0);
        renamed.set_name("ice");
        if (c.rank() == 0) {
          std::this_thread::sleep_for(2s);
          return;
        }
        std::vector<float> x(10);
        for (auto [which, name] : {std::pair(&renamed, "'ice'"), {&c, "'ocean and ice'"}}) {
          const Error error = error_of([&, &of = *which] { of.all_reduce(x, sum); });
          CHECK(holds(error.what(), {"of communicator ", name, " cannot complete"}));
        }
      },
      giving_up_after(200ms));
}
