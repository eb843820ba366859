#pragma once
/// Collectives among a group of ranks.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "baton/data.hpp"
#include "baton/export.hpp"
#include "baton/options.hpp"
#include "baton/timeline.hpp"
#include "baton/transport.hpp"

namespace BATON_API baton {

class Operation;

/// Everything that describes one collective call. Made by the functions in namespace `calls` or by
/// the members of Communicator; lists that it refers to must outlive its use.
struct Call {
  Collective collective = Collective::barrier;
  Op op;
  int root = 0;
  std::span<const ConstData> inputs{};  ///< tensors laid end to end, instead of `input`
  std::span<const Data> outputs{};      ///< likewise; without `inputs`, the call is in place
  ConstData input{};
  Data output{};
  bool tensor = false;  ///< shapes and dimensions apply
  Shape input_shape, output_shape;
  int scatter_dim = 0, gather_dim = 0;
  std::span<const std::int64_t> send_counts{}, send_offsets{}, recv_counts{}, recv_offsets{};
  /// Of gather and scatter: uneven counts that only the root knows; elsewhere they are not looked
  /// at. The algorithm is then the registry's first, whatever is chosen.
  bool counts_at_root = false;
  Choice choice{};
};

/// What a rank sends.
struct Traffic {
  std::int64_t messages = 0, bytes = 0;

  Traffic& operator+=(const Traffic& other) {
    messages += other.messages, bytes += other.bytes;
    return *this;
  }
  bool operator==(const Traffic&) const = default;
};

/// A collective under way. Movable; destroying one that is not complete waits for it.
class Request {
 public:
  Request();
  Request(Request&&) noexcept;
  Request& operator=(Request&&) noexcept;
  ~Request();

  /// Advances all operations of the communicator; whether this one is complete. Throws as wait().
  bool test();
  /// Whether test() would return true or throw at once. Advances nothing.
  bool done() const;
  /// Returns when this rank's part is complete: outputs may be read, inputs reused. Throws Error
  /// (mismatch, truncated, transport, timeout).
  void wait();

 private:
  friend class Communicator;
  friend class PersistentCall;
  friend class StreamCommunicator;
  struct Release {
    void operator()(Operation* operation) const;
  };
  explicit Request(std::unique_ptr<Operation, Release> operation);
  std::unique_ptr<Operation, Release> operation_;
};

/// A call with its plan and its buffers, to be started any number of times, one at a time.
class PersistentCall {
 public:
  PersistentCall();
  PersistentCall(PersistentCall&&) noexcept;
  PersistentCall& operator=(PersistentCall&&) noexcept;
  ~PersistentCall();
  void run();       ///< starts and waits
  Request start();  ///< the request must be complete before the next start

 private:
  friend class Communicator;
  struct State;
  std::unique_ptr<State> state_;
};

/// A group of ranks and the collectives among them.
///
/// Every rank of the group makes the same calls in the same order, nonblocking ones included. One
/// thread at a time uses a communicator; different communicators may be used by different threads
/// if the transport can (Capabilities::concurrent).
///
/// Errors, for all collectives: Error(invalid_argument) before anything is sent where a count,
/// shape, dimension, root, buffer, operation or algorithm does not fit; Error(mismatch) with
/// Options::check where ranks differ; Error(truncated, transport, timeout) while it runs. The first
/// two leave the communicator usable.
///
/// In place is where input and output are the same memory, as the table in schedule/problem.hpp
/// says; any other overlap of input and output is refused.
class Communicator {
 public:
  explicit Communicator(std::unique_ptr<Transport> transport,
                        Options options = Options::from_environment());
  /// With the options of `like`, which is a communicator on every rank. Sends nothing. `members`
  /// are its ranks as ranks of the communicator that records (start_recording()); empty: this one
  /// is not recorded.
  Communicator(std::unique_ptr<Transport> transport, const Communicator& like,
               std::vector<int> members = {});
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  ~Communicator();

  int rank() const;
  int size() const;
  const Options& options() const;
  const Registry& registry() const;
  Transport& transport() const;
  /// Which ranks share a host; null: all do.
  const std::shared_ptr<const Hosts>& hosts() const;

  /// The communicator of the ranks that give the same color, ordered by key, then by rank. A
  /// negative color gives an empty one (`!valid()`), of which nothing may be asked. Collective.
  Communicator split(int color, int key = 0);
  bool valid() const { return state_ != nullptr; }

