#pragma once
/// Computations of given duration: steps of a program, such as the work of one layer in a training
/// step.

#include <cstdint>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)
namespace baton {

/// Classes of computations; pictures have a colour for each.
enum class ComputationKind : std::uint8_t {
  forward,
  backward,         ///< the gradients by input and by weights
  backward_input,   ///< the gradient by the input
  backward_weight,  ///< the gradient by the weights
  optimizer,
  other
};
inline constexpr int computation_kind_count = 6;

/// "backward_input" and so on.
std::string_view name(ComputationKind kind);
/// The class of that name; throws Error(invalid_argument) that lists all.
ComputationKind computation_kind_named(std::string_view name);

/// What a rank computes for a given time, while its messages go on.
struct Computation {
  std::string name;  ///< for readers: "2F0"
  ComputationKind kind = ComputationKind::other;
  std::int64_t ns = 0;  ///< of the rank's processor
  /// Whether messages advance meanwhile, as by calls of progress() between its parts. Otherwise
  /// those that come wait for its end.
  bool advances = true;
  bool operator==(const Computation&) const = default;
};

}  // namespace baton
#pragma GCC visibility pop
