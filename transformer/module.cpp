#include "module.hpp"

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

}  // namespace baton::transformer
