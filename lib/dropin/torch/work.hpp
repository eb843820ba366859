#pragma once
/// One operation under way, as PyTorch and as the driver see it.

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "baton/communicator.hpp"
#include "driver.hpp"
#include "elements.hpp"

namespace baton::pytorch {

/// An operation of a group: its tensors, and the requests that complete it.
///
/// Tensors with gaps, and views that conjugate or negate, are copied: their data goes through
/// memory of the work.
class Work final : public c10d::Work, public Task {
 public:
  using Tensors = std::vector<at::Tensor>;
  /// Starts messages and collectives, in the driver's turn; nothing: they cannot start yet.
  using Begin = std::function<std::optional<std::vector<Request>>(Work&)>;

  /// Tensors whose memory may still be written after a failure; used in the driver's turn.
  using Parked = std::vector<Tensors>;

  Work(Driver& driver, std::shared_ptr<Parked> parked, int rank, c10d::OpType type,
       std::uint64_t number, const char* title, const Tensors& inputs);

  // Before the start: the memory of a tensor, in elements of the library.

  ConstData read(const at::Tensor& tensor, Elements elements);
  Data write(const at::Tensor& tensor, Elements elements);
  /// Read and written.
  Data update(const at::Tensor& tensor, Elements elements);
  /// `temporary` holds the result that belongs into `tensor`.
  void copy_at_end(const at::Tensor& tensor, const at::Tensor& temporary) {
    copies_.emplace_back(tensor, temporary);
  }
  void keep(const at::Tensor& tensor) { kept_.push_back(tensor); }

  /// Lists that a call refers to.
  struct Lists {
    std::vector<ConstData> inputs;
    std::vector<Data> outputs;
    std::vector<std::int64_t> sent, received;  ///< counts
  };
  /// Empty lists for one more call.
  Lists& lists() { return lists_.emplace_back(); }

  int source = -1;  ///< of a receive from any rank
  Tensors results;  ///< of the future

  void begins(Begin begin) { begin_ = std::move(begin); }

  // c10d::Work
  bool isCompleted() override;
  bool isSuccess() const override;
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void synchronize() override {}
  void abort() override;
  int sourceRank() const override { return source; }
  Tensors result() override { return results; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  std::uint64_t getSequencenumber() const override { return number_; }

  // Task
  bool advance() override;
  std::string waits_for() const override;
  std::string cause() const override;
  void abandon(const std::string& why) noexcept override;
  void ended(std::exception_ptr error) override;

 private:
  bool go_on();

  Driver& driver_;
  const std::shared_ptr<Parked> parked_;
  const std::uint64_t number_;
  const std::optional<std::string> recorded_name_;  // of record_function, around the call
  Begin begin_;
  std::vector<Request> requests_;
  std::deque<Lists> lists_;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;
  Tensors kept_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace baton::pytorch
