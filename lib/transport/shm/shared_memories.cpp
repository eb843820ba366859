#include "shared_memories.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

#include "../../base/raise.hpp"
#include "../groups.hpp"

namespace baton::shm {
namespace {

using Clock = std::chrono::steady_clock;

/// A rank that failed keeps its file open for this long, so that others can open it and read why.
constexpr std::chrono::milliseconds told_within{1000};
constexpr std::chrono::microseconds between_looks{50};
constexpr std::chrono::milliseconds between_looks_at_processes{50};

}  // namespace

SharedMemories::SharedMemories(int rank, int size, const Exchange& exchange,
                               std::chrono::milliseconds meeting)
    : rank_(rank),
      meeting_(meeting),
      process_(getpid()),
      memories_(static_cast<std::size_t>(size)),
      readable_(static_cast<std::size_t>(size), 0) {
  make_own(exchange);
  const std::vector<Contact> contacts = contacts_by(exchange);
  try {
    map_all(contacts);
    await_arrivals(contacts);
  } catch (const Error& error) {
    pass_on(error);
    throw;
  }
  memories_[static_cast<std::size_t>(rank)].close();
}

SharedMemories::~SharedMemories() {
  if (getpid() != process_) return;  // a fork's copy: this rank goes on
  own().head().presence.store(Presence::left, std::memory_order_release);
  for (const SharedMemory& memory : memories_) memory.ring_bell();
}

/// Without memory, this rank takes part in the exchange all the same.
void SharedMemories::make_own(const Exchange& exchange) {
  try {
    memories_[static_cast<std::size_t>(rank_)] = SharedMemory(rank_, size());
  } catch (const Error&) {
    exchange({});
    throw;
  }
}

std::vector<SharedMemories::Contact> SharedMemories::contacts_by(const Exchange& exchange) const {
  const Contact contact{transport::own_place(), transport::own_process(), transport::own_word(),
                        own().id(), own().descriptor()};
  std::vector<std::byte> block(sizeof contact);
  std::memcpy(block.data(), &contact, sizeof contact);
  std::vector<Contact> contacts;
  for (const auto& other : transport::exchanged(exchange, block, rank_, size(), sizeof contact))
    std::memcpy(&contacts.emplace_back(), other.data(), sizeof contact);
  for (std::size_t r = 0; r < contacts.size(); ++r)
    if (contacts[r].process.machine != contacts[0].process.machine)
      base::raise(ErrorCode::transport,
                  fmt::format("shared memory needs ranks that see each other's processes, but rank "
                              "{} runs on another machine or in another container than rank 0",
                              r),
                  {.rank = rank_});
  return contacts;
}

/// Maps all ranks' memory, and then tells them so, and whether this one may read in their own.
void SharedMemories::map_all(const std::vector<Contact>& contacts) {
  bool reads = transport::single_copy_wanted();
  for (int r = 0; r < size(); ++r) {
    const Contact& contact = contacts[static_cast<std::size_t>(r)];
    places_.push_back(contact.place);
    if (r == rank_) continue;
    memories_[static_cast<std::size_t>(r)] = SharedMemory(
        rank_, size(), r, contact.process, static_cast<int>(contact.descriptor), contact.file);
    reads = reads && transport::readable(contact.word);
  }
  for (int r = 0; r < size(); ++r)
    arrived(r, rank_).store(reads ? Arrived::reads : Arrived::maps, std::memory_order_release);
}

/// Returns when all ranks have mapped this rank's memory. All learn whether all may read.
void SharedMemories::await_arrivals(const std::vector<Contact>& contacts) {
  const auto start = Clock::now();
  auto look = start;
  const auto said = [&](int r) { return arrived(rank_, r).load(std::memory_order_acquire); };
  for (int r = 0; r < size();) {
    if (said(r) == Arrived::maps || said(r) == Arrived::reads) {
      ++r;
      continue;
    }
    for (int peer = 0; peer < size(); ++peer)
      if (of(peer).head().presence.load(std::memory_order_acquire) == Presence::failed)
        base::raise(ErrorCode::transport, of(peer).head().failure.data(),
                    {.rank = rank_, .peer = peer});
    const auto now = Clock::now();
    if (now - look > between_looks_at_processes) {
      look = now;
      const auto condition =
          transport::condition_of(contacts[static_cast<std::size_t>(r)].process, 0);
      if (condition.life == transport::Life::ended && said(r) == Arrived::none)
        base::raise(ErrorCode::transport,
                    fmt::format("rank {} was expected to map the memory of rank {}, but {}", r,
                                rank_, transport::describe(condition)),
                    {.rank = rank_, .peer = r});
    }
    if (now - start > meeting_) {
      std::vector<int> missing;
      for (int other = 0; other < size(); ++other)
        if (said(other) == Arrived::none) missing.push_back(other);
      base::raise(ErrorCode::timeout,
                  fmt::format("rank {} has waited {} ms for ranks to map its memory; missing: {}",
                              rank_, meeting_.count(), fmt::join(missing, ", ")),
                  {.rank = rank_, .peer = r});
    }
    std::this_thread::sleep_for(between_looks);
  }
  for (int r = 0; r < size(); ++r)
    if (said(r) != Arrived::reads) return;
  for (std::size_t r = 0; r < contacts.size(); ++r)
    if (static_cast<int>(r) != rank_) readable_[r] = static_cast<pid_t>(contacts[r].word.process);
}

/// Lets the others open this rank's file, if they have not done so yet, and read the sentence.
void SharedMemories::pass_on(const Error& error) {
  SharedHead& head = own().head();
  const std::string sentence = error.what();
  sentence.copy(head.failure.data(), head.failure.size() - 1);
  head.presence.store(Presence::failed, std::memory_order_release);
  for (int r = 0; r < size(); ++r)
    if (of(r)) arrived(r, rank_).store(Arrived::failed, std::memory_order_release);
  const auto end = Clock::now() + std::min(meeting_, told_within);
  const auto awaited = [&](int r) { return arrived(rank_, r).load() == Arrived::none; };
  for (int r = 0; r < size() && Clock::now() < end;) {
    if (awaited(r))
      std::this_thread::sleep_for(between_looks);
    else
      ++r;
  }
}

}  // namespace baton::shm
