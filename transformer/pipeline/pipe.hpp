#pragma once
/// A pipeline within one process: partitions of layers, each computed by a thread of its own.

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "../training/sequential.hpp"
#include "baton/export.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// Partitions of a row of layers (split_module()) as one module. Samples are cut into near-equal
/// micro-batches; every partition has a worker, a thread with an in-queue and an out-queue. Forward
/// gives them their tasks in the order of clock_cycles(), micro-batch i of partition j at clock i +
/// j; backward likewise, from the last partition to the first. Huang et al., GPipe (2019); Kim et
/// al., torchgpipe (2020).
///
/// Results are those of the layers in a row, and so are gradients but for rounding. The output is
/// the last partition's. Memory counts where the calling thread's does. Workers end with the Pipe.
///
/// What a task throws reaches the caller, after all other tasks have ended, as an Error that begins
/// with partition and micro-batch; it has the code of an Error that the task threw, otherwise
/// invalid_argument. The exception itself is nested (std::rethrow_if_nested()). The Pipe remains
/// usable. If several tasks throw, it is that of the first clock.
template <class T>
class Pipe final : public Module<T> {
 public:
  /// Throws Error(invalid_argument) if there is no micro-batch, or no partition, or a layer is in
  /// two of them.
  Pipe(std::vector<Sequential<T>> partitions, int micro_batches);
  ~Pipe() override;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  /// x has samples in its first dimension; if they are fewer than micro-batches, each is one.
  /// Throws Error(unsupported) if the thread has an accelerator: workers compute on the host.
  Array<T> forward(const Array<T>& x, Context& context) override;
  /// Gradients are reported as complete when all micro-batches have been computed.
  Array<T> backward(const Array<T>& dy, Context& context) override;
  Params<T> params() override;
  /// The partitions.
  std::vector<Sequential<T>>& partitions() { return partitions_; }

 private:
  struct BATON_HIDDEN Saved;
  class BATON_HIDDEN Worker;
  class BATON_HIDDEN Run;
  /// What a partition makes of a micro-batch's activation, or gradient.
  using Work = std::function<Array<T>(std::size_t partition, std::size_t micro_batch, Array<T> x)>;
  /// The results of all partitions in order, or `back` in the opposite order.
  std::vector<Array<T>> through(std::vector<Array<T>> micro_batches, bool back, const Work& work);

  std::vector<Sequential<T>> partitions_;
  int micro_batches_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
