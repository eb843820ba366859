#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "baton/thread.hpp"
#include "baton/transport.hpp"
#include "exercise.hpp"

namespace baton::cli {

/// One rank's link to the others that owes nothing to the library under test: for starting
/// together, and agreeing on times, counts and errors. All functions but rank(), size() and
/// one_clock() are collective.
class World {
 public:
  virtual ~World() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Whether std::chrono::steady_clock is one clock for all ranks.
  virtual bool one_clock() const = 0;
  /// A transport of all ranks.
  virtual std::unique_ptr<Transport> transport() = 0;
  /// all = every rank's `mine` in rank order; `mine` has the same size everywhere.
  virtual void gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  /// Runs the exercise by the collectives that come with the transport, out of place; empty if
  /// there are none, or none for this exercise.
  virtual std::function<void()> built_in(const Exercise& exercise, const void* input,
                                         void* output) = 0;

  void barrier();
  double max(double value);
  double min(double value);
  std::int64_t sum(std::int64_t value);
  /// Whether all ranks have rank 0's value.
  bool equal(std::uint64_t value);
  /// The first text of any rank that is not empty, cut to some hundred bytes.
  std::string first(const std::string& text);
  /// Calls body(), in which no function of this class is called, on all ranks; if it throws on
  /// some, all throw the Error of the first of them.
  void together(const std::function<void()>& body);
};

/// Ranks are threads of this process, or, under a launcher, processes of MPI.
class Session {
 public:
  virtual ~Session() = default;

  /// This process's rank; 0 where ranks are threads.
  virtual int rank() const = 0;
  /// The number of ranks that the launcher has set; 0 where run() may choose.
  virtual int ranks() const = 0;
  /// "threads", "Open MPI v4.1.4"
  virtual std::string transport() const = 0;
  /// Calls body(world) on every rank. Ranks and `options` are those of threads only.
  virtual void run(int ranks, const ThreadOptions& options,
                   const std::function<void(World&)>& body) = 0;

  /// Of MPI if a launcher of MPI has started this process. Throws Error(unsupported) where that is
  /// so and this program has no MPI, or another one than the launcher.
  static std::unique_ptr<Session> start(int& argc, char**& argv);
};

/// This process's rank as its launcher has set it in the environment; 0 without a launcher.
int launcher_rank();

/// Null in a build without MPI.
std::unique_ptr<Session> mpi_session(int& argc, char**& argv);

}  // namespace baton::cli
