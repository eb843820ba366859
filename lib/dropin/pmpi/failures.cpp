#include "failures.hpp"

#include <algorithm>

#include "drop_in.hpp"

namespace baton::pmpi {

Failures::Failures(int count, const MPI_Request* requests) : Failures() {
  const DropIn* const drop_in = DropIn::now();
  if (drop_in && drop_in->can_fail() && requests && count > 0)
    requests_.assign(requests, requests + count);
}

bool Failures::note(const Outcome& failed) {
  if (!now_) return false;
  if (std::ranges::find(now_->failed_, failed.request, &Outcome::request) == now_->failed_.end())
    now_->failed_.push_back(failed);
  return true;
}

int Failures::raised(int code) const {
  if (failed_.empty()) return code;
  return raise(*failed_.front().group, failed_.front().code);
}

int Failures::raised(int code, const int* done, const int* indices, MPI_Status* statuses) const {
  if (failed_.empty()) return code;
  int kind = MPI_SUCCESS;
  PMPI_Error_class(code, &kind);
  if (kind != MPI_SUCCESS && kind != MPI_ERR_IN_STATUS) return code;
  for (int i = 0; statuses != MPI_STATUSES_IGNORE && i < *done; ++i) {
    const MPI_Request request = requests_[static_cast<std::size_t>(indices ? indices[i] : i)];
    const auto found = std::ranges::find(failed_, request, &Outcome::request);
    if (found != failed_.end())
      statuses[i].MPI_ERROR = found->code;
    else if (kind == MPI_SUCCESS)
      statuses[i].MPI_ERROR = MPI_SUCCESS;
  }
  raise(*failed_.front().group, failed_.front().code);
  return MPI_ERR_IN_STATUS;
}

}  // namespace baton::pmpi
