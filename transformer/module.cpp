#include "module.hpp"

#include <fmt/core.h>

#include "baton/error.hpp"

namespace baton::transformer {

void* Context::last(const std::type_info& type) {
  if (saved_.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "backward: expected what forward kept, found nothing: forward was not called with "
                "this context, or did not keep");
  }
  if (*saved_.back().type != type) {
    throw Error(ErrorCode::invalid_argument,
                "backward: expected modules in the opposite order of forward, found another");
  }
  return saved_.back().value.get();
}

void Context::compute_postponed() {
  while (!postponed_.empty()) {
    const WeightPart part = std::move(postponed_.front());
    postponed_.pop_front();
    part(*this, meanwhile);
  }
}

void Context::take_postponed(Context& other) {
  for (WeightPart& part : other.postponed_) postponed_.push_back(std::move(part));
  other.postponed_.clear();
}

void Context::expect_finished() const {
  if (!saved_.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("expected backward for all that forward kept, found {} values that "
                            "nothing has used",
                            saved_.size()));
  }
  if (!postponed_.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("expected all gradients of weights, found {} that were postponed and "
                            "not computed",
                            postponed_.size()));
  }
}

}  // namespace baton::transformer
