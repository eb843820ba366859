#include "work.hpp"

#include <ATen/core/jit_type.h>
#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <optional>
#include <utility>

#include "baton/record.hpp"
#include "errors.hpp"
#include "names.hpp"

namespace baton::pytorch {
namespace {

std::int64_t count_of(const at::Tensor& tensor, Elements elements) {
  return tensor.numel() * elements.per;
}

// The memory has the elements, in their order: no view conjugates or negates them.
bool lies_plain(const at::Tensor& tensor) {
  return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

at::Tensor plain(const at::Tensor& tensor) {
  return tensor.resolve_conj().resolve_neg().contiguous();
}

}  // namespace

Work::Work(Driver& driver, std::shared_ptr<Parked> parked, int rank, c10d::OpType type,
           std::uint64_t number, const char* title, const Tensors& inputs)
    : c10d::Work(rank, type, title, inputs.empty() ? std::nullopt : std::make_optional(inputs)),
      driver_(driver),
      parked_(std::move(parked)),
      number_(number),
      recorded_name_(name_around()),
      future_(
          c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()))) {
}

ConstData Work::read(const at::Tensor& tensor, Elements elements) {
  kept_.push_back(plain(tensor));
  return {kept_.back().const_data_ptr(), count_of(tensor, elements), elements.type};
}

Data Work::write(const at::Tensor& tensor, Elements elements) {
  kept_.push_back(lies_plain(tensor) ? tensor
                                     : at::empty_like(tensor, at::MemoryFormat::Contiguous));
  if (!lies_plain(tensor)) copy_at_end(tensor, kept_.back());
  return {kept_.back().mutable_data_ptr(), count_of(tensor, elements), elements.type};
}

Data Work::update(const at::Tensor& tensor, Elements elements) {
  kept_.push_back(plain(tensor));
  if (!lies_plain(tensor)) copy_at_end(tensor, kept_.back());
  return {kept_.back().mutable_data_ptr(), count_of(tensor, elements), elements.type};
}

bool Work::advance() {
  try {
    return go_on();
  } catch (...) {
    abandon("an operation failed");
    throw;
  }
}

bool Work::go_on() {
  if (begin_) {
    std::optional<RecordedName> recorded;
    if (recorded_name_) recorded.emplace(*recorded_name_);
    auto begun = begin_(*this);
    if (!begun) return false;
    requests_ = std::move(*begun);
    begin_ = nullptr;
  }
  while (!requests_.empty() && requests_.back().done()) {
    requests_.back().wait();  // throws its failure
    requests_.pop_back();
  }
  return requests_.empty();
}

std::string Work::waits_for() const {
  if (!requests_.empty()) return requests_.back().waits_for();
  return begin_ ? "waits for a message from any rank" : "waits for older operations of its group";
}

std::string Work::cause() const {
  return requests_.empty() ? "this rank " + waits_for() : requests_.back().cause(timeout);
}

void Work::abandon(const std::string& why) noexcept {
  for (Request& request : requests_) request.abandon(why);
  requests_.clear();
  begin_ = nullptr;
  parked_->push_back(std::exchange(kept_, {}));
}

void Work::ended(std::exception_ptr error) {
  if (!error) {
    try {
      for (auto& [tensor, temporary] : copies_) {
        // The caller's mode, which the driver's thread does not have.
        const c10::InferenceMode mode(tensor.is_inference());
        const at::NoGradGuard no_gradient;
        tensor.copy_(temporary);
      }
    } catch (...) {
      error = std::current_exception();
    }
  }
  copies_.clear();
  if (error) {
    error = translated(error);
    future_->setError(error);
  } else {
    kept_.clear();
    future_->markCompleted(c10::IValue(results));
  }
  finish(error);
}

bool Work::isCompleted() {
  {
    const std::lock_guard lock(mutex_);
    if (completed_) return true;
  }
  driver_.hurry();
  return false;
}

bool Work::isSuccess() const {
  const std::lock_guard lock(mutex_);
  return completed_ && !exception_;
}

bool Work::wait(std::chrono::milliseconds timeout) {
  const auto until = timeout == kNoTimeout ? Clock::time_point::max() : Clock::now() + timeout;
  if (!driver_.wait(*this, until))
    C10_THROW_ERROR(DistBackendError,
                    c10::str("Operation timed out! ", name, " was expected to complete within ",
                             timeout.count(), " ms; this rank ", driver_.waits_for(*this)));
  std::unique_lock lock(mutex_);
  cv_.wait(lock, [&] { return completed_; });
  if (exception_) std::rethrow_exception(exception_);
  return true;
}

void Work::abort() { driver_.abort(*this, "it was aborted"); }

c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture() {
  driver_.hurry();
  return future_;
}

}  // namespace baton::pytorch
