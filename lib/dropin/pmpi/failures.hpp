#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "group.hpp"

namespace baton::pmpi {

/// What a generalized request of ours ended with. MPI frees it with the request.
struct Outcome {
  int code = MPI_SUCCESS;
  MPI_Request request = MPI_REQUEST_NULL;
  std::shared_ptr<Group> group;  ///< whose error handler gets the code; null if there is no error
};

/// Gathers the failed requests of ours that one call of the program completes. The MPI library
/// takes them for successful: it would raise their errors on MPI_COMM_WORLD.
class Failures {
 public:
  Failures() : outer_(now_) { now_ = this; }
  /// Of a call that completes any number of `requests`, and sets them to null.
  Failures(int count, const MPI_Request* requests);
  ~Failures() { now_ = outer_; }
  Failures(const Failures&) = delete;
  Failures& operator=(const Failures&) = delete;

  /// Called when MPI asks for the outcome of a failed request; false outside such calls.
  static bool note(const Outcome& failed);
  void forget() { failed_.clear(); }

  /// Raises the error, if any, of a call that completes one request, and returns its code.
  /// `code`: the MPI library's.
  int raised(int code) const;
  /// The same of a call that completes several, with `*done` statuses. `indices`: their requests;
  /// null: all.
  int raised(int code, const int* done, const int* indices, MPI_Status* statuses) const;

 private:
  inline static constinit thread_local Failures* now_ = nullptr;
  Failures* const outer_;  // of a call around a callback of the program
  std::vector<MPI_Request> requests_;
  std::vector<Outcome> failed_;
};

}  // namespace baton::pmpi
