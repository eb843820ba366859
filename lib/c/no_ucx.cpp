#include "handles.hpp"

using namespace baton;
using namespace baton::c;

namespace {

std::unique_ptr<Transport> refuse() {
  throw Error(ErrorCode::unsupported,
              "expected a library with UCX, found one that was built without");
}

}  // namespace

int baton_ucx_transport(int, int, const char*, const baton_ucx_options*,
                        baton_transport** transport) {
  return made(transport, refuse);
}
int baton_ucx_transport_by_exchange(int, int, baton_exchange, void*, const baton_ucx_options*,
                                    baton_transport** transport) {
  return made(transport, refuse);
}
