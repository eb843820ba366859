#pragma once
/// Ranks as a grid of named axes.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "baton/export.hpp"
#include "group.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

class BATON_HIDDEN Together;

/// A dimension of a mesh. Ranks along it differ in their samples, weights, positions or layers.
enum class Axis : std::uint8_t {
  dp,  ///< data: ranks have different samples
  tp,  ///< tensor: ranks have different parts of the weights
  sp,  ///< sequence: ranks have different positions
  pp,  ///< pipeline: ranks have different layers
};
inline constexpr int axis_count = 4;
/// "dp", "tp", "sp" or "pp".
std::string_view name(Axis axis);

/// A set of axes.
class Axes {
 public:
  /// None.
  constexpr Axes() = default;
  /// One.
  constexpr Axes(Axis axis) : bits_(1u << static_cast<unsigned>(axis)) {}  // NOLINT: a set of one
  /// Whether `axis` is one of them.
  constexpr bool has(Axis axis) const { return (bits_ & Axes(axis).bits_) != 0; }
  /// Whether there is none.
  constexpr bool empty() const { return bits_ == 0; }
  /// A bit for each axis, in the order of Axis.
  constexpr unsigned bits() const { return bits_; }
  /// The axes of either.
  friend constexpr Axes operator|(Axes a, Axes b) { return Axes(a.bits_ | b.bits_); }
  /// The axes of both.
  friend constexpr Axes operator&(Axes a, Axes b) { return Axes(a.bits_ & b.bits_); }
  bool operator==(const Axes&) const = default;

 private:
  constexpr explicit Axes(unsigned bits) : bits_(bits) {}
  unsigned bits_ = 0;
};
/// Both.
constexpr Axes operator|(Axis a, Axis b) { return Axes(a) | Axes(b); }
/// Those of all ranks of a mesh.
inline constexpr Axes all_axes = Axis::dp | Axis::tp | Axis::sp | Axis::pp;

/// A grid of ranks, and the communicators along its axes.
///
/// The last axis that is named varies fastest with the rank, so its ranks are neighbours.
class Mesh {
 public:
  /// A single rank.
  Mesh() = default;
  /// Collective. Throws Error(invalid_argument), on all ranks and before anything is sent, unless
  /// the sizes multiply to the communicator's. Axes that are not named have size 1.
  Mesh(Communicator& world, const std::vector<std::pair<Axis, int>>& axes);
  /// The same for ranks that have accelerators: `device` has the same ranks, for their memory.
  Mesh(Communicator& world, StreamCommunicator& device,
       const std::vector<std::pair<Axis, int>>& axes);

  int size(Axes axes) const;  ///< number of ranks along these axes
  /// This rank's index along an axis.
  int rank(Axis axis) const { return rank_[static_cast<std::size_t>(axis)]; }
  /// The ranks that differ from this one along these axes only; null if there is no other.
  Communicator* along(Axes axes) const { return group(axes).host; }
  /// The same ranks, with the communicator for accelerators.
  Group group(Axes axes) const;

 private:
  friend class Together;
  Mesh(Communicator& world, StreamCommunicator* device,
       const std::vector<std::pair<Axis, int>>& axes);
  Axes without_ones(Axes axes) const;
  std::string group_name(Axes axes) const;  ///< of this rank's group: "tp of dp 1"
  std::array<int, axis_count> size_{1, 1, 1, 1}, rank_{};
  struct Along {
    std::unique_ptr<Communicator> host;
    std::unique_ptr<StreamCommunicator> device;
  };
  std::map<unsigned, Along> along_;
  mutable std::shared_ptr<Together> together_;  // of pipelines; null: none yet
};

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
