/// The functions of nccl_device.h, for kernels that send messages themselves. This library's
/// communicators have no such kernels.
///
/// The header needs nvcc, so that the types of its interface are declared here.

#include "arguments.hpp"
#include "real.hpp"

#pragma GCC diagnostic ignored "-Wmissing-declarations"

extern "C" {

/// Ranks base, base + stride …
struct ncclTeam {
  int nRanks, rank, stride;
};

/// The team of all ranks; empty for a wrong communicator.
ncclTeam ncclTeamWorld(ncclComm_t comm) {
  using namespace baton::nccl_abi;
  if (off()) return pass_on("ncclTeamWorld", &ncclTeamWorld, ncclTeam{}, comm);
  const Held member = of_handle(comm);
  return member ? ncclTeam{member->size(), member->rank(), 1} : ncclTeam{};
}
BATON_SECOND_NAME(ncclTeamWorld);

/// Ranks whose memory this one's kernels reach: itself.
ncclTeam ncclTeamLsa(ncclComm_t comm) {
  using namespace baton::nccl_abi;
  if (off()) return pass_on("ncclTeamLsa", &ncclTeamLsa, ncclTeam{}, comm);
  return of_handle(comm) ? ncclTeam{1, 0, 1} : ncclTeam{};
}
BATON_SECOND_NAME(ncclTeamLsa);

/// One rank of each group that reach each other's memory: all ranks.
ncclTeam ncclTeamRail(ncclComm_t comm) {
  using namespace baton::nccl_abi;
  if (off()) return pass_on("ncclTeamRail", &ncclTeamRail, ncclTeam{}, comm);
  const Held member = of_handle(comm);
  return member ? ncclTeam{member->size(), member->rank(), 1} : ncclTeam{};
}
BATON_SECOND_NAME(ncclTeamRail);

/// The rank among all of a team's rank.
int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam team, int rank) {
  using namespace baton::nccl_abi;
  if (off()) return pass_on("ncclTeamRankToWorld", &ncclTeamRankToWorld, -1, comm, team, rank);
  const Held member = of_handle(comm);
  return member ? member->rank() + (rank - team.rank) * team.stride : -1;
}
BATON_SECOND_NAME(ncclTeamRankToWorld);

/// The rank in the team of ncclTeamLsa() of a team's rank.
int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam team, int rank) {
  using namespace baton::nccl_abi;
  if (off()) return pass_on("ncclTeamRankToLsa", &ncclTeamRankToLsa, -1, comm, team, rank);
  return of_handle(comm) ? (rank - team.rank) * team.stride : -1;
}
BATON_SECOND_NAME(ncclTeamRankToLsa);

ncclResult_t ncclDevCommCreate(ncclComm_t comm, const void* requirements, void* made) {
  using namespace baton::nccl_abi;
  if (off())
    return pass_on("ncclDevCommCreate", &ncclDevCommCreate, ncclInvalidUsage, comm, requirements,
                   made);
  return reported({ncclInvalidUsage,
                   "ncclDevCommCreate: expected a communicator of NCCL's own, for kernels that "
                   "send messages themselves, found one of this library's"});
}
BATON_SECOND_NAME(ncclDevCommCreate);

ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const void* made) {
  using namespace baton::nccl_abi;
  if (off())
    return pass_on("ncclDevCommDestroy", &ncclDevCommDestroy, ncclInvalidUsage, comm, made);
  return ncclSuccess;
}
BATON_SECOND_NAME(ncclDevCommDestroy);

ncclResult_t ncclGinBarrierCreateRequirement(ncclComm_t comm, ncclTeam team, int barriers,
                                             void* handle, void* requirement) {
  using namespace baton::nccl_abi;
  if (off())
    return pass_on("ncclGinBarrierCreateRequirement", &ncclGinBarrierCreateRequirement,
                   ncclInvalidUsage, comm, team, barriers, handle, requirement);
  return reported({ncclInvalidUsage,
                   "ncclGinBarrierCreateRequirement: expected a communicator of NCCL's own, found "
                   "one of this library's"});
}
BATON_SECOND_NAME(ncclGinBarrierCreateRequirement);

ncclResult_t ncclLsaBarrierCreateRequirement(ncclTeam team, int barriers, void* handle,
                                             void* requirement) {
  return baton::nccl_abi::pass_on("ncclLsaBarrierCreateRequirement",
                                  &ncclLsaBarrierCreateRequirement, ncclInvalidUsage, team,
                                  barriers, handle, requirement);
}
BATON_SECOND_NAME(ncclLsaBarrierCreateRequirement);

int ncclLLA2ACalcSlots(int elements, int bytes) {
  return baton::nccl_abi::pass_on("ncclLLA2ACalcSlots", &ncclLLA2ACalcSlots, 0, elements, bytes);
}
BATON_SECOND_NAME(ncclLLA2ACalcSlots);

ncclResult_t ncclLLA2ACreateRequirement(int blocks, int slots, void* handle, void* requirement) {
  return baton::nccl_abi::pass_on("ncclLLA2ACreateRequirement", &ncclLLA2ACreateRequirement,
                                  ncclInvalidUsage, blocks, slots, handle, requirement);
}
BATON_SECOND_NAME(ncclLLA2ACreateRequirement);

void ncclResetDebugInitInternal() {}

}  // extern "C"
