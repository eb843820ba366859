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
#include <tuple>
#include <type_traits>
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

/// `large`: of MPI 4, with large counts.
enum class Form { blocking, nonblocking, large, large_nonblocking };
#if MPI_VERSION >= 4
inline constexpr Form forms[] = {Form::blocking, Form::nonblocking, Form::large,
                                 Form::large_nonblocking};
#else
inline constexpr Form forms[] = {Form::blocking, Form::nonblocking};
#endif
std::string_view name_of(Form form);
constexpr bool blocks(Form form) { return form == Form::blocking || form == Form::large; }

/// An argument as a parameter of a large form; lists of `size` ints become lists of its numbers.
template <class Parameter>
struct Enlarged {
  template <class Argument>
  Enlarged(Argument argument, int) : value(argument) {}
  Parameter get() const { return value; }
  Parameter value;
};
template <class Number>
requires(std::is_integral_v<Number> &&
         sizeof(Number) == sizeof(MPI_Count)) struct Enlarged<const Number*> {
  Enlarged(const int* list, int size) : null(!list) {
    if (list) values.assign(list, list + size);
  }
  const Number* get() const { return null ? nullptr : values.data(); }
  bool null;
  std::vector<Number> values;
};

/// Calls a large form with the arguments of the other form and, if there is a request, waits.
template <class... Parameters, class... Arguments>
int call_large(int (*function)(Parameters...), MPI_Request* request, int size,
               Arguments... arguments) {
  std::tuple<Enlarged<Parameters>...> enlarged(Enlarged<Parameters>(arguments, size)...);
  const int code =
      std::apply([&](const auto&... each) { return function(each.get()...); }, enlarged);
  return request && code == MPI_SUCCESS ? MPI_Wait(request, MPI_STATUS_IGNORE) : code;
}

/// A collective in all its forms; the nonblocking ones are waited for.
template <class Blocking, class Nonblocking, class Large = void, class LargeNonblocking = void>
struct Collective {
  Blocking* blocking;
  Nonblocking* nonblocking;
  Large* large = nullptr;
  LargeNonblocking* large_nonblocking = nullptr;

  template <class... Arguments>
  int operator()(Form form, Arguments... arguments) const {
    MPI_Request request = MPI_REQUEST_NULL;
    if constexpr (!std::is_void_v<Large>) {
      const int size = size_of(std::get<sizeof...(Arguments) - 1>(std::tuple(arguments...)));
      if (form == Form::large) return call_large(large, nullptr, size, arguments...);
      if (form == Form::large_nonblocking)
        return call_large(large_nonblocking, &request, size, arguments..., &request);
    }
    if (blocks(form)) return blocking(arguments...);
    const int started = nonblocking(arguments..., &request);
    return started != MPI_SUCCESS ? started : MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
};
template <class Blocking, class Nonblocking>
Collective(Blocking*, Nonblocking*) -> Collective<Blocking, Nonblocking>;
template <class Blocking, class Nonblocking, class Large, class LargeNonblocking>
Collective(Blocking*, Nonblocking*, Large*, LargeNonblocking*)
    -> Collective<Blocking, Nonblocking, Large, LargeNonblocking>;

#if MPI_VERSION >= 4
#define FORMS(name, nonblocking) \
  { MPI_##name, MPI_##nonblocking, MPI_##name##_c, MPI_##nonblocking##_c }
#else
#define FORMS(name, nonblocking) \
  { MPI_##name, MPI_##nonblocking }
#endif
inline constexpr Collective barrier{MPI_Barrier, MPI_Ibarrier};
inline constexpr Collective bcast FORMS(Bcast, Ibcast);
inline constexpr Collective gather FORMS(Gather, Igather);
inline constexpr Collective gatherv FORMS(Gatherv, Igatherv);
inline constexpr Collective scatter FORMS(Scatter, Iscatter);
inline constexpr Collective scatterv FORMS(Scatterv, Iscatterv);
inline constexpr Collective allgather FORMS(Allgather, Iallgather);
inline constexpr Collective allgatherv FORMS(Allgatherv, Iallgatherv);
inline constexpr Collective alltoall FORMS(Alltoall, Ialltoall);
inline constexpr Collective alltoallv FORMS(Alltoallv, Ialltoallv);
inline constexpr Collective alltoallw FORMS(Alltoallw, Ialltoallw);
inline constexpr Collective reduce FORMS(Reduce, Ireduce);
inline constexpr Collective allreduce FORMS(Allreduce, Iallreduce);
inline constexpr Collective reduce_scatter FORMS(Reduce_scatter, Ireduce_scatter);
inline constexpr Collective reduce_scatter_block FORMS(Reduce_scatter_block, Ireduce_scatter_block);
inline constexpr Collective scan FORMS(Scan, Iscan);
inline constexpr Collective exscan FORMS(Exscan, Iexscan);
#undef FORMS

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
