#pragma once
/// Communication between layers: operators on activations, each with its derivative. Everything
/// that tensor, sequence and data parallelism send between ranks within a model is one of these.

#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include "group.hpp"
#include "tensor.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// An operation on activations, of which every rank has one.
enum class Operator : std::uint8_t {
  identity,
  all_reduce,      ///< the sum over all ranks
  all_gather,      ///< those of all ranks joined along a dimension
  reduce_scatter,  ///< this rank's part, along a dimension, of the sum over all ranks
  split,           ///< this rank's part along a dimension; nothing is sent
  all_to_all,      ///< cut along one dimension, joined along another
};
/// The operator's name, "all_reduce" for example.
std::string_view name(Operator op);

/// Seconds that this thread has spent with exchanges so far: to start, advance and await them, and
/// to sum gradients. Communication beside computation does not count.
double seconds_in_exchanges();

/// Adds its lifetime to seconds_in_exchanges(); not within another's.
class ExchangeTimer {
 public:
  ExchangeTimer() = default;
  ExchangeTimer(const ExchangeTimer&) = delete;
  ExchangeTimer& operator=(const ExchangeTimer&) = delete;
  ~ExchangeTimer();

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Communicator::progress(), timed by ExchangeTimer.
void advance(Communicator& communicator);

/// An activation that may be on its way.
template <class T>
class Pending {
 public:
  /// A complete one.
  explicit Pending(Array<T> result) : result_(std::move(result)) {}
  /// One that `call` completes; `used` is the memory that messages come from.
  Pending(Array<T> result, std::vector<Array<T>> used, Started call)
      : result_(std::move(result)), used_(std::move(used)), call_(std::move(call)) {}
  /// The activation, when it is complete.
  Array<T> wait();
  /// Whether a call was started that nobody has waited for.
  bool under_way() const { return !used_.empty(); }

 private:
  Array<T> result_;
  std::vector<Array<T>> used_;
  Started call_;  ///< is destroyed before the memory
};

/// An operator and its derivative. With a single rank, both are identities.
///
/// Names in the literature: `broadcast_parallel` is f and `reduce_parallel` g of Shoeybi et
/// al., Megatron-LM (2019); `gather_sequence` is g and `scatter_sequence` g-bar of Korthikanti et
/// al., Reducing activation recomputation (2022); `exchange` is the all-to-all of Jacobs et al.,
/// DeepSpeed-Ulysses (2023).
struct Exchange {
  Operator forward_op = Operator::identity, backward_op = Operator::identity;
  Group group;
  int dim = 0;       ///< dimension that is gathered or split; for all_to_all: cut
  int join_dim = 0;  ///< dimension that all_to_all joins

  static Exchange broadcast_parallel(Group g);           ///< identity / all_reduce
  static Exchange reduce_parallel(Group g);              ///< all_reduce / identity
  static Exchange gather_parallel(Group g, int dim);     ///< all_gather / split
  static Exchange split_parallel(Group g, int dim);      ///< split / all_gather
  static Exchange gather_sequence(Group g, int dim);     ///< all_gather / reduce_scatter
  static Exchange scatter_sequence(Group g, int dim);    ///< reduce_scatter / all_gather
  static Exchange exchange(Group g, int cut, int join);  ///< all_to_all and back

  /// forward_op of x. May change the elements of `x` if no other Array shares them. Throws
  /// Error(invalid_argument) if a dimension is no multiple of the number of ranks.
  template <class T>
  Array<T> forward(Array<T> x) const {
    return start(std::move(x), false).wait();
  }
  /// backward_op of dy; otherwise like forward().
  template <class T>
  Array<T> backward(Array<T> dy) const {
    return derivative().start(std::move(dy), false).wait();
  }
  /// forward() that returns before it is complete. On the host, Communicator::progress() advances
  /// it; on an accelerator it goes on beside computation until somebody waits for it.
  template <class T>
  Pending<T> start_forward(Array<T> x) const {
    return start(std::move(x), true);
  }
  /// The same for backward().
  template <class T>
  Pending<T> start_backward(Array<T> dy) const {
    return derivative().start_forward(std::move(dy));
  }

  /// The exchange with forward and backward exchanged.
  Exchange derivative() const {
    const bool swaps = forward_op == Operator::all_to_all;
    return {backward_op, forward_op, group, swaps ? join_dim : dim, swaps ? dim : join_dim};
  }
  /// Algorithm and traffic of one forward().
  struct Planned {
    Choice choice;
    Traffic sent;  ///< by this rank
  };
  /// How forward() sends an x of this shape, and how much. Makes plans as a call would.
  template <class T>
  Planned planned(const Shape& x) const;
  /// The number of ranks.
  int ranks() const { return group.size(); }
  /// The shape of forward() of an x of this shape. Throws like forward().
  Shape output(const Shape& x) const;

 private:
  /// `beside`: as in Group::start().
  template <class T>
  Pending<T> start(Array<T> x, bool beside) const;
  /// The call of forward() on elements that are laid out as it needs them.
  template <class T>
  Call call(const Array<T>& x, Array<T>& y) const;
};

/// Part number `part` of `parts` equal parts of `x` along a dimension, copied. Throws
/// Error(invalid_argument) if the parts cannot be equal; the error calls them `of`.
template <class T>
Array<T> part_along(View<const std::type_identity_t<T>> x, int dim, int part, int parts,
                    std::string_view of = "ranks");

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
