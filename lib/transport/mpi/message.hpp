#pragma once
/// The content of Message::state, and the description of bytes to MPI.

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
  std::size_t bytes;                         ///< to send; of a receive, the room
  SingleCopyMessage* single_copy = nullptr;  ///< replaces the request
};
static_assert(sizeof(Pending) <= sizeof(Message::state) && alignof(Pending) <= 16);

inline Pending& pending_in(Message& message) {
  return *std::launder(reinterpret_cast<Pending*>(message.state));
}

/// Bytes of the received message.
std::size_t length(const MPI_Status& status);
/// The length of a message that failed because its room is too small: at least one byte more than
/// the room, since not every MPI library tells. Throws any other failure. Frees the request.
std::size_t failed(int code, const char* call, Pending& pending, const MPI_Status& status,
                   int rank);

enum class Ending { complete, cancelled, unknown };

/// Abandons a message. MPI does not promise that a send, or a message under way, ends: then it is
/// left to MPI, and its end is unknown.
Ending give_up(MPI_Request& request, bool receive, int rank, int peer);

/// Describes bytes to MPI, whose counts are ints: a number of MPI_BYTE or, beyond that, one element
/// of a derived type. MPI keeps the type for messages in flight after the destructor.
class Elements {
 public:
  explicit Elements(std::size_t bytes) : count_(static_cast<int>(bytes)) {
    if (bytes > std::numeric_limits<int>::max()) [[unlikely]]
      make_type(bytes);
  }
  ~Elements() {
    if (type_ != MPI_BYTE) [[unlikely]]
      free_type();
  }
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;
  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }

 private:
  void make_type(std::size_t bytes);
  void free_type() noexcept;

  int count_;
  MPI_Datatype type_ = MPI_BYTE;
};

}  // namespace baton::mpi
