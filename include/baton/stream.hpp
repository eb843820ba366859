#pragma once
/// Collectives on a device's memory, in the order of its streams.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "baton/communicator.hpp"
#include "baton/device.hpp"
#include "baton/fused_transport.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// When calls return whose messages the host moves. Equal on all ranks.
enum class Returns : std::uint8_t {
  at_once,  ///< after enqueueing: the stream is held until the call is complete
  complete  ///< after completion: the calling thread moves the messages, no stream is held
};

/// A message of StreamCommunicator::exchange().
struct StreamMessage {
  bool send;           ///< from this rank, or to it
  void* data;          ///< in the device's memory; a send reads it
  std::int64_t count;  ///< elements
  Datatype type;
  int peer;
  Stream stream;
};

/// A group of ranks, each with a device, and the collectives among them on these devices' memory.
///
/// Every function of namespace `calls` is a member that takes a stream, too: name(…, stream,
/// choice).
///
/// A call is given to a stream and returns: what it does comes after all that the stream was given
/// before it and before all that it is given later, as for a kernel. A thread of the library's own
/// moves the messages meanwhile; the device is never synchronised. Calls in different streams run
/// side by side. Every rank makes the same calls in the same order, whatever their streams; one
/// thread at a time uses a communicator. Where ranks of one process have one device, or all ranks
/// are threads of one process, a call returns when all ranks have come to it, since their streams
/// may share hardware queues. With Returns::complete, a call returns when it is complete instead:
/// the calling thread moves its messages, no stream is held, and the call throws its own failure.
///
/// Buffers, shapes and choices are as for Communicator, and so are the results, to the bit. Errors:
/// Error(invalid_argument) before anything is sent where data is not in this device's memory, is
/// not aligned to its elements, or where a stream cannot be used (Device::check_stream());
/// Error(unsupported) for users' operations, which run on the host; Error(memory). What fails later
/// lets the stream go on, with undefined data, and is thrown by the next call or by synchronize();
/// after Error(transport, truncated, timeout, memory, device) the communicator refuses all others.
/// Options::trace records as for Communicator, except where messages go in fused groups.
class StreamCommunicator {
 public:
  /// Collective. The transport must take messages in the device's memory, and let a second thread
  /// use it (Capabilities::concurrent); device_transport() makes any one take such messages. Throws
  /// Error(unsupported) if it does not. Streams are held until calls are complete: ranks that share
  /// a CUDA device pass thread_fused_transport() to the next constructor instead (baton/cuda.hpp).
  ///
  /// Some CUDA calls behind a held stream, such as a copy to pageable memory, block the CUDA calls
  /// of all other threads. The library's are among them, so the stream is never released. Where a
  /// program may make such calls, pass Returns::complete; calls then wait for the stream's earlier
  /// work without a timeout. Throws Error(mismatch) where ranks pass different ones.
  StreamCommunicator(std::unique_ptr<Transport> transport, std::shared_ptr<Device> device,
                     Options options = Options::from_environment(),
                     Returns returns = Returns::at_once);
  /// Collective. Messages go in fused groups instead, and a call as a whole into the caller's
  /// stream, with the folds and copies between them: no thread, and nothing that waits on the host.
  /// Calls in different streams may run one after another. `host` serves to agree on options and to
  /// split, and, with Options::check, to compare calls, for which all before are waited for; the
  /// call then throws itself what ranks differ in. A peer that does not come holds the stream up
  /// until synchronize() finds it out, where Options::timeout is set, says who, and lets all
  /// streams go on. Streams live until their calls are complete. Throws Error(invalid_argument)
  /// where the two transports have not the same ranks.
  StreamCommunicator(std::unique_ptr<Transport> host, std::shared_ptr<Device> device,
                     std::unique_ptr<FusedTransport> fused,
                     Options options = Options::from_environment());
  StreamCommunicator(StreamCommunicator&&) noexcept;
  StreamCommunicator& operator=(StreamCommunicator&&) noexcept;
  /// Waits for what is under way.
  ~StreamCommunicator();

  int rank() const;        ///< this rank, from 0
  int size() const;        ///< ranks of the group
  Device& device() const;  ///< whose memory calls take
  /// Whether this is a communicator: false for an empty one of split().
  bool valid() const { return state_ != nullptr; }
  /// As Communicator::split(). Waits for what is under way.
  StreamCommunicator split(int color, int key = 0);

  /// As Communicator::set_name(). Waits for what is under way.
  void set_name(std::string_view name);
  /// The name.
  const std::string& name() const;

  /// The choice that a call would make. Throws what the call would for its data.
  Choice chosen(const Call& call);

  /// Gives a call to a stream. Lists that it refers to may go when this returns.
  void enqueue(const Call& call, Stream stream);
  /// Gives messages to their streams. All of them progress side by side, those of one stream, too;
  /// what the stream is given later comes after all of its messages. Only the ranks that send and
  /// receive call this. The k-th message that a rank gives for another is the k-th that the other
  /// expects of it, whatever their streams; both have the same number of bytes. A rank may send to
  /// itself. Throws Error(unsupported) where messages go in fused groups.
  ///
  /// No stream is held before `others_came()` returns true; empty: at once. It is asked again and
  /// again when all messages have their places in their streams, and must not use this
  /// communicator. Ranks whose streams may share hardware queues thereby wait for each other. With
  /// Returns::complete, which holds none, it is not asked.
  /// Throws Error(timeout) where it never does, and Error(transport) after abort(); the
  /// communicator then takes no more calls.
  void exchange(std::span<const StreamMessage> messages,
                const std::function<bool()>& others_came = {});

  // The collectives, given to a stream.
#define BATON_FORMS(name, parameters, arguments) \
  void name(BATON_LIST parameters Stream stream, const Choice& choice = {});
  BATON_COLLECTIVES(BATON_FORMS)
#undef BATON_FORMS

  /// Returns when all calls so far are complete. Throws what went wrong.
  void synchronize();
  /// Throws the first failure that nobody was told, or Error(transport) if the communicator refuses
  /// further calls. Waits for nothing.
  void check();
  /// Ends all calls under way: their streams go on, with undefined data. All later calls throw
  /// Error(transport) that says `why`. A call that waits in another thread throws Error(transport),
  /// too, except for split(), which this waits for, and for NCCL's calls without Options::timeout
  /// (baton/nccl.hpp). Any thread may call it.
  void abort(const std::string& why);

 private:
  explicit StreamCommunicator(std::shared_ptr<communicator::State> state);

  std::shared_ptr<communicator::State> state_;
};

}  // namespace baton
#pragma GCC visibility pop
