#include "single_copy.hpp"

#include <fmt/core.h>

#include <cstring>

#include "../../base/raise.hpp"
#include "check.hpp"
#include "message.hpp"

namespace baton::mpi {
namespace {

using State = SingleCopyMessage::State;

constexpr char was_read = 0, was_not_read = 1;

}  // namespace

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
    if (!message.thrown && fetching(message) && !advance(message)) advance();
    if (message.thrown) std::rethrow_exception(message.thrown);
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
  for (std::size_t i = 0; i < fetches_.size(); ++i) {
    SingleCopyMessage& message = *fetches_[i];
    try {
      if (advance(message)) return;
    } catch (...) {
      return keep_exception(message);
    }
  }
}

/// The message fails by the exception that is being handled: its owner gets it, nobody else.
void MemoryReads::keep_exception(SingleCopyMessage& message) {
  message.thrown = std::current_exception();
  std::erase(fetches_, &message);
  if (message.state != State::reading) return;
  try {
    answer(message, was_not_read);  // its sender may be what this rank waits for
  } catch (const Error&) {
    // The first failure says more.
  }
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
  const int error =
      reader_.read_some({process(message.peer), message.announcement.address, message.bytes},
                        message.done, message.to);
  if (error != 0)
    fail(message.peer, error,
         fmt::format("expected to read {} bytes of rank {}'s memory, but process_vm_readv said: {} "
                     "(BATON_SINGLE_COPY=0 does without)",
                     message.bytes, message.peer, std::strerror(error)));
  return message.done == message.bytes;
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
  message.thrown = nullptr;
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
