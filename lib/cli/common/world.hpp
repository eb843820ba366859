#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "baton/launch.hpp"
#include "baton/transport.hpp"
#include "case.hpp"

namespace baton::cli {

/// A collective that comes with the transport, with its buffers.
struct BuiltIn {
  std::string name;  ///< as its library calls it
  std::function<void()> run;
};

/// The names by which MPI's collectives are called: the library's own (PMPI_…), or those of
/// programs (MPI_…), which a drop-in may have taken over.
enum class Entry : std::uint8_t { library, program };

/// Messages of the transport itself, past the library under test: what its limits are measured by.
/// Each function returns when this rank's messages are complete; buffers are made beforehand.
class PlainMessages {
 public:
  virtual ~PlainMessages() = default;
  virtual void reserve(std::size_t bytes) = 0;  ///< for what one call sends or receives
  virtual void send(int to, std::size_t bytes) = 0;
  virtual void recv(int from, std::size_t bytes) = 0;
  /// `window` messages of `bytes` to one rank while as many arrive from another; -1: no rank.
  virtual void exchange(int to, int from, std::size_t bytes, int window) = 0;
  /// Receives `messages` from a rank; returns the seconds that posting the receives took.
  virtual double posting(int from, std::size_t bytes, int messages) = 0;
  /// Waits for all ranks, asleep rather than polling.
  virtual void sleepy_barrier() = 0;
  /// Messages between two ranks, there and back, `trips` times: seconds one way on the first of
  /// them; 0 on `rank` if it is another.
  double ping_pong(int rank, int first, int second, std::size_t bytes, int trips);
};

/// One rank's link to the others that owes nothing to the library under test: for starting
/// together, and agreeing on times, counts and errors. All functions but rank(), size(),
/// host…() and one_clock() are collective.
class World {
 public:
  virtual ~World() = default;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(hosts_.size()); }
  /// The host of each rank: 0 is rank 0's, then as they first appear.
  const std::vector<int>& hosts() const { return hosts_; }
  int host_of(int rank) const { return hosts_[static_cast<std::size_t>(rank)]; }
  int host_count() const;
  /// A transport of all ranks.
  virtual std::unique_ptr<Transport> transport() = 0;
  /// all = every rank's `mine` in rank order; `mine` has the same size everywhere.
  virtual void gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  /// The case by the collectives that come with the transport, out of place: first the one
  /// that one would call, then what else does the same. Empty if there are none. Collective.
  virtual std::vector<BuiltIn> built_ins(const Case& subject, const void* input, void* output,
                                         Entry entry = Entry::library);
  /// Null if there are none.
  virtual std::unique_ptr<PlainMessages> plain_messages() { return nullptr; }

  /// Whether std::chrono::steady_clock is one clock for all ranks.
  bool one_clock() const;
  void barrier();
  double max(double value);
  std::int64_t sum(std::int64_t value);
  /// Whether all ranks have rank 0's value.
  bool equal(std::uint64_t value);
  /// The first text of any rank that is not empty, cut to some hundred bytes.
  std::string first(const std::string& text);
  /// Every rank's text in rank order, each cut to some hundred bytes.
  std::vector<std::string> texts(const std::string& text);
  /// Calls body(), in which no function of this class is called, on all ranks; if it throws on
  /// some, all throw the Error of the first of them.
  void together(const std::function<void()>& body);

 protected:
  /// `hosts`: of each rank; none: all on one.
  World(int rank, int size, std::vector<int> hosts = {});

  int rank_;
  std::vector<int> hosts_;
};

/// Seconds of std::chrono::steady_clock.
double now();

/// Calls body(world) on every rank of this process: `ranks` threads, or the one that an MPI
/// launcher has started. `options` are those of threads.
void on_ranks(Launch& launch, int ranks, const ThreadOptions& options,
              const std::function<void(World&)>& body);

/// Calls body(world) on `ranks` threads of this process; returns when all have returned.
void run_as_threads(int ranks, const ThreadOptions& options,
                    const std::function<void(World&)>& body);

/// This process among those of MPI, with its transport.
std::unique_ptr<World> mpi_world(std::unique_ptr<Transport> transport);
/// The case by the MPI library's own collectives, out of place: as one would call them, so with
/// derived datatypes where data is strided. Of several, the one that one would call is the first.
/// Empty where MPI has none: reductions of 8- and 16-bit floats, counts beyond int. Call it on all
/// ranks in the same order. Each may be run, on all ranks, any number of times, before MPI is
/// finalised.
std::vector<BuiltIn> mpi_built_ins(const Case& subject, int rank, const void* input, void* output,
                                   Entry entry);
/// Throws Error(transport) unless `code` is MPI_SUCCESS.
void mpi_checked(int code, const char* function);
/// The MPI library's description of itself; empty in a build without MPI.
std::string mpi_library();

}  // namespace baton::cli
