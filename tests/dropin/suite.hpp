#pragma once
/// What the programs of this folder share: named cases, checks, and a digest of all ranks' results.

#include <mpi.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dropin {

int rank_in(MPI_Comm communicator);
int size_of(MPI_Comm communicator);

/// A number that depends on all of its arguments and on nothing else.
std::uint64_t mixed(std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0);

/// What one rank saw in one case: a digest of its results, and whether they were those expected.
class Results {
 public:
  void add(const void* data, std::size_t bytes);
  void add(std::int64_t value) { add(&value, sizeof value); }

  /// Adds `found` to the digest; a failure unless it is `expected`.
  void expect(std::int64_t found, std::int64_t expected, const std::string& what);
  void expect(std::span<const std::byte> found, std::span<const std::byte> expected,
              const std::string& what);
  template <class T>
  void expect(const std::vector<T>& found, const std::vector<T>& expected,
              const std::string& what) {
    expect(std::as_bytes(std::span(found)), std::as_bytes(std::span(expected)), what);
  }

  /// The call returned MPI_SUCCESS.
  void succeeds(int code, const std::string& what) { expect(code, MPI_SUCCESS, what); }

  /// Adds what another thread saw.
  void add(const Results& other);

  std::uint64_t digest() const { return digest_; }
  const std::string& failure() const { return failure_; }  ///< the first one; empty if none

 private:
  void fail(const std::string& failure);
  std::uint64_t digest_ = 14695981039346656037u;
  std::string failure_;
};

/// Runs cases on all ranks of MPI_COMM_WORLD; rank 0 prints a line for each.
class Suite {
 public:
  /// `seconds`: a case that takes longer ends the program and is named.
  explicit Suite(unsigned seconds, bool under_drop_in = false);

  /// Prints `name` and a digest of what all ranks saw, carried to rank 0 point to point; failures
  /// are printed by the rank that saw them. Profiling is on meanwhile (MPI_Pcontrol).
  void run(const std::string& name, const std::function<void(Results&)>& body);
  /// The same for what MPI promises but not every MPI library keeps: under a drop-in only, and the
  /// line says so.
  void run_beyond_library(const std::string& name, const std::function<void(Results&)>& body);

  int rank() const { return rank_; }
  int size() const { return size_; }
  int exit_code() const { return failed_ ? 1 : 0; }

 private:
  unsigned seconds_;
  bool under_drop_in_;
  int rank_, size_;
  bool failed_ = false;
};

/// Profiling is off while it lives: for calls that are not collectives of the program.
struct Unprofiled {
  Unprofiled() { MPI_Pcontrol(0); }
  ~Unprofiled() { MPI_Pcontrol(1); }
  Unprofiled(const Unprofiled&) = delete;
  Unprofiled& operator=(const Unprofiled&) = delete;
};

enum class Form { blocking, nonblocking };
inline constexpr Form forms[] = {Form::blocking, Form::nonblocking};
std::string_view name_of(Form form);

/// A collective in both of its forms; the nonblocking one is waited for.
template <class Blocking, class Nonblocking>
struct Collective {
  Blocking* blocking;
  Nonblocking* nonblocking;

  template <class... Arguments>
  int operator()(Form form, Arguments... arguments) const {
    if (form == Form::blocking) return blocking(arguments...);
    MPI_Request request = MPI_REQUEST_NULL;
    const int started = nonblocking(arguments..., &request);
    return started != MPI_SUCCESS ? started : MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
};
template <class Blocking, class Nonblocking>
Collective(Blocking*, Nonblocking*) -> Collective<Blocking, Nonblocking>;

inline constexpr Collective barrier{MPI_Barrier, MPI_Ibarrier};
inline constexpr Collective bcast{MPI_Bcast, MPI_Ibcast};
inline constexpr Collective gather{MPI_Gather, MPI_Igather};
inline constexpr Collective gatherv{MPI_Gatherv, MPI_Igatherv};
inline constexpr Collective scatter{MPI_Scatter, MPI_Iscatter};
inline constexpr Collective scatterv{MPI_Scatterv, MPI_Iscatterv};
inline constexpr Collective allgather{MPI_Allgather, MPI_Iallgather};
inline constexpr Collective allgatherv{MPI_Allgatherv, MPI_Iallgatherv};
inline constexpr Collective alltoall{MPI_Alltoall, MPI_Ialltoall};
inline constexpr Collective alltoallv{MPI_Alltoallv, MPI_Ialltoallv};
inline constexpr Collective reduce{MPI_Reduce, MPI_Ireduce};
inline constexpr Collective allreduce{MPI_Allreduce, MPI_Iallreduce};
inline constexpr Collective reduce_scatter{MPI_Reduce_scatter, MPI_Ireduce_scatter};
inline constexpr Collective reduce_scatter_block{MPI_Reduce_scatter_block,
                                                 MPI_Ireduce_scatter_block};
inline constexpr Collective scan{MPI_Scan, MPI_Iscan};
inline constexpr Collective exscan{MPI_Exscan, MPI_Iexscan};

/// Nonblocking calls under way, and what is to be checked when all have ended.
class Pending {
 public:
  /// Where the call puts its request; `check` keeps the call's buffers alive.
  MPI_Request* add(std::function<void()> check);
  void complete(Results& results);

 private:
  std::deque<MPI_Request> requests_;
  std::vector<std::function<void()>> checks_;
};

/// Elements between guards that no call may touch.
template <class T>
class Buffer {
 public:
  static constexpr std::size_t guard = 3;
  explicit Buffer(std::size_t count, T fill = untouched()) : all_(count + 2 * guard, fill) {
    for (std::size_t i = 0; i < guard; ++i) all_[i] = all_[guard + count + i] = untouched();
  }
  T* data() { return all_.data() + guard; }
  T& operator[](std::size_t i) { return all_[guard + i]; }
  std::size_t size() const { return all_.size() - 2 * guard; }
  /// All of it, guards included.
  operator std::span<const std::byte>() const {  // NOLINT: free
    return std::as_bytes(std::span(all_));
  }

  static T untouched() {
    T value;
    std::memset(&value, 0xA5, sizeof value);
    return value;
  }

 private:
  std::vector<T> all_;
};

}  // namespace dropin