  // --- collectives: shapes in elements; n is input.count unless said otherwise
  // ---------------------

  /// Every rank's `data` (n) equals root's.
  void broadcast(Data data, int root, const Choice& choice = {});
  /// output (n) of root = op over all ranks' inputs (n); elsewhere `output` is ignored.
  void reduce(ConstData input, Data output, Op op, int root, const Choice& choice = {});
  /// output (n) = op over all ranks' inputs (n).
  void all_reduce(ConstData input, Data output, Op op, const Choice& choice = {});
  void all_reduce(Data data, Op op, const Choice& choice = {}) {
    all_reduce(data, data, op, choice);
  }
  /// output (P·n) of root = all inputs (n) in rank order.
  void gather(ConstData input, Data output, int root, const Choice& choice = {});
  void gather_v(ConstData input, Data output, std::span<const std::int64_t> counts, int root,
                const Choice& choice = {});
  /// output (n) = block `rank` of root's input (P·n).
  void scatter(ConstData input, Data output, int root, const Choice& choice = {});
  void scatter_v(ConstData input, Data output, std::span<const std::int64_t> counts, int root,
                 const Choice& choice = {});
  /// output (P·n) = all inputs (n) in rank order.
  void all_gather(ConstData input, Data output, const Choice& choice = {});
  /// output = all inputs joined along `dim` (negative: from the end): [.., n, ..] -> [.., P·n, ..].
  void all_gather(const ConstTensor& input, const Tensor& output, int dim,
                  const Choice& choice = {});
  /// output (sum of counts, or placed at `offsets`) = all inputs (counts[rank]).
  void all_gather_v(ConstData input, Data output, std::span<const std::int64_t> counts,
                    std::span<const std::int64_t> offsets = {}, const Choice& choice = {});
  /// output (n) = op over all ranks of block `rank` of the inputs (P·n).
  void reduce_scatter(ConstData input, Data output, Op op, const Choice& choice = {});
  void reduce_scatter_v(ConstData input, Data output, std::span<const std::int64_t> counts, Op op,
                        const Choice& choice = {});
  /// Block j of output (P·n) = block `rank` of rank j's input (P·n).
  void all_to_all(ConstData input, Data output, const Choice& choice = {});
  /// input is cut into P parts along scatter_dim, part i goes to rank i, and the parts received are
  /// joined along gather_dim in rank order: [b, s/P, h, d], 2, 1 -> [b, s, h/P, d].
  void all_to_all(const ConstTensor& input, const Tensor& output, int scatter_dim, int gather_dim,
                  const Choice& choice = {});
  /// send_counts[i] elements at send_offsets[i] go to rank i; recv_counts[i] from rank i arrive at
  /// recv_offsets[i]. Without offsets, blocks lie end to end.
  void all_to_all_v(ConstData input, std::span<const std::int64_t> send_counts, Data output,
                    std::span<const std::int64_t> recv_counts,
                    std::span<const std::int64_t> send_offsets = {},
                    std::span<const std::int64_t> recv_offsets = {}, const Choice& choice = {});
  /// output (n) = op over the inputs (n) of ranks 0 … rank.
  void scan(ConstData input, Data output, Op op, const Choice& choice = {});
  /// output (n) = op over the inputs (n) of ranks 0 … rank - 1; untouched on rank 0.
  void exscan(ConstData input, Data output, Op op, const Choice& choice = {});
  /// Returns when every rank has called it.
  void barrier(const Choice& choice = {});

  /// Several tensors, in place, as one message stream.
  void broadcast(std::span<const Data> tensors, int root, const Choice& choice = {});
  void all_reduce(std::span<const Data> tensors, Op op, const Choice& choice = {});

  // --- the same, nonblocking: any number may be under way, started in the same order everywhere
  // -----

