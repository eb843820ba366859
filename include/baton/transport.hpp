#pragma once
/// Interface that moves bytes between ranks: sends and receives, nothing else.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#pragma GCC visibility push(default)
namespace baton {

/// Facts about a transport; they never change. Callers ask here first: no call throws
/// "unsupported".
struct Capabilities {
  std::string name;          ///< "thread", "mpi"
  std::string library = {};  ///< "Open MPI v4.1.4"; empty: no library below
  int tags = 32767;          ///< tags 0 … tags - 1 may be used
  bool concurrent = true;    ///< different communicators may be used by different threads at once
  bool cancels = true;  ///< cancel() ends any message; otherwise one that is under way may go on
  int spins = 256;      ///< polls before calling idle()
  bool one_process = false;    ///< ranks are threads of one process
  bool device_memory = false;  ///< messages may lie in a device's memory
  bool probes = false;         ///< probe() finds messages
  bool subgroups = false;      ///< subgroup() makes transports
  /// The host of each rank, equal on all ranks; hosts are numbered in the order of their lowest
  /// ranks. Empty: all ranks share one host.
  std::vector<int> hosts = {};
  /// Cores of the machine that all ranks share; equal on all ranks. The choice of an algorithm
  /// regards them if there are more ranks. 0: unknown, or several machines.
  int cores = 0;
};

/// State of one message in flight. The caller owns it; one transport uses it. Neither it nor the
/// message's buffer may move or go before test() has returned true or cancel() has returned.
struct Message {
  alignas(16) std::byte state[48];
};

/// A message to send: `bytes` bytes at `data`.
struct OutgoingMessage {
  int peer, tag;
  const void* data;
  std::size_t bytes;
};
/// Room for a message to receive.
struct IncomingMessage {
  int peer, tag;
  void* data;
  std::size_t bytes;  ///< room
};

/// Blocking calls, for transports where these cost less than isend() or irecv() and a loop of
/// test(). A rank calls them only where nothing else is left to do: no other message advances.
class BlockingCalls {
 public:
  virtual ~BlockingCalls() = default;

  /// As Transport::isend(); returns when the buffer may be used again.
  virtual void send(const OutgoingMessage& out) = 0;
  /// As Transport::irecv(); returns the bytes that were sent, as Transport::test() does.
  virtual std::size_t recv(const IncomingMessage& in) = 0;
  /// Both at once.
  virtual std::size_t send_recv(const OutgoingMessage& out, const IncomingMessage& in) = 0;
};

/// Destination of a message that its receiver fetches.
struct Destination {
  void* data;  ///< room for the message or, with `take`, the first argument of take()
  /// Takes the message instead, part by part from its beginning, during calls that advance
  /// messages; of transports that are used by several threads, also during those of others. It may
  /// write to a part.
  void (*take)(void* data, std::byte* part, std::size_t bytes) = nullptr;
  std::size_t unit = 1;  ///< bytes, up to most_unit; each part but the last is a multiple of it
  static constexpr std::size_t most_unit = 4096;
};

/// Source of a message that its sender makes while it is sent. It may not move or go before the
/// message does.
struct Source {
  void* data;  ///< the first argument of give()
  /// Writes the next `bytes` bytes of the message, from its beginning on, during calls as those in
  /// which Destination::take() is called.
  void (*give)(void* data, std::byte* part, std::size_t bytes) noexcept;
  std::size_t unit = 1;  ///< bytes; each part but the last is a multiple of it
};

/// Single copy, for transports whose receivers can read a message in the sender's memory. Both
/// ranks call offer() and fetch() instead of isend() and irecv() wherever reads() says so.
class SingleCopy {
 public:
  virtual ~SingleCopy() = default;

  /// Shorter messages go by isend() and irecv(). Bytes; equal on all ranks.
  virtual std::size_t least_bytes() const = 0;
  /// Whether messages of least_bytes() and more between this rank and the peer, in the host's
  /// memory, are offered and fetched. Equal on both.
  virtual bool reads(int peer) const = 0;
  /// As Transport::isend(), of exactly as many bytes as the receiver fetches.
  virtual void offer(int peer, int tag, const void* data, std::size_t bytes, Message& message) = 0;
  /// As Transport::irecv(), of exactly as many bytes as the sender offers.
  virtual void fetch(int peer, int tag, const Destination& to, std::size_t bytes,
                     Message& message) = 0;
};

/// Messages that are made while they are sent, for transports with SingleCopy that can carry a
/// message part by part. Both ranks must advance meanwhile.
class Giving {
 public:
  virtual ~Giving() = default;

