#include "single_copy.hpp"

#include <fmt/core.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string_view>

#include "../../base/raise.hpp"
#include "../gathered.hpp"
#include "check.hpp"
#include "message.hpp"

namespace baton::mpi {
namespace {

using State = SingleCopyMessage::State;

constexpr std::size_t part_bytes = 128 << 10;   // of one read: stays in a core's cache
constexpr std::size_t bytes_at_once = 1 << 20;  // of one test
constexpr char was_read = 0, was_not_read = 1;

struct Process {
  std::int64_t id;
  std::uint64_t address, word;
};

bool wanted() {
  const char* const text = std::getenv("BATON_SINGLE_COPY");
  if (!text || std::string_view(text) == "1") return true;
  if (std::string_view(text) == "0") return false;
  base::refuse("BATON_SINGLE_COPY: expected 0 or 1, found '{}'", text);
}

ssize_t read_from(pid_t process, std::uint64_t address, void* into, std::size_t bytes) {
#ifdef __linux__
  const iovec here{into, bytes}, there{reinterpret_cast<void*>(address), bytes};
  return process_vm_readv(process, &here, 1, &there, 1, 0);
#else
  static_cast<void>(process), static_cast<void>(address), static_cast<void>(into);
  static_cast<void>(bytes), errno = ENOSYS;
  return -1;
#endif
}

bool readable(const Process& process) {
  std::uint64_t word = 0;
  const auto id = static_cast<pid_t>(process.id);
  return read_from(id, process.address, &word, sizeof word) == sizeof word && word == process.word;
}

}  // namespace

std::vector<pid_t> readable_processes(Transport& group, std::span<const transport::Place> places) {
  static const std::uint64_t word = std::uint64_t{std::random_device()()} << 32 | 1;
  bool reads = wanted();
  const auto processes =
      transport::gathered(group, Process{getpid(), reinterpret_cast<std::uint64_t>(&word), word});
  const auto rank = static_cast<std::size_t>(group.rank());
  const auto neighbour = [&](std::size_t peer) { return places[peer].host == places[rank].host; };
  for (std::size_t peer = 0; peer < places.size(); ++peer)
    if (reads && neighbour(peer)) reads = readable(processes[peer]);
  const std::vector<char> all = transport::gathered(group, static_cast<char>(reads));

  std::vector<pid_t> ids(places.size(), 0);
  for (std::size_t peer = 0; peer < ids.size(); ++peer) {
    if (!neighbour(peer)) continue;
    if (all[peer] == 0) return std::vector<pid_t>(places.size(), 0);
    if (peer != rank) ids[peer] = static_cast<pid_t>(processes[peer].id);
  }
  return ids;
}

SingleCopyMessage& MemoryReads::take() {
  if (free_.empty()) return messages_->emplace_back();
  SingleCopyMessage& message = *free_.back();
  free_.pop_back();
  return message;
}

void MemoryReads::offer(int peer, int tag, const void* data, std::size_t bytes, Message& in) {
  SingleCopyMessage& message = take();
  const int answer_tag = tag_ + static_cast<int>(offers_++ % tags);
  message = {MPI_REQUEST_NULL,
             MPI_REQUEST_NULL,
             {reinterpret_cast<std::uint64_t>(data), bytes, answer_tag},
             {},
             bytes,
             0,
             peer,
             State::announced,
             was_not_read};
  check(
      MPI_Irecv(&message.answer, 1, MPI_CHAR, peer, answer_tag, communicator_, &message.answering),
      "MPI_Irecv", rank_, peer);
  check(MPI_Isend(&message.announcement, sizeof message.announcement, MPI_BYTE, peer, tag,
                  communicator_, &message.announcing),
        "MPI_Isend", rank_, peer);
  new (in.state) Pending{MPI_REQUEST_NULL, peer, false, bytes, &message};
}

void MemoryReads::fetch(int peer, int tag, const Destination& to, std::size_t bytes, Message& in) {
  SingleCopyMessage& message = take();
  message = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, {}, to, bytes, 0, peer, State::awaited, was_read};
  fetches_.push_back(&message);
  check(MPI_Irecv(&message.announcement, sizeof message.announcement, MPI_BYTE, peer, tag,
                  communicator_, &message.announcing),
        "MPI_Irecv", rank_, peer);
  new (in.state) Pending{MPI_REQUEST_NULL, peer, true, bytes, &message};
}

bool MemoryReads::complete(MPI_Request& request, int peer) {
  int complete = 0;
  check(MPI_Test(&request, &complete, MPI_STATUS_IGNORE), "MPI_Test", rank_, peer);
  return complete != 0;
}

