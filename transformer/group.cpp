#include "group.hpp"

#include <fmt/format.h>

#include "accelerator.hpp"
#include "baton/error.hpp"

namespace baton::transformer {

Request Group::start(const Call& call) const {
  Accelerator* const accelerator = transformer::accelerator();
  if (!accelerator) return host->start(call);
  if (!device) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: expected a mesh with a StreamCommunicator, to exchange what lies "
                            "in the memory of {}, found one of the host alone",
                            name(call.collective), accelerator->device().name()));
  }
  device->enqueue(call, accelerator->stream());
  return {};
}

}  // namespace baton::transformer
