#include "status/inquiry.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "baton/error.hpp"
#include "status/service.hpp"
#include "support/without_threads.hpp"
#include "trace/recorder.hpp"
#include "transport/tcp/socket.hpp"

using namespace baton;
using namespace baton::status;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t communicator = 0x1234567890abcdef;

Call all_reduce() {
  Call call;
  call.kind = Call::Kind::collective;
  call.count = 10;
  call.set_text("ring");
  return call;
}

Inquiry about(int rank) {
  return {.communicator = communicator, .members = {{rank, own_process()}}};
}

/// A page of rank 3 of 5 that waits in its second operation.
void waits(Page& page) {
  page.end(page.begin(7, all_reduce()));
  page.begin(8, all_reduce());
  page.layout().waits.write("waits for rank 1");
  page.layout().blocker.store(2);
}

void same(const Standing& a, const Standing& b) {
  CHECK(a.communicator == b.communicator);
  CHECK(a.rank == b.rank);
  CHECK(a.size == b.size);
  CHECK(a.label == b.label);
  CHECK(a.program == b.program);
  CHECK(a.process == b.process);
  CHECK(a.thread == b.thread);
  CHECK(a.blocker == b.blocker);
  CHECK(a.waits == b.waits);
  CHECK(a.verdict == b.verdict);
  CHECK(a.verdict_number == b.verdict_number);
  CHECK(a.pending() == b.pending());
  REQUIRE(a.operations.size() == b.operations.size());
  for (std::size_t i = 0; i < a.operations.size(); ++i) {
    CHECK(a.operations[i].call == b.operations[i].call);
    CHECK(a.operations[i].under_way() == b.operations[i].under_way());
  }
}

}  // namespace

