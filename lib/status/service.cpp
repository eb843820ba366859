#include "service.hpp"

#include <fmt/core.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

#include "../base/forked.hpp"
#include "../transport/tcp/lobby.hpp"
#include "baton/error.hpp"

namespace baton::status {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto for_answer = 200ms;  // that a guest reads it

/// A door, and the thread behind it.
class Service {
 public:
  explicit Service(std::span<const std::string> addresses)
      : number_(random_number()),
        key_(tcp::proof_key(number_)),
        doors_(tcp::doors_at(addresses)),
        end_(tcp::event()),
        thread_([this] { serve(); }) {}
  ~Service() {
    if (process_ == getpid()) {
      static_cast<void>(eventfd_write(end_.descriptor(), 1));  // fails only at 2^64 - 1
      thread_.join();
    } else {
      base::leave_to_parent(std::move(thread_));
    }
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  pid_t process() const { return process_; }
  std::uint64_t number() const { return number_; }
  int port() const { return doors_.front().port(); }

 private:
  static std::uint64_t random_number() {
    const tcp::Digest random = tcp::random_bytes();
    std::uint64_t number = 0;
    std::memcpy(&number, random.data(), sizeof number);
    return number | 1;  // not 0
  }
  void serve() {
    tcp::Reception reception(key_);
    const int end = end_.descriptor();
    while (!tcp::readable({&end, 1}, Clock::now())) {
      try {
        if (const auto guest = reception.next(doors_, Clock::now() + 1h, end)) receive(*guest);
      } catch (const std::exception&) {  // no memory for this one
        std::this_thread::sleep_for(10ms);
      }
    }
  }
  void receive(const tcp::Guest& guest) {
    const auto inquiry = inquiry_of(guest.block);
    if (!inquiry) return;
    std::vector<tcp::Bytes> blocks;
    for (const Finding& finding : answers(*inquiry)) blocks.push_back(packed(finding));
    tcp::answer(guest, key_, 0, tcp::text_of(blocks), Clock::now() + for_answer);
  }

  const pid_t process_ = getpid();
  const std::uint64_t number_;
  const tcp::Bytes key_;
  const std::vector<tcp::Socket> doors_;
  const tcp::Socket end_;  // an event: the service ends
  std::thread thread_;     // last: it uses all other members
};

Door opened(std::unique_ptr<Service>& service) {
  Door door;
  const char* const interfaces = std::getenv("BATON_INTERFACE");
  std::vector<std::string> addresses = tcp::public_addresses(interfaces ? interfaces : "");
  if (addresses.empty()) return door;  // no interface is up
  if (addresses.size() > Door::most_addresses) addresses.resize(Door::most_addresses);
  try {
    service = std::make_unique<Service>(addresses);
  } catch (const std::exception&) {
    return door;
  }
  door.number = service->number();
  door.port = static_cast<std::uint64_t>(service->port());
  for (std::size_t i = 0; i < addresses.size(); ++i)
    addresses[i].copy(door.addresses[i].data(), door.addresses[i].size() - 1);
  return door;
}

}  // namespace

bool door_wanted() { return std::getenv("BATON_INTERFACE") != nullptr; }

Door own_door() {
  static std::mutex mutex;
  static std::unique_ptr<Service> service;
  static Door door;
  const std::lock_guard lock(mutex);
  if (!service || service->process() != getpid()) door = opened(service);
  return door;
}

namespace {

/// One question at one address. `lost`: somebody listened there, and gave no answer.
Answers ask_at(const std::string& address, const Door& door, const Inquiry& inquiry,
               Clock::time_point until, bool& lost) {
  int error = 0;
  lost = false;
  try {
    const auto host =
        tcp::connected_at_once(fmt::format("{}:{}", address, door.port), until, error);
    lost = host || error == ECONNRESET;
    if (!host) return {error == ECONNREFUSED ? Reply::refused : Reply::silent};
    Answers answers{Reply::answered};
    const auto size = static_cast<int>(inquiry.members.size());
    const auto blocks = tcp::attend(*host, address, tcp::proof_key(door.number),
                                    {.rank = 0, .size = size}, packed(inquiry), until);
    for (const tcp::Bytes& block : blocks) {
      std::optional<Finding> finding = finding_of(block);
      if (!finding) return {};
      answers.findings.push_back(*std::move(finding));
    }
    if (answers.findings.size() == inquiry.members.size()) return answers;
  } catch (const Error&) {  // this address leads elsewhere, or nobody answers
  }
  return {};
}

}  // namespace

Answers ask(const Door& door, const Inquiry& inquiry, std::chrono::milliseconds limit) {
  constexpr int most_tries = 4;
  constexpr auto between = 20ms;
  const auto until = Clock::now() + limit;
  if (door.number == 0) return {};
  bool all_refuse = door.addresses[0][0] != '\0';
  for (const auto& text : door.addresses) {
    if (text[0] == '\0') break;
    const std::string address(text.data(), strnlen(text.data(), text.size()));
    Answers answers;
    // A process that is ending may lose a question before its door is closed: then it refuses.
    bool lost = true;
    for (int tries = 0; lost && tries < most_tries && Clock::now() < until; ++tries) {
      if (tries > 0) std::this_thread::sleep_for(between);
      answers = ask_at(address, door, inquiry, until, lost);
      if (answers.reply == Reply::answered) return answers;
    }
    all_refuse = all_refuse && answers.reply == Reply::refused;
  }
  return {all_refuse ? Reply::refused : Reply::silent};
}

/// The ranks of one machine, and which of their processes answers.
struct Elsewhere::Machine {
  std::vector<int> ranks;
  std::mutex mutex;
  std::size_t first = 0;  // the rank, of these, that is asked first
  bool answered = false;
};

/// Looks in the background.
struct Elsewhere::Look {
  struct One {
    Finding latest;
    Clock::time_point next;
    std::future<Finding> under_way;
  };
  std::mutex mutex;
  std::map<int, One> ranks;
};

Elsewhere::Elsewhere(std::shared_ptr<const std::vector<Door>> doors,
                     std::span<const ProcessId> processes, std::vector<int> places)
    : doors_(std::move(doors)),
      processes_(processes.begin(), processes.end()),
      places_(std::move(places)),
      machines_(std::make_unique<std::vector<std::unique_ptr<Machine>>>()),
      look_(std::make_unique<Look>()) {
  std::map<std::uint64_t, Machine*> found;
  for (std::size_t r = 0; r < processes_.size(); ++r) {
    if (!has(static_cast<int>(r))) continue;
    Machine*& machine = found[processes_[r].machine];
    if (!machine) machine = machines_->emplace_back(std::make_unique<Machine>()).get();
    machine->ranks.push_back(static_cast<int>(r));
  }
}

Elsewhere::~Elsewhere() = default;

namespace {

constexpr std::array<char, 8> head_of_doors = {'b', 'a', 't', 'o', 'n', 'd', 'r', '1'};

struct WrittenDoor {
  ProcessId process;
  Door door;
};
static_assert(std::has_unique_object_representations_v<WrittenDoor>);

}  // namespace

std::vector<std::byte> Elsewhere::written() const {
  std::vector<WrittenDoor> all(processes_.size());
  for (std::size_t r = 0; r < all.size(); ++r)
    all[r] = {processes_[r], (*doors_)[static_cast<std::size_t>(places_[r])]};
  const std::size_t head = head_of_doors.size(), body = all.size() * sizeof(WrittenDoor);
  std::vector<std::byte> bytes(head + body);
  std::memcpy(bytes.data(), head_of_doors.data(), head);
  if (body > 0) std::memcpy(bytes.data() + head, all.data(), body);
  return bytes;
}

std::unique_ptr<Elsewhere> Elsewhere::read(std::span<const std::byte> bytes) {
  const auto head = std::as_bytes(std::span(head_of_doors));
  if (bytes.size() < head.size() || !std::ranges::equal(bytes.first(head.size()), head))
    return nullptr;
  bytes = bytes.subspan(head.size());
  std::vector<WrittenDoor> all(bytes.size() / sizeof(WrittenDoor));
  if (bytes.empty() || bytes.size() != all.size() * sizeof(WrittenDoor)) return nullptr;
  std::memcpy(all.data(), bytes.data(), bytes.size());
  auto doors = std::make_shared<std::vector<Door>>();
  std::vector<ProcessId> processes;
  std::vector<int> places;
  for (const WrittenDoor& one : all) {
    places.push_back(static_cast<int>(places.size()));
    processes.push_back(one.process);
    doors->push_back(one.door);
  }
  return std::make_unique<Elsewhere>(std::move(doors), processes, std::move(places));
}

std::unique_ptr<Elsewhere> Elsewhere::part(const std::vector<int>& ranks) const {
  std::vector<ProcessId> processes;
  std::vector<int> places;
  for (const int rank : ranks) {
    processes.push_back(processes_[static_cast<std::size_t>(rank)]);
    places.push_back(places_[static_cast<std::size_t>(rank)]);
  }
  return std::make_unique<Elsewhere>(doors_, processes, std::move(places));
}

bool Elsewhere::has(int rank) const {
  return processes_[static_cast<std::size_t>(rank)].machine != own_process().machine;
}

std::vector<int> Elsewhere::ranks() const {
  std::vector<int> ranks;
  for (const auto& machine : *machines_)
    ranks.insert(ranks.end(), machine->ranks.begin(), machine->ranks.end());
  std::ranges::sort(ranks);
  return ranks;
}

int Elsewhere::first_here() const {
  for (std::size_t r = 0; r < processes_.size(); ++r)
    if (!has(static_cast<int>(r))) return static_cast<int>(r);
  return -1;
}

std::vector<Finding> Elsewhere::ask_machine(Machine& machine, const Inquiry& inquiry,
                                            std::span<const int> ranks) const {
  constexpr auto for_one = 300ms, for_all = 1000ms;
  const auto process = [&](int rank) { return processes_[static_cast<std::size_t>(rank)]; };
  Inquiry question = inquiry;
  question.members.clear();
  for (const int rank : ranks) question.members.push_back({rank, process(rank)});
  std::size_t first = 0;
  bool answered = false;
  {
    const std::lock_guard lock(machine.mutex);
    first = machine.first;
    answered = machine.answered;
  }
  const auto until = Clock::now() + for_all;
  std::vector<ProcessId> refuse, asked;
  for (std::size_t k = 0; k < machine.ranks.size(); ++k) {
    const std::size_t at = (first + k) % machine.ranks.size();
    const int rank = machine.ranks[at];
    if (std::ranges::find(asked, process(rank)) != asked.end()) continue;
    asked.push_back(process(rank));
    const auto left = std::chrono::floor<std::chrono::milliseconds>(until - Clock::now());
    if (left <= 0ms) break;
    const int place = places_[static_cast<std::size_t>(rank)];
    Answers answers = status::ask((*doors_)[static_cast<std::size_t>(place)], question,
                                  std::min<std::chrono::milliseconds>(left, for_one));
    if (answers.reply == Reply::answered) {
      const std::lock_guard lock(machine.mutex);
      machine.first = at;
      machine.answered = true;
      return std::move(answers.findings);
    }
    if (answers.reply == Reply::refused) refuse.push_back(process(rank));
  }
  std::vector<Finding> findings(ranks.size());
  // Where a machine has never answered, something between may refuse.
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (std::ranges::find(refuse, process(ranks[i])) != refuse.end())
      findings[i].witness.condition.life = answered ? Life::ended : Life::refuses;
  return findings;
}

std::vector<Finding> Elsewhere::ask(const Inquiry& inquiry, std::span<const int> ranks) const {
  struct Question {
    std::vector<int> ranks;
    std::vector<std::size_t> places;  // in the answer
    std::future<std::vector<Finding>> answer;
  };
  std::vector<Question> questions;
  for (const auto& machine : *machines_) {
    Question question;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (std::ranges::find(machine->ranks, ranks[i]) == machine->ranks.end()) continue;
      question.ranks.push_back(ranks[i]);
      question.places.push_back(i);
    }
    if (question.ranks.empty()) continue;
    const auto answer = [this, &inquiry, of = machine.get(), ranks = question.ranks] {
      return ask_machine(*of, inquiry, ranks);
    };
    try {
      question.answer = std::async(std::launch::async, answer);
    } catch (const std::system_error&) {  // no thread can be had: one machine after the other
      question.answer = std::async(std::launch::deferred, answer);
    }
    questions.push_back(std::move(question));
  }
  std::vector<Finding> findings(ranks.size());
  for (Question& question : questions) {
    std::vector<Finding> answer = question.answer.get();
    for (std::size_t i = 0; i < answer.size(); ++i)
      findings[question.places[i]] = std::move(answer[i]);
  }
  return findings;
}

Finding Elsewhere::latest(int rank, std::uint64_t communicator) const {
  constexpr auto between = 250ms;
  const std::lock_guard lock(look_->mutex);
  Look::One& one = look_->ranks[rank];
  const auto now = Clock::now();
  if (one.under_way.valid()) {
    if (one.under_way.wait_for(0ms) != std::future_status::ready) return one.latest;
    one.latest = one.under_way.get();
    one.next = now + between;
  } else if (now >= one.next) {
    try {
      one.under_way = std::async(std::launch::async, [this, rank, communicator] {
        return ask({.communicator = communicator}, std::span(&rank, 1)).front();
      });
    } catch (const std::system_error&) {  // no thread can be had: the operation itself goes on
      one.next = now + between;
    }
  }
  return one.latest;
}

}  // namespace baton::status
