#include "handles.hpp"

int baton_mpi_transport(int, baton_transport** transport) {
  return baton::c::made(transport, []() -> std::unique_ptr<baton::Transport> {
    throw baton::Error(baton::ErrorCode::unsupported,
                       "expected a library with MPI, found one that was built without");
  });
}
