#pragma once
/// What lies in Message::state, and how bytes are described to MPI.

#include <cstddef>
#include <limits>
#include <new>

#include "baton/mpi.hpp"

namespace baton::mpi {

struct SingleCopyMessage;

struct Pending {
  MPI_Request request;
  int peer;
  bool receive;
  std::size_t bytes;                         ///< to send, or room
  SingleCopyMessage* single_copy = nullptr;  ///< instead of a request
};
static_assert(sizeof(Pending) <= sizeof(Message::state) && alignof(Pending) <= 16);

inline Pending& pending_in(Message& message) {
  return *std::launder(reinterpret_cast<Pending*>(message.state));
}

enum class Ending { complete, cancelled, unknown };

/// Gives up a message. Of a send, or of what is under way, MPI promises no end: then it is left to
/// MPI, and its end is unknown.
Ending give_up(MPI_Request& request, bool receive, int rank, int peer);

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
