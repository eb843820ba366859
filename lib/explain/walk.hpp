#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "../schedule/matching.hpp"
#include "baton/schedule.hpp"
#include "baton/types.hpp"

namespace baton::explaining {

/// An element; none if undefined.
using Value = std::optional<double>;

/// All ranks of a collective, run one step at a time on doubles. A step runs after its
/// dependencies, a receive also after its send. Sends are buffered.
class Walk {
 public:
  /// Throws Error(invalid_argument) if schedules of ranks are missing, if messages do not match, if
  /// regions lie outside their buffers, or if the schedules are too large for people to read.
  Walk(std::span<const Schedule> schedules, OpKind op);

  std::vector<Value>& buffer(int rank, Buffer buffer);

  /// Runs a step after everything that it needs; calls `visit(rank, step)` after each. Throws
  /// Error(invalid_argument) if steps wait for each other.
  void run(int rank, std::size_t step, const std::function<void(int, std::size_t)>& visit);

  /// The elements of a step's first operand.
  std::vector<Value> written(int rank, std::size_t step) { return read(rank, step, 0); }

 private:
  enum class State : std::uint8_t { waiting, entered, done };
  struct Rank {
    std::array<std::vector<Value>, 5> buffers;
    std::vector<State> states;
    std::vector<std::vector<Value>> message;  // of each send that has run
  };

  void match();
  /// The step of a receive's send on its rank.
  std::size_t sender(int rank, std::size_t step) const;
  std::vector<Value> read(int rank, std::size_t step, int operand);
  void write(int rank, std::size_t step, const std::vector<Value>& values);
  void execute(int rank, std::size_t step);
  Value folded(Value left, Value right) const;

  std::span<const Schedule> schedules_;
  OpKind op_;
  std::vector<Rank> ranks_;
  scheduling::Matching matching_;
};

}  // namespace baton::explaining
