#include "group.hpp"

#include <fmt/core.h>

#include <exception>

#include "accelerator.hpp"
#include "baton/error.hpp"
#include "watch.hpp"

namespace baton::transformer {

Started::Started(Accelerator& accelerator)
    : accelerator_(&accelerator), done_(accelerator.markers().take()) {
  done_->set(accelerator.exchange_stream());
}

Started& Started::operator=(Started&& other) noexcept {
  std::swap(request_, other.request_);
  std::swap(accelerator_, other.accelerator_);
  std::swap(done_, other.done_);
  return *this;
}

Started::~Started() {
  // Its memory goes, and the others take part: so nothing is left under way.
  if (ExchangeWatch* const watch = exchange_watch(); watch && std::uncaught_exceptions() > 0)
    watch->settle(request_);
  // Memory goes in the order of the stream that computes, so that must come after, whatever
  // happened.
  try {
    if (done_) wait();
  } catch (const Error&) {
    // The device failed; whoever uses it next is told.
  }
}

void Started::wait() {
  if (ExchangeWatch* const watch = exchange_watch()) {
    watch->wait(request_);
  } else {
    request_.wait();
  }
  if (!done_) return;
  std::unique_ptr<Marker> done = std::move(done_);
  done->hold(accelerator_->stream());
  accelerator_->markers().give(std::move(done));
}

Started Group::start(const Call& call, bool beside) const {
  Accelerator* const accelerator = transformer::accelerator();
  if (!accelerator) {
    ExchangeWatch* const watch = exchange_watch();
    return Started(watch ? watch->start(*host, call) : host->start(call));
  }
  if (!device) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: expected a mesh with a StreamCommunicator, to exchange what lies "
                            "in the memory of {}, found one of the host alone",
                            name(call.collective), accelerator->device().name()));
  }
  if (!beside) {
    device->enqueue(call, accelerator->stream());
    return {};
  }
  std::unique_ptr<Marker> before = accelerator->markers().take();
  before->set(accelerator->stream());
  before->hold(accelerator->exchange_stream());
  accelerator->markers().give(std::move(before));
  device->enqueue(call, accelerator->exchange_stream());
  return Started(*accelerator);
}

}  // namespace baton::transformer