bool MemoryReads::test(SingleCopyMessage& message, std::size_t& bytes) {
  if (message.state == State::announced) {
    if (!complete(message.answering, message.peer)) return advance(), false;
    // An answer proves that the announcement has arrived.
    check(MPI_Wait(&message.announcing, MPI_STATUS_IGNORE), "MPI_Wait", rank_, message.peer);
    if (message.answer != was_read) {
      fail(message.peer, 0,
           fmt::format("expected rank {} to read {} bytes of this rank's memory, but it gave up",
                       message.peer, message.bytes));
    }
    bytes = message.bytes;
  } else {
    if (fetching(message) && !advance(message)) advance();
    if (fetching(message)) return false;
    if (message.state == State::answering && !complete(message.answering, message.peer))
      return false;
    bytes = static_cast<std::size_t>(message.announcement.bytes);
  }
  free_.push_back(&message);
  return true;
}

void MemoryReads::advance() {
  // At most one advances, so that the caller soon learns of its own message.
  for (std::size_t i = 0; i < fetches_.size(); ++i)
    if (advance(*fetches_[i])) return;
}

bool MemoryReads::advance(SingleCopyMessage& message) {
  if (message.state == State::awaited) {
    int complete = 0, found = 0;
    MPI_Status status;
    check(MPI_Test(&message.announcing, &complete, &status), "MPI_Test", rank_, message.peer);
    if (complete == 0) return false;
    check(MPI_Get_count(&status, MPI_BYTE, &found), "MPI_Get_count", rank_, message.peer);
    message.state = State::reading;
    if (found != static_cast<int>(sizeof message.announcement)) {  // a short message instead
      message.announcement.bytes = static_cast<std::uint64_t>(found);
      message.state = State::ended;
      std::erase(fetches_, &message);
      return true;
    }
  }
  // A message of unexpected length is not read; the caller reports it.
  if (message.announcement.bytes == message.bytes && !read_some(message)) return true;
  std::erase(fetches_, &message);
  answer(message, was_read);
  return true;
}

bool MemoryReads::read_some(SingleCopyMessage& message) {
  const Destination& to = message.to;
  const std::size_t stop = std::min(message.done + bytes_at_once, message.bytes);
  if (!to.take) {
    read(message, static_cast<std::byte*>(to.data) + message.done, stop - message.done);
    message.done = stop;
    return stop == message.bytes;
  }
  if (!part_) part_ = std::make_unique_for_overwrite<std::byte[]>(part_bytes);
  const std::size_t most = part_bytes / to.unit * to.unit;
  while (message.done < stop) {
    const std::size_t part = std::min(most, message.bytes - message.done);
    read(message, part_.get(), part);
    message.done += part;
    to.take(to.data, part_.get(), part);
  }
  return message.done == message.bytes;
}

void MemoryReads::read(const SingleCopyMessage& message, std::byte* into, std::size_t bytes) {
  const pid_t from = process(message.peer);
  std::uint64_t address = message.announcement.address + message.done;
  while (bytes > 0) {
    const ssize_t got = read_from(from, address, into, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      const int code = got < 0 ? errno : EIO;
      fail(message.peer, code,
           fmt::format("expected to read {} bytes of rank {}'s memory, but process_vm_readv said: "
                       "{} (BATON_SINGLE_COPY=0 does without)",
                       bytes, message.peer, std::strerror(code)));
    }
    address += static_cast<std::uint64_t>(got);
    into += got;
    bytes -= static_cast<std::size_t>(got);
  }
}

void MemoryReads::answer(SingleCopyMessage& message, char answer) {
  message.answer = answer;
  message.state = State::answering;
  check(MPI_Isend(&message.answer, 1, MPI_CHAR, message.peer,
                  static_cast<int>(message.announcement.answer_tag), communicator_,
                  &message.answering),
        "MPI_Isend", rank_, message.peer);
}

void MemoryReads::cancel(SingleCopyMessage& message) {
  bool released = true;
  std::erase(fetches_, &message);
  switch (message.state) {
    case State::ended:
      break;
    case State::announced:
      released = give_up(message.answering, true, rank_, message.peer) != Ending::unknown;
      released &= give_up(message.announcing, false, rank_, message.peer) != Ending::unknown;
      break;
    case State::awaited: {
      const Ending ending = give_up(message.announcing, true, rank_, message.peer);
      released = ending != Ending::unknown;
      if (ending != Ending::complete) break;
      [[fallthrough]];
    }
    case State::reading:
      answer(message, was_not_read);
      [[fallthrough]];
    case State::answering:
      released = give_up(message.answering, false, rank_, message.peer) != Ending::unknown;
  }
  if (released)
    free_.push_back(&message);
  else
    in_use_ = true;
}

void MemoryReads::fail(int peer, int code, const std::string& text) const {
  base::raise(ErrorCode::transport, fmt::format("rank {}: {}", rank_, text),
              {.rank = rank_,
               .peer = peer,
               .backend_code = code,
               .backend_text = code != 0 ? std::strerror(code) : ""});
}

}  // namespace baton::mpi
