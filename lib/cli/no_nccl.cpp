#include "baton/error.hpp"
#include "rival.hpp"

namespace baton::cli {

std::unique_ptr<Rival> nccl_rival(Transport&, const Card&) {
  throw Error(ErrorCode::unsupported, "expected a build with NCCL, found one without");
}

}  // namespace baton::cli
