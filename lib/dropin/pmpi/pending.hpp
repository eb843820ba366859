#pragma once

#include <mpi.h>

#include <chrono>
#include <memory>

#include "baton/communicator.hpp"
#include "group.hpp"
#include "job.hpp"

namespace baton::pmpi {

/// An operation under way behind a generalized request.
class Pending {
 public:
  virtual ~Pending() = default;
  /// The group whose progress is its progress, if any.
  virtual Group* group() { return nullptr; }
  /// Whether it is complete, without waiting. The group's mutex is held. `code` is then set.
  virtual bool complete(int& code) = 0;

  MPI_Request request = MPI_REQUEST_NULL;
  int* outcome = nullptr;  ///< what MPI asks the request for; freed with it
};

/// A collective of ours.
class PendingCollective final : public Pending {
 public:
  explicit PendingCollective(std::shared_ptr<Group> group) : group_(std::move(group)) {}
  ~PendingCollective() override;

  Job& job() { return job_; }
  /// Starts what job() has prepared. Throws Error.
  void start(const MpiCall& call);
  Group* group() override { return group_.get(); }
  bool complete(int& code) override;

  std::string algorithm;  ///< for statistics

 private:
  std::shared_ptr<Group> group_;
  Job job_;
  MpiCall mpi_;
  bool kept_ = false;
  Request request_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace baton::pmpi
