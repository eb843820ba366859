#pragma once
/// A communicator of NCCL's interface, as tests see it: those of its ranks that this process has.

#include <doctest/doctest.h>
#include <nccl.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "baton/types.hpp"
#include "stand_in_platform.hpp"

namespace nccl_stand_in {

inline void ok(ncclResult_t result) {
  CHECK_MESSAGE(result == ncclSuccess, std::string(ncclGetLastError(nullptr)));
}
/// The call failed by this code, with a sentence that has these parts.
void failed(ncclResult_t found, ncclResult_t expected, const std::vector<std::string>& parts,
            ncclComm_t comm = nullptr);

using Bytes = std::vector<std::byte>;

/// One rank: its communicator, device and stream.
struct Rank {
  ncclComm_t comm = nullptr;
  int rank = 0, device = 0;
  cudaStream_t stream = nullptr;

  support::StandInDevice& on() const { return nccl_stand_in::device(device); }
  std::byte* put(const Bytes& bytes) const;
  Bytes got(const void* at, std::size_t bytes) const;
  void free(void* memory) const { on().free(static_cast<std::byte*>(memory)); }
  void synchronize() const { on().synchronize(stream); }
};

/// How ranks are spread over processes, and an identifier that all of them know.
struct Layout {
  int process = 0, processes = 1, ranks_each = 1;
  /// The next identifier; every process calls it equally often.
  std::function<ncclUniqueId()> identifier;
  /// All processes meet. After World::meet() some may still be in its call, which another's abort
  /// would end.
  std::function<void()> meet;
  std::string folder;  ///< of all processes

  int size() const { return processes * ranks_each; }
};

class World {
 public:
  /// Initialises the ranks in a group. Rank r is on device r modulo their number. `name`: the
  /// communicator's.
  explicit World(const Layout& layout, const char* name = nullptr);
  /// Adopts communicators.
  World(int size, std::vector<Rank> own) : size_(size), own_(std::move(own)) {}
  /// Destroys the communicators, one after the other.
  ~World();
  World(World&& other) noexcept : size_(other.size_), own_(std::move(other.own_)) {}
  World& operator=(World&&) = delete;

  int size() const { return size_; }
  std::vector<Rank>& own() { return own_; }
  /// Calls it for each rank of this process, in a group.
  void together(const std::function<ncclResult_t(Rank&)>& call);
  void each(const std::function<void(Rank&)>& body) {
    for (Rank& rank : own_) body(rank);
  }
  void synchronize() {
    each([](const Rank& rank) { rank.synchronize(); });
  }
  /// Returns when all ranks have come here.
  void meet();

 private:
  int size_;
  std::vector<Rank> own_;
};

/// `count` small numbers of a rank, exact in every datatype.
Bytes numbers(baton::Datatype type, std::size_t count, int rank);
baton::Datatype datatype_of(ncclDataType_t type);

// What programs of NCCL's rely on; each begins with a new communicator.
void every_collective(const Layout& layout);
void every_datatype_and_op(const Layout& layout);
void refused_first(const Layout& layout);
void messages(const Layout& layout);
void lone_messages(const Layout& layout);
void several_streams(const Layout& layout);
void to_oneself(const Layout& layout);
void scaled_sums(const Layout& layout);
void scalings_come_and_go(const Layout& layout);
void parts(const Layout& layout);
void groups(const Layout& layout);
void aborted(const Layout& layout);
void overtaken(const Layout& layout);
void scaled_inputs_outlive(const Layout& layout);
void revoked(const Layout& layout);
void without_threads(const Layout& layout);
void without_memory(const Layout& layout);
void failures(const Layout& layout);
void named(const Layout& layout);
void wrong_arguments(const Layout& layout);
void services(const Layout& layout);
void recorded(const Layout& layout);
/// Leaves communicators, one of them with a call that never completes: the program ends all the
/// same.
void left_behind(const Layout& layout);

}  // namespace nccl_stand_in
