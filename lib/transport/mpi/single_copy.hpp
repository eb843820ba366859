#pragma once
/// Messages between processes of one host: the receiver reads the sender's memory.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../peer_memory.hpp"
#include "baton/mpi.hpp"

namespace baton::mpi {

/// One side of such a message. The sender announces the address of its bytes; the receiver reads
/// them and answers.
struct SingleCopyMessage {
  struct Announcement {
    std::uint64_t address, bytes;
    std::int64_t answer_tag;
  };
  enum class State : std::uint8_t { announced, awaited, reading, answering, ended };
  MPI_Request announcing, answering;
  Announcement announcement;
  Destination to;
  std::size_t bytes;  ///< as the caller said
  std::size_t done;   ///< bytes read
  int peer;
  State state;
  char answer;                          ///< 0: the message was read
  std::exception_ptr thrown = nullptr;  ///< while another message was tested
};

/// The messages under way on one communicator.
class MemoryReads final : public SingleCopy {
 public:
  static constexpr int tags = 1 << 15;  ///< for answers; at most this many can be awaited at once

  /// `tag`: the first tag for answers. `processes`: from transport::readable_processes().
  MemoryReads(MPI_Comm communicator, int rank, int tag, std::vector<pid_t> processes)
      : communicator_(communicator), rank_(rank), tag_(tag), processes_(std::move(processes)) {}
  ~MemoryReads() override {
    if (in_use_) static_cast<void>(messages_.release());
  }

  pid_t process(int rank) const { return processes_[static_cast<std::size_t>(rank)]; }
  std::size_t least_bytes() const override {
    return 6 << 10;
  }  // MPI is faster for shorter messages
  bool reads(int peer) const override { return process(peer) != 0; }
  void offer(int peer, int tag, const void* data, std::size_t bytes, Message& message) override;
  void fetch(int peer, int tag, const Destination& to, std::size_t bytes,
             Message& message) override;
  /// Transport::test(), except that the caller must cancel a failed message. Advances other
  /// messages while this one waits.
  bool test(SingleCopyMessage& message, std::size_t& bytes);
  /// Whether this rank has messages to read.
  bool any() const { return !fetches_.empty(); }
  /// Reads a part of one announced message. If that fails, its own test() tells, not this.
  void advance();
  /// Transport::cancel().
  void cancel(SingleCopyMessage& message);

 private:
  SingleCopyMessage& take();
  static bool fetching(const SingleCopyMessage& message) {
    using State = SingleCopyMessage::State;
    return message.state == State::awaited || message.state == State::reading;
  }
  /// True if there was progress.
  bool advance(SingleCopyMessage& message);
  void keep_exception(SingleCopyMessage& message);
  /// True if all of it is read.
  bool read_some(SingleCopyMessage& message);
  void answer(SingleCopyMessage& message, char answer);
  bool complete(MPI_Request& request, int peer);
  [[noreturn]] void fail(int peer, int code, const std::string& text) const;

  MPI_Comm communicator_;
  int rank_, tag_;
  std::vector<pid_t> processes_;
  std::uint32_t offers_ = 0;
  std::unique_ptr<std::deque<SingleCopyMessage>> messages_ =
      std::make_unique<std::deque<SingleCopyMessage>>();
  bool in_use_ = false;  // MPI may write to a cancelled message for ever
  std::vector<SingleCopyMessage*> free_;
  std::vector<SingleCopyMessage*> fetches_;  // awaited or being read
  transport::PartReader reader_;
};

}  // namespace baton::mpi
