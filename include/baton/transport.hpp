#pragma once
/// What moves bytes: nothing but sends and receives.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>

#include "baton/export.hpp"

namespace BATON_API baton {

/// What a transport can do. What it cannot do is asked here first, never discovered by an
/// exception.
struct Capabilities {
  std::string name;          ///< "thread", "mpi"
  std::string library = {};  ///< "Open MPI v4.1.4"; empty: rests on none
  int tags = 32767;          ///< tags 0 … tags - 1 may be used
  bool concurrent = true;    ///< different communicators may be used by different threads at once
  bool cancels = true;  ///< cancel() ends any message; otherwise one that is under way may go on
  int spins = 256;      ///< tests in a row that are worth their while before idle()
  bool waits = false;   ///< send(), recv() and send_recv() cost less than what they stand for
  bool one_process = false;    ///< ranks are threads of one process
  bool device_memory = false;  ///< messages may lie in a device's memory
};

/// State of one message in flight, owned by the caller and used by one transport. Neither it nor
/// the message's buffer may move or go before test() has returned true or cancel() has returned.
struct Message {
  alignas(16) std::byte state[48];
};

/// Where a message goes that is read in its sender's memory.
struct Destination {
  void* data;  ///< room for the message, or, where parts are taken, what take() is given
  /// Takes the message instead, part after part from its beginning on, when test() is called. A
  /// part may be written to.
  void (*take)(void* data, std::byte* part, std::size_t bytes) = nullptr;
  std::size_t unit = 1;  ///< bytes, up to most_unit: parts that are taken are multiples of it
  static constexpr std::size_t most_unit = 4096;
};

/// Point-to-point messages among a group of ranks. One thread at a time uses one transport object.
///
/// Messages from one rank to another with equal tag arrive in the order they were sent. A message
/// is received by a receive of the same source and tag, never by another group's.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual Capabilities capabilities() const = 0;
  /// The host of each rank, the same on all ranks: hosts are numbered in the order of their lowest
  /// ranks. Empty: all ranks share one.
  virtual std::span<const int> hosts() const { return {}; }
  /// Whether messages can still be sent: false where what it rests on has come to its end.
  virtual bool alive() const { return true; }

  /// Starts to send `bytes` bytes; the buffer is read until test() returns true.
  virtual void isend(int peer, int tag, const void* data, std::size_t bytes, Message& message) = 0;
  /// Starts to receive at most `bytes` bytes; the buffer is written until test() returns true.
  virtual void irecv(int peer, int tag, void* data, std::size_t bytes, Message& message) = 0;
  /// As irecv(), and waits for its end, which nothing but the message or its failure brings about:
  /// for ranks that could do nothing else. Returns what was sent, as test() does. Where the
  /// transport has no better way, by irecv(), test() and idle().
  virtual std::size_t recv(int peer, int tag, void* data, std::size_t bytes);
  /// As isend(), and waits for its end, likewise.
  virtual void send(int peer, int tag, const void* data, std::size_t bytes);
  struct Out {
    int peer, tag;
    const void* data;
    std::size_t bytes;
  };
  struct In {
    int peer, tag;
    void* data;
    std::size_t bytes;
  };
  /// As isend() of `out` and recv() of `in` at once; waits for both.
  virtual std::size_t send_recv(const Out& out, const In& in);
  /// Whether a message of so many bytes, from this rank to the peer or from it, is read by its
  /// receiver in the sender's memory: then both call offer() and fetch() instead of isend() and
  /// irecv(). The same on both. Only for bytes in the host's memory.
  bool reads(int peer, std::size_t bytes) const {
    return bytes >= least_read_ && reads_memory_of(peer);
  }
  /// As isend(), of exactly as many bytes as the receiver fetches.
  virtual void offer(int peer, int tag, const void* data, std::size_t bytes, Message& message);
  /// As irecv(), of exactly as many bytes as the sender offers; they go where `to` says.
  virtual void fetch(int peer, int tag, const Destination& to, std::size_t bytes, Message& message);
  /// Whether the message is complete; if so it is released, and `bytes` is what was sent, which for
  /// a receive may be less or more than the room given (more: only the room was filled).
  /// Throws Error(transport) if the message failed.
  virtual bool test(Message& message, std::size_t& bytes) = 0;
  /// Gives up a message that is in flight and releases it. Where the transport cancels, its buffer
  /// is not touched any more; otherwise that holds only of a receive that nobody has sent to.
  virtual void cancel(Message& message) = 0;
  /// Advances messages in flight, without waiting.
  virtual void progress() = 0;
  /// Waits until something may have happened to this rank's messages, or the time has passed, in a
  /// way that leaves the core to others. What happened since idle() last returned ends it at once:
  /// to call it after a round of tests that found nothing misses nothing.
  virtual void idle(std::chrono::microseconds at_most) = 0;

  /// The transport of the ranks that give the same color, ordered by key, then by rank; null where
  /// color is negative. Collective: every rank of the group calls it. Throws Error(transport).
  virtual std::unique_ptr<Transport> split(int color, int key) = 0;

 protected:
  /// Messages of fewer bytes are not read in their sender's memory; here, none is.
  std::size_t least_read_ = std::numeric_limits<std::size_t>::max();

 private:
  virtual bool reads_memory_of(int) const { return false; }
};

}  // namespace baton
