#pragma once
/// The drop-in between MPI_Init and MPI_Finalize.

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "../../base/backoff.hpp"
#include "baton/error.hpp"
#include "datatype.hpp"
#include "function.hpp"
#include "group.hpp"
#include "pending.hpp"
#include "settings.hpp"
#include "stats.hpp"

namespace baton::pmpi {

/// The drop-in's state. There is one, since MPI is one per process; interposed functions get it by
/// now(). As thread-safe as MPI's thread level.
class DropIn {
 public:
  /// Null before MPI_Init, after MPI_Finalize, and if the drop-in is off.
  static DropIn* now() { return now_; }
  /// Call this after MPI is initialised and before it is finalised. Collective over MPI_COMM_WORLD.
  static void open();
  static void close();

  bool takes(Function function) const {
    return settings_.blocking[static_cast<std::size_t>(function)];
  }
  bool takes_nonblocking(Function function) const {
    return settings_.nonblocking[static_cast<std::size_t>(function)];
  }
  /// Whether operations of ours can be under way while the program runs on.
  bool can_be_pending() const { return settings_.nonblocking.any(); }

  /// Whether the program has made persistent collectives.
  bool has_persistent() const { return persistent_.load(std::memory_order_relaxed); }
  void note_persistent() { persistent_.store(true, std::memory_order_relaxed); }

  // --- communicators -------------------------------------------------------------------------

  /// The group of the program's communicator, valid for the communicator's lifetime; null if it has
  /// none.
  const std::shared_ptr<Group>* group(MPI_Comm comm) const;
  /// Gives a new communicator of the program a group, if a private communicator is left. Does
  /// nothing on a rank that got MPI_COMM_NULL. Collective over `comm`. `like`: the group that
  /// contains all ranks of the new one, if any; calls that are under way at once within one have
  /// different numbers, from 0 to 32767.
  void attach(MPI_Comm comm, const Group* like, int number = 0);
  /// The same for a communicator with the same ranks as `like`. `own` is its private communicator,
  /// which carries its messages. Sends nothing.
  void attach(MPI_Comm comm, MPI_Comm own, const Group& like);
  /// A communicator's ranks as ranks of MPI_COMM_WORLD; empty if nothing is recorded, or some ranks
  /// are outside it.
  std::vector<int> members(MPI_Comm comm) const;

  /// Keeps the group of a window or a file during its lifetime.
  void remember(MPI_Win win, std::shared_ptr<Group> group);
  void remember(MPI_File file, std::shared_ptr<Group> group);
  std::shared_ptr<Group> group_of(MPI_Win win) { return found(windows_, win); }
  std::shared_ptr<Group> group_of(MPI_File file) { return found(files_, file); }
  void forget(MPI_Win win);
  void forget(MPI_File file);

  // --- operations under way ------------------------------------------------------------------

  /// Whether a waiting call must advance operations.
  bool must_advance() const {
    return pending_count_.load(std::memory_order_relaxed) > 0 || threads_;
  }
  /// Whether a request of ours may have failed, or may fail during a call.
  bool can_fail() const { return must_advance() || failed_.load(std::memory_order_relaxed); }
  bool pending() const { return pending_count_.load(std::memory_order_relaxed) > 0; }
  /// Advances all operations under way; true if any completed.
  bool advance();
  /// Makes a generalized request for a started operation.
  int add(std::unique_ptr<Pending> pending, MPI_Request* request);
  /// Advances until done() returns true.
  template <class Done>
  void until(const Done& done);

  /// MPI_Op_free and MPI_Type_free. Delayed if an operation under way needs the handle.
  int free_op(MPI_Op* op);
  int free_type(MPI_Datatype* type);
  void keep(MPI_Op op, MPI_Datatype type);
  void release(MPI_Op op, MPI_Datatype type);

  Datatypes& datatypes() { return *datatypes_; }
  Stats* stats() { return settings_.stats ? &stats_ : nullptr; }
  /// Whether ranks of this host must share cores.
  bool crowded() const { return crowded_; }
  /// Locks a group's mutex, if several threads may use the group.
  std::unique_lock<std::mutex> use(Group& group) const {
    return threads_ ? std::unique_lock(group.mutex) : std::unique_lock<std::mutex>();
  }

 private:
  explicit DropIn(const Settings& settings) : settings_(settings) {}
  ~DropIn();
  static int drop_group(MPI_Comm comm, int keyval, void* group, void* self);
  void hang(MPI_Comm comm, std::shared_ptr<Group> group);
  void hang(MPI_Comm comm, std::unique_ptr<Transport> transport, MPI_Comm own, const Group& like);

  template <class Handle>
  using Groups = std::unordered_map<Handle, std::shared_ptr<Group>>;
  template <class Handle>
  std::shared_ptr<Group> found(const Groups<Handle>& groups, Handle handle) {
    const std::lock_guard lock(uses_mutex_);
    const auto entry = groups.find(handle);
    return entry != groups.end() ? entry->second : nullptr;
  }
  struct Uses {
    int count = 0;
    bool freed = false;
  };

  static DropIn* now_;
  static std::atomic<unsigned> epoch_;  // changes when a communicator loses its group
  const Settings settings_;
  bool threads_ = false;  // MPI_THREAD_MULTIPLE
  bool crowded_ = false;
  int keyval_ = MPI_KEYVAL_INVALID;
  std::unique_ptr<Datatypes> datatypes_;
  Stats stats_;
  std::mutex pending_mutex_;
  std::vector<std::unique_ptr<Pending>> pending_;
  std::atomic<int> pending_count_{0};
  std::atomic<bool> persistent_{false};
  std::atomic<bool> failed_{false};  // whether an operation has failed
  std::mutex uses_mutex_;
  std::unordered_map<MPI_Op, Uses> op_uses_;
  std::unordered_map<MPI_Datatype, Uses> type_uses_;
  Groups<MPI_Win> windows_;
  Groups<MPI_File> files_;
};

template <class Done>
void DropIn::until(const Done& done) {
  auto backoff = base::Backoff::of_rank(crowded_);
  while (!done()) {
    if (advance())
      backoff.reset();
    else
      backoff.wait();
  }
}

/// If errors on the program's communicator end the program: writes the sentence to standard error,
/// once where several ranks have the same, and gives the launcher time to read it. The MPI
/// library's own text may be lost when several ranks end the program at once.
void report_if_fatal(const Group& group, std::string_view sentence);
/// An MPI error code of the matching class, with the error's sentence. Reports it if it is fatal.
int code_of(const Error& error, const Group& group);
/// Calls the error handler of `comm` and returns the code; does nothing for MPI_SUCCESS.
int raise(MPI_Comm comm, int code);
/// The same on the program's communicator, also after it was freed.
int raise(Group& group, int code);

}  // namespace baton::pmpi