TEST_CASE("a finding arrives as it was, at this machine's time") {
  Page page(communicator, 3, 5, 6, "world");
  waits(page);
  Finding finding = answers(about(3)).front();
  REQUIRE(finding.witness.standing);
  CHECK(finding.page);
  CHECK(finding.witness.condition.life == Life::runs);
  finding.witness.others.push_back(*finding.witness.standing);
  // As of a machine that was started a year later.
  for (Standing* const s : {&*finding.witness.standing, &finding.witness.others[0]}) {
    constexpr std::int64_t year = 365ll * 24 * 3600 * 1'000'000'000;
    s->read_ns -= year;
    for (Operation& operation : s->operations) {
      operation.begin_ns -= year;
      if (operation.end_ns != 0) operation.end_ns -= year;
    }
  }
  const auto arrived = finding_of(packed(finding));
  REQUIRE(arrived);
  REQUIRE(arrived->witness.standing);
  same(*arrived->witness.standing, *finding.witness.standing);
  same(arrived->witness.others.at(0), *finding.witness.standing);
  const auto age = [](const Finding& of) {
    return of.witness.standing->read_ns - of.witness.standing->operations[1].begin_ns;
  };
  CHECK(age(*arrived) == age(finding));
  CHECK(std::abs(arrived->witness.standing->read_ns - tracing::now()) < 10'000'000'000);
}

TEST_CASE("cut or lengthened messages are none") {
  Page page(communicator, 3, 5, 6, "world");
  waits(page);
  const auto finding = packed(answers(about(3)).front());
  auto question = packed(about(3));
  for (std::size_t length = 0; length < finding.size(); ++length)
    CHECK_FALSE(finding_of(std::span(finding).first(length)));
  for (std::size_t length = 0; length < question.size(); ++length)
    CHECK_FALSE(inquiry_of(std::span(question).first(length)));
  CHECK(inquiry_of(question));
  question.push_back({});
  CHECK_FALSE(inquiry_of(question));
}

TEST_CASE("one rank alone may speak, and one alone reports a sentence") {
  Page page(communicator, 0, 2, 0, "world");
  const auto ask_for = [](Action action, std::uint64_t number, std::string sentence = {}) {
    Inquiry inquiry = about(0);
    inquiry.action = action;
    inquiry.number = number;
    inquiry.code = static_cast<std::uint32_t>(ErrorCode::timeout);
    inquiry.sentence = std::move(sentence);
    return answers(inquiry).front().done;
  };
  CHECK(ask_for(Action::claim, 0));
  CHECK_FALSE(ask_for(Action::claim, 1));
  CHECK(ask_for(Action::claim, 0));  // asked again: the answer was lost
  CHECK(ask_for(Action::told, 4, "rank 1 is late"));
  CHECK(ask_for(Action::tell, 4, "another one"));
  CHECK(read(page.layout()).verdict == "rank 1 is late");
  CHECK(page.layout().given_up.load() == 4);
  CHECK(ask_for(Action::tell, 5, "a later one"));
  CHECK(ask_for(Action::give_up, 7));
  CHECK(page.layout().given_up.load() == 4);  // what began before stays given up
  CHECK(ask_for(Action::give_up, 3));
  CHECK(page.layout().given_up.load() == 3);
  CHECK(ask_for(Action::report, 99));
  CHECK(ask_for(Action::report, 98));
  CHECK_FALSE(ask_for(Action::report, 99));
  CHECK(ask_for(Action::leave_out, 2));
  CHECK(page.layout().left_out.load() == 2);
}

TEST_CASE("a door answers whoever knows its number, and nobody else") {
  Page page(communicator, 3, 5, 6, "world");
  waits(page);
  Door door = own_door();
  REQUIRE(door.number != 0);
  CHECK(own_door().number == door.number);
  CHECK(door.addresses[0][0] != '\0');
  const Answers answers = ask(door, about(3), 5s);
  REQUIRE(answers.reply == Reply::answered);
  REQUIRE(answers.findings.at(0).witness.standing);
  same(*answers.findings[0].witness.standing, read(page.layout()));
  door.number += 2;
  CHECK(ask(door, about(3), 5s).reply == Reply::silent);
  door.number = 0;
  CHECK(ask(door, about(3), 5s).reply == Reply::silent);
  door = own_door();
  door.port = 1;  // nobody listens there
  CHECK(ask(door, about(3), 5s).reply == Reply::refused);
}

TEST_CASE("a door that closes on a question, as its process ends, is asked again") {
  // Of several that ask at once, it closes on the question of some, on the connection of others.
  for (int turn = 0; turn < 20; ++turn) {
    std::vector<tcp::Socket> doors = tcp::doors_at(std::vector<std::string>{"127.0.0.1"});
    Door door;
    door.number = 1;
    door.port = static_cast<std::uint64_t>(doors[0].port());
    door.addresses[0] = {"127.0.0.1"};
    std::thread ends([&] {
      const int listener = doors[0].descriptor();
      CHECK(tcp::readable({&listener, 1}, std::chrono::steady_clock::now() + 5s));
      doors.clear();  // nobody has taken the connection
    });
    std::array<Reply, 8> replies{};
    {
      std::vector<std::jthread> asking;
      for (Reply& reply : replies)
        asking.emplace_back([&] { reply = ask(door, about(3), 5s).reply; });
    }
    ends.join();
    for (const Reply reply : replies) CHECK(reply == Reply::refused);
  }
}

TEST_CASE("ranks of other machines: the first process that answers tells about all") {
  Page page(communicator, 1, 3, 6, "world");
  waits(page);
  // Ranks 1 and 2 pose as processes of another machine; rank 2's door is closed.
  ProcessId other = own_process();
  other.machine += 1;
  ProcessId second = other;
  second.pid += 1;
  Door closed = own_door();
  closed.port = 1;
  const auto doors =
      std::make_shared<const std::vector<Door>>(std::vector<Door>{own_door(), own_door(), closed});
  const std::vector<ProcessId> processes{own_process(), other, second};
  const Elsewhere elsewhere(doors, processes, {0, 1, 2});
  CHECK_FALSE(elsewhere.has(0));
  CHECK(elsewhere.has(1));
  const std::vector<int> both{2, 1};
  const auto found = elsewhere.ask({.communicator = communicator}, both);
  REQUIRE(found.size() == 2);
  REQUIRE(found[1].witness.standing);  // the page's name has no machine
  CHECK(found[1].witness.standing->waits == "waits for rank 1");
  CHECK_FALSE(found[0].witness.standing);

  // Alone on its machine: refused, and whether it ever answered is not known.
  const std::unique_ptr<Elsewhere> alone = elsewhere.part({2});
  const int first = 0;
  CHECK(alone->ask({.communicator = communicator}, std::span(&first, 1))
            .front()
            .witness.condition.life == Life::refuses);

  Finding latest;
  for (int i = 0; i < 1000 && !latest.page; ++i) {
    latest = elsewhere.latest(1, communicator);
    std::this_thread::sleep_for(10ms);
  }
  CHECK(latest.page);
}

namespace {

/// Rank 1 poses as a process of another machine.
Elsewhere of_two() {
  ProcessId other = own_process();
  other.machine += 1;
  const auto doors = std::make_shared<const std::vector<Door>>(std::vector<Door>{{}, own_door()});
  const std::vector<ProcessId> processes{own_process(), other};
  return Elsewhere(doors, processes, {0, 1});
}

}  // namespace

TEST_CASE("ranks of other machines are asked also where no thread can be had") {
  Page page(communicator, 1, 2, 6, "world");
  waits(page);
  const Elsewhere elsewhere = of_two();
  const int rank = 1;
  std::vector<Finding> asked;
  Finding early, later;
  {
    const support::WithoutThreads limited;
    CHECK_THROWS_AS(std::thread([] {}).join(), std::system_error);
    CHECK_NOTHROW(asked = elsewhere.ask({.communicator = communicator}, std::span(&rank, 1)));
    CHECK_NOTHROW(early = elsewhere.latest(rank, communicator));
  }
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].page);
  CHECK_FALSE(early.page);
  for (int i = 0; i < 1000 && !later.page; ++i) {
    later = elsewhere.latest(rank, communicator);
    std::this_thread::sleep_for(10ms);
  }
  CHECK(later.page);  // it looks again when there may be threads
}

TEST_CASE("whoever sees a page finds the way to ranks of other machines beside it") {
  Page page(communicator, 0, 2, 6, "world");
  waits(page);
  const Elsewhere elsewhere = of_two();
  const std::string file = file_of(own_process(), communicator, 0);
  CHECK(Elsewhere::read(doors_beside(file)) == nullptr);
  page.put_doors(elsewhere.written());
  page.put_doors(elsewhere.written());  // again, as for a communicator that is split
  CHECK(std::ranges::count(all_files(), file) == 1);
  CHECK(std::ranges::count(all_files(), file + ".doors") == 0);

  std::vector<std::byte> bytes = doors_beside(file);
  const auto found = Elsewhere::read(bytes);
  REQUIRE(found != nullptr);
  CHECK(found->ranks() == std::vector<int>{1});
  CHECK(found->first_here() == 0);
  const int one = 1;
  Page theirs(communicator, 1, 2, 6, "world");
  waits(theirs);
  const auto findings = found->ask({.communicator = communicator}, std::span(&one, 1));
  REQUIRE(findings.at(0).witness.standing);
  CHECK(findings[0].witness.standing->rank == 1);

  for (const std::size_t length : {std::size_t{0}, std::size_t{8}, bytes.size() - 1})
    CHECK(Elsewhere::read(std::span(bytes).first(length)) == nullptr);
  bytes[0] = std::byte{'B'};
  CHECK(Elsewhere::read(bytes) == nullptr);
}
