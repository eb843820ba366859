#pragma once
/// The collectives by name.

#include <cstdint>
#include <string_view>

#pragma GCC visibility push(default)
namespace baton {

/// The collectives; calls.hpp has their contracts.
enum class Collective : std::uint8_t {
  broadcast,
  reduce,
  all_reduce,
  gather,
  scatter,
  all_gather,
  reduce_scatter,
  all_to_all,
  scan,
  exscan,
  barrier,
  program  ///< no collective: a schedule of computations and messages, such as a training step
};
inline constexpr int collective_count = 11;  ///< without program

/// "all_reduce" and so on.
std::string_view name(Collective collective);
/// The collective of that name, not program; throws Error(invalid_argument) that lists those that
/// exist.
Collective collective_named(std::string_view name);
bool rooted(Collective collective);    ///< whether the collective has a root
bool reducing(Collective collective);  ///< whether the collective applies an op
/// gather and all_gather: only the output has a block for each rank.
bool gathering(Collective collective);
/// scatter and reduce_scatter: only the input has a block for each rank.
bool scattering(Collective collective);

}  // namespace baton
#pragma GCC visibility pop