  /// Whether give() may stand for offer() to this peer, with a Source of this unit. A Destination
  /// has the same unit then, or 1.
  virtual bool gives(int peer, std::size_t unit) const = 0;
  /// As SingleCopy::offer(). Only where gives() says so.
  virtual void give(int peer, int tag, const Source& from, std::size_t bytes, Message& message) = 0;
};

/// Point-to-point messages among a group of ranks. One thread at a time uses one transport object.
///
/// Messages from one rank to another with equal tag arrive in the order they were sent. A message
/// is received by a receive of the same source and tag, never by another group's.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;                   ///< this rank, from 0
  virtual int size() const = 0;                   ///< ranks of the group
  virtual Capabilities capabilities() const = 0;  ///< the same at every call

  /// Starts to send `bytes` bytes, to any rank including this one. The buffer is read until test()
  /// returns true.
  virtual void isend(int peer, int tag, const void* data, std::size_t bytes, Message& message) = 0;
  /// Starts to receive at most `bytes` bytes; the buffer is written until test() returns true.
  virtual void irecv(int peer, int tag, void* data, std::size_t bytes, Message& message) = 0;
  /// Whether the message is complete; if so it is released, and `bytes` is the number that was
  /// sent. A receive may find fewer or more than its room (more: only the room was filled).
  /// Throws Error(transport) if the message failed; later ones of its peer and tag do not come.
  virtual bool test(Message& message, std::size_t& bytes) = 0;
  /// Gives up a message that is in flight and releases it. Where the transport cancels, its buffer
  /// is not touched any more; otherwise that holds only of a receive that nobody has sent to.
  virtual void cancel(Message& message) = 0;
  /// Advances messages in flight, without waiting.
  virtual void progress() = 0;
  /// The source of a message with this tag that has come and that no receive has taken; -1 if there
  /// is none. Only where Capabilities::probes; advances messages as progress() does.
  virtual int probe(int /*tag*/) { return -1; }
  /// Waits until something may have happened to this rank's messages, or the time has passed, and
  /// leaves the core to others. An event since idle() last returned ends it at once: a caller that
  /// tests all messages before each idle() misses nothing.
  virtual void idle(std::chrono::microseconds at_most) = 0;

  /// The transport of the ranks that give the same color, ordered by key, then by rank; null where
  /// color is negative. Collective: every rank of the group calls it. Throws Error(transport).
  virtual std::unique_ptr<Transport> split(int color, int key) = 0;
  /// The transport of these ranks, in this order. They alone call it, with equal arguments; the
  /// others may be dead. `number`, from 0 to 32767, differs from those of calls that are under way.
  /// Only where Capabilities::subgroups. Throws Error(transport).
  virtual std::unique_ptr<Transport> subgroup(const std::vector<int>& /*ranks*/, int /*number*/) {
    return nullptr;
  }
  /// Declares that messages may still come that nobody will receive, since this rank gives up
  /// operations of which others know nothing yet.
  virtual void expect_strays() {}

  /// Whether messages can still be sent: false after the library below was finalized.
  virtual bool alive() const { return true; }

  /// Optional part, owned by the transport; null where it has none.
  virtual BlockingCalls* blocking() { return nullptr; }
  /// Optional part, owned by the transport; null where it has none.
  virtual SingleCopy* single_copy() { return nullptr; }
  /// Optional part, owned by the transport; null where it has none.
  virtual Giving* giving() { return nullptr; }
};

/// Sends a message and waits for its end: by the transport's blocking calls if it has any, else by
/// isend(), test() and idle().
void send(Transport& transport, const OutgoingMessage& out);
/// Receives a message likewise. Returns the bytes that were sent.
std::size_t recv(Transport& transport, const IncomingMessage& in);
/// Both at once. Returns the bytes that were sent to this rank.
std::size_t send_recv(Transport& transport, const OutgoingMessage& out, const IncomingMessage& in);

}  // namespace baton
#pragma GCC visibility pop
