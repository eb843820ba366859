#pragma once
/// Computations that take the time of a given speed, and compute nothing: to see the messages of a
/// faster machine, or of more ranks than this one has cores.

#include <cstdint>

#include "ops/ops.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// A speed of computations.
struct EmulatedSpeed {
  double operations = 1;    ///< in a ns, of matrix products, convolutions and attention; a product
                            ///< and a sum are two
  double optimizer_ns = 0;  ///< of the optimizer, for a parameter
};

/// While this lives, the functions of ops/ops.hpp and the optimizers leave their results as they
/// are. This thread sleeps for the time of their products at that speed; other operations take no
/// time. Losses are 0, and new arrays are not set to zero. Messages are sent as usual; their values
/// mean nothing.
class EmulationScope {
 public:
  /// The speed is copied.
  explicit EmulationScope(const EmulatedSpeed& speed);
  ~EmulationScope();
  EmulationScope(const EmulationScope&) = delete;
  EmulationScope& operator=(const EmulationScope&) = delete;

 private:
  EmulatedSpeed speed_;
  const EmulatedSpeed* before_;
  std::int64_t owed_before_ = 0;  // ns
  int slack_ = 0;                 // of this thread's timers before, ns; 0: not changed
};

/// Whether this thread's computations are emulated.
bool emulates();
/// Lets the time of so many operations pass, where emulates(). Calls `meanwhile`, if there is one,
/// every 100 us; its time comes on top, as beside a computation.
void emulate(double operations, const Meanwhile& meanwhile = {});
/// Lets the time of an optimizer's step pass, where emulates().
void emulate_optimizer(std::int64_t parameters);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
