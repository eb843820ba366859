#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "baton/communicator.hpp"
#include "failures.hpp"
#include "group.hpp"
#include "job.hpp"
#include "stats.hpp"

namespace baton::pmpi {

/// An operation under way behind a generalized request.
class Pending {
 public:
  virtual ~Pending() = default;
  /// The group that makes its progress, if any.
  virtual Group* group() { return nullptr; }
  /// The group of the communicator that it was called on.
  virtual std::shared_ptr<Group> called_on() const = 0;
  /// Tests for completion, then sets `code`. The caller holds the group's mutex.
  virtual bool complete(int& code) = 0;

  MPI_Request request = MPI_REQUEST_NULL;
  Outcome* outcome = nullptr;  ///< the answer to MPI's query; freed with the request
};

/// A collective of ours under way.
class PendingCollective final : public Pending {
 public:
  explicit PendingCollective(std::shared_ptr<Group> group) : group_(std::move(group)) {}
  ~PendingCollective() override;

  Job& job() { return job_; }
  /// Starts the call that job() has prepared. Throws Error.
  void start(const MpiCall& call);
  Group* group() override { return group_.get(); }
  std::shared_ptr<Group> called_on() const override { return group_; }
  bool complete(int& code) override;

  std::string algorithm;  ///< for statistics

 private:
  std::shared_ptr<Group> group_;
  Job job_;
  MpiCall mpi_;
  std::vector<MPI_Datatype> types_;  // of MPI_Ialltoallw
  bool kept_ = false;
  Request request_;
  Stopwatch watch_{nullptr};
};

}  // namespace baton::pmpi