  Request start_broadcast(Data data, int root, const Choice& choice = {});
  Request start_reduce(ConstData input, Data output, Op op, int root, const Choice& choice = {});
  Request start_all_reduce(ConstData input, Data output, Op op, const Choice& choice = {});
  Request start_all_reduce(Data data, Op op, const Choice& choice = {});
  Request start_all_reduce(std::span<const Data> tensors, Op op, const Choice& choice = {});
  Request start_gather(ConstData input, Data output, int root, const Choice& choice = {});
  Request start_scatter(ConstData input, Data output, int root, const Choice& choice = {});
  Request start_all_gather(ConstData input, Data output, const Choice& choice = {});
  Request start_reduce_scatter(ConstData input, Data output, Op op, const Choice& choice = {});
  Request start_all_to_all(ConstData input, Data output, const Choice& choice = {});
  Request start_all_to_all(const ConstTensor& input, const Tensor& output, int scatter_dim,
                           int gather_dim, const Choice& choice = {});
  Request start_scan(ConstData input, Data output, Op op, const Choice& choice = {});
  Request start_exscan(ConstData input, Data output, Op op, const Choice& choice = {});
  Request start_barrier(const Choice& choice = {});

  // --- any call, by description
  // ---------------------------------------------------------------------

  void run(const Call& call);
  Request start(const Call& call);
  /// Plans once, for many starts on the same buffers.
  PersistentCall plan(const Call& call);
  /// Runs a schedule that no registry knows: every rank gives its own part of it. Input and output
  /// must have the sizes that the schedule's header states. It is run as it is; verify() it first.
  void run(const Schedule& schedule, ConstData input, Data output, Op op = sum);
  /// The schedule that `call` would run, before it is cut into segments; and the choice made.
  Schedule schedule(const Call& call);
  Choice chosen(const Call& call);
  /// What this rank sends in `call`, cut into segments and all; Options::check sends more.
  Traffic traffic(const Call& call);

  // --- point to point
  // -------------------------------------------------------------------------------

  /// Messages of equal tag (0 to 1023) between two ranks arrive in order.
  void send(ConstData data, int peer, int tag = 0);
  void recv(Data data, int peer, int tag = 0);
  Request start_send(ConstData data, int peer, int tag = 0);
  Request start_recv(Data data, int peer, int tag = 0);

  /// Advances all operations under way; for callers that compute meanwhile.
  void progress();

  // --- recording
  // ------------------------------------------------------------------------------------

  /// From now on the times of every step of every collective are recorded, also on communicators
  /// that are split from this one while it records; messages of send() and recv() are not. Each
  /// rank keeps its last `events` events (40 B each) and counts what it had to drop; an event costs
  /// less than 100 ns. The clocks of ranks that have not the same are compared with rank 0's.
  /// Collective. With Options::trace it is called when the communicator is made.
  void start_recording(std::int64_t events = 1 << 18);
  /// Ends it; clocks are compared again. On rank 0 all that was recorded, elsewhere nothing.
  /// Collective. Throws Error(timeout) where ranks do not take part, Error(invalid_argument) where
  /// nothing is being recorded.
  Timeline stop_recording();
  /// The same, and rank 0 writes it to a file (see lib/trace/README.md), which read_trace() reads.
  /// Throws Error(invalid_argument) on all ranks where the file cannot be written. With
  /// Options::trace, destroying the communicator does this unless it was done before, and is
  /// collective then; ranks whose peers do not come, because of an error or the end of MPI, write
  /// their own parts to FILE.rank0 and so on, after Options::timeout, or a minute without one.
  void stop_recording(const std::string& file);
  /// Whether start_recording() was called on this communicator, and stop_recording() was not.
  bool recording() const;

 private:
  friend class Request;
  friend class PersistentCall;
  friend class StreamCommunicator;
  friend class Operation;
  struct State;
  explicit Communicator(std::shared_ptr<State> state);
  Request start_message(StepKind kind, Data data, int peer, int tag);
  std::shared_ptr<State> state_;
};

/// Descriptions of calls, for Communicator::run, start and plan.
namespace calls {
Call broadcast(Data data, int root);
Call reduce(ConstData input, Data output, Op op, int root);
Call all_reduce(ConstData input, Data output, Op op);
Call gather(ConstData input, Data output, int root);
Call scatter(ConstData input, Data output, int root);
Call all_gather(ConstData input, Data output);
Call all_gather(const ConstTensor& input, const Tensor& output, int dim);
Call reduce_scatter(ConstData input, Data output, Op op);
Call all_to_all(ConstData input, Data output);
Call all_to_all(const ConstTensor& input, const Tensor& output, int scatter_dim, int gather_dim);
Call scan(ConstData input, Data output, Op op);
Call exscan(ConstData input, Data output, Op op);
Call barrier();
}  // namespace calls

}  // namespace baton
