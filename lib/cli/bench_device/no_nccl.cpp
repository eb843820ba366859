#include "baton/error.hpp"
#include "peer_library.hpp"

namespace baton::cli::bench_device {

std::unique_ptr<PeerLibrary> nccl_library(Transport&, const Gpu&) {
  throw Error(ErrorCode::unsupported, "expected a build with NCCL, found one without");
}

}  // namespace baton::cli::bench_device
