#pragma once
/// What lies in Message::state, and how bytes are described to MPI.

#include <cstddef>
#include <limits>
#include <new>

#include "baton/mpi.hpp"

namespace baton::mpi {

struct Pending {
  MPI_Request request;
  int peer;
  bool receive;
  std::size_t bytes;  ///< to send, or room
};
static_assert(sizeof(Pending) <= sizeof(Message::state) && alignof(Pending) <= 16);

inline Pending& pending_in(Message& message) {
  return *std::launder(reinterpret_cast<Pending*>(message.state));
}

/// More bytes than this are no longer a count of MPI_BYTE, which is an int.
inline constexpr std::size_t most_bytes = std::numeric_limits<int>::max();

/// One element that is `bytes` bytes long: blocks of `block` bytes, and the rest. It is freed at
/// the end of scope; MPI keeps it for the messages in flight.
class LongType {
 public:
  explicit LongType(std::size_t bytes, std::size_t block = std::size_t{1} << 30);
  ~LongType();
  LongType(const LongType&) = delete;
  LongType& operator=(const LongType&) = delete;
  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

}  // namespace baton::mpi
