/// Identifiers, communicators and groups, as the program sees them.

#include <set>
#include <string>
#include <vector>

#include "../../base/raise.hpp"
#include "arguments.hpp"
#include "group.hpp"
#include "platform.hpp"
#include "real.hpp"

namespace {

using namespace baton;
using namespace baton::nccl_abi;
using base::refuse;

using Made = std::function<std::shared_ptr<ncclComm>()>;

/// Makes a communicator now or at the end of the group.
ncclResult_t make(std::shared_ptr<ncclComm> from, ncclComm_t* to, Made made) {
  *to = nullptr;
  return give({std::move(from), [=] {
                 if (auto member = made()) *to = given_out(std::move(member));
               }});
}

ncclResult_t init(ncclComm_t* comm, int size, const ncclUniqueId& identifier, int rank,
                  const ncclConfig_t* config) {
  ncclResult_t given = ncclSuccess;
  const ncclResult_t checked = guarded([&] {
    check_pointer(comm, "room for a communicator");
    check_ranks(rank, size);
    check_config(config);
    const int ordinal = platform::current_device();
    given = make(nullptr, comm, [=, origin = origin_of(identifier), name = name_in(config)] {
      return std::make_shared<ncclComm>(origin, rank, size, ordinal, name);
    });
  });
  return spoil_group(checked != ncclSuccess ? checked : given);
}

std::vector<int> devices_of(const int* list, int count) {
  const int devices = platform::devices();
  if (devices == 0) refuse("expected a CUDA device, found none");
  if (count < 1) refuse("expected at least 1 device, found {}", count);
  std::vector<int> ordinals;
  for (int i = 0; i < count; ++i) {
    ordinals.push_back(list != nullptr ? list[i] : i);
    if (ordinals.back() < 0 || ordinals.back() >= devices)
      refuse("expected devices from 0 to {}, found {}", devices - 1, ordinals.back());
  }
  return ordinals;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId) {
  if (off()) return pass_on("ncclGetUniqueId", &ncclGetUniqueId, ncclSystemError, uniqueId);
  return guarded([&] {
    check_pointer(uniqueId, "room for an identifier");
    *uniqueId = make_identifier();
  });
}
BATON_SECOND_NAME(ncclGetUniqueId);

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                    ncclConfig_t* config) {
  if (off())
    return pass_on("ncclCommInitRankConfig", &ncclCommInitRankConfig, ncclSystemError, comm, nranks,
                   commId, rank, config);
  return init(comm, nranks, commId, rank, config);
}
BATON_SECOND_NAME(ncclCommInitRankConfig);

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  if (off())
    return pass_on("ncclCommInitRank", &ncclCommInitRank, ncclSystemError, comm, nranks, commId,
                   rank);
  return init(comm, nranks, commId, rank, nullptr);
}
BATON_SECOND_NAME(ncclCommInitRank);

ncclResult_t ncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId,
                                      ncclUniqueId* commIds, ncclConfig_t* config) {
  if (off())
    return pass_on("ncclCommInitRankScalable", &ncclCommInitRankScalable, ncclSystemError, newcomm,
                   nranks, myrank, nId, commIds, config);
  const ncclResult_t checked = guarded([&] {
    check_pointer(commIds, "identifiers");
    if (nId < 1 || nId > nranks) refuse("expected 1 to {} identifiers, found {}", nranks, nId);
  });
  // One place is enough: ranks exchange a few bytes there.
  if (checked != ncclSuccess) return spoil_group(checked);
  return init(newcomm, nranks, commIds[0], myrank, config);
}
BATON_SECOND_NAME(ncclCommInitRankScalable);

ncclResult_t ncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist) {
  if (off())
    return pass_on("ncclCommInitAll", &ncclCommInitAll, ncclSystemError, comm, ndev, devlist);
  std::vector<int> ordinals;
  Origin origin;
  const ncclResult_t checked = guarded([&] {
    check_pointer(comm, "room for communicators");
    ordinals = devices_of(devlist, ndev);
    origin = origin_of(make_identifier());
  });
  if (checked != ncclSuccess) return spoil_group(checked);
  begin_group();
  spoil_group(guarded([&] {
    for (int rank = 0; rank < ndev; ++rank)
      make(nullptr, &comm[rank], [=, ordinal = ordinals[static_cast<std::size_t>(rank)]] {
        return std::make_shared<ncclComm>(origin, rank, ndev, ordinal);
      });
  }));
  return end_group();
}
BATON_SECOND_NAME(ncclCommInitAll);

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm,
                           ncclConfig_t* config) {
  return taken(
      comm,
      [&](const Held& whole) {
        check_pointer(newcomm, "room for a communicator");
        check_config(config);
        if (color < 0 && color != NCCL_SPLIT_NOCOLOR)
          refuse("expected a color of at least 0, or NCCL_SPLIT_NOCOLOR, found {}", color);
        whole->require_in_use();
        return make(whole, newcomm,
                    [=, name = name_in(config)] { return whole->split(color, key, name); });
      },
      BATON_PASSED_ON(ncclCommSplit, comm, color, key, newcomm, config));
}
BATON_SECOND_NAME(ncclCommSplit);

ncclResult_t ncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount,
                            ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags) {
  return taken(
      comm,
      [&](const Held& whole) {
        check_pointer(newcomm, "room for a communicator");
        check_pointer(excludeRanksList, "a list of ranks");
        check_config(config);
        std::set<int> excluded;
        for (int i = 0; i < excludeRanksCount; ++i) {
          check_ranks(excludeRanksList[i], whole->size());
          if (!excluded.insert(excludeRanksList[i]).second)
            refuse("expected each excluded rank once, found {} twice", excludeRanksList[i]);
        }
        if (excluded.empty()) refuse("expected ranks to exclude, found {}", excludeRanksCount);
        if (excluded.contains(whole->rank()))
          refuse("expected a call of the ranks that stay, found excluded rank {}", whole->rank());
        if (shrinkFlags == NCCL_SHRINK_ABORT) whole->abort("ncclCommShrink was asked to end it");
        return make(whole, newcomm,
                    [=, name = name_in(config)] { return whole->without(excluded, name); });
      },
      BATON_PASSED_ON(ncclCommShrink, comm, excludeRanksList, excludeRanksCount, newcomm, config,
                      shrinkFlags));
}
BATON_SECOND_NAME(ncclCommShrink);

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return taken(
      comm,
      [&](const Held& member) {
        return give({member, [=] { member->finalize(); }});
      },
      BATON_PASSED_ON(ncclCommFinalize, comm));
}
BATON_SECOND_NAME(ncclCommFinalize);

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  return taken(
      comm,
      [&](const Held& member) {
        return give({member, [=] {
                       take_back(member.get());
                       member->finalize();
                     }});
      },
      BATON_PASSED_ON(ncclCommDestroy, comm));
}
BATON_SECOND_NAME(ncclCommDestroy);

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  return taken(
      comm,
      [&](const Held& member) {
        member->abort("ncclCommAbort was called");
        take_back(member.get());
      },
      BATON_PASSED_ON(ncclCommAbort, comm));
}
BATON_SECOND_NAME(ncclCommAbort);

ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags) {
  return taken(
      comm,
      [&](const Held& member) {
        if (revokeFlags != NCCL_REVOKE_DEFAULT)
          refuse("expected NCCL_REVOKE_DEFAULT, found {}", revokeFlags);
        member->revoke("ncclCommRevoke was called");
      },
      BATON_PASSED_ON(ncclCommRevoke, comm, revokeFlags));
}
BATON_SECOND_NAME(ncclCommRevoke);

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  return taken(
      comm,
      [&](const Held& member) {
        check_pointer(count, "room for a number");
        *count = member->size();
      },
      BATON_PASSED_ON(ncclCommCount, comm, count));
}
BATON_SECOND_NAME(ncclCommCount);

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  return taken(
      comm,
      [&](const Held& member) {
        check_pointer(device, "room for a number");
        *device = member->ordinal();
      },
      BATON_PASSED_ON(ncclCommCuDevice, comm, device));
}
BATON_SECOND_NAME(ncclCommCuDevice);

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return taken(
      comm,
      [&](const Held& member) {
        check_pointer(rank, "room for a number");
        *rank = member->rank();
      },
      BATON_PASSED_ON(ncclCommUserRank, comm, rank));
}
BATON_SECOND_NAME(ncclCommUserRank);

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  return taken(
      comm,
      [&](const Held& member) {
        check_pointer(asyncError, "room for a result");
        *asyncError = member->asynchronous_error();
      },
      BATON_PASSED_ON(ncclCommGetAsyncError, comm, asyncError));
}
BATON_SECOND_NAME(ncclCommGetAsyncError);

ncclResult_t ncclGroupStart() {
  if (off()) return pass_on("ncclGroupStart", &ncclGroupStart, ncclSystemError);
  begin_group();
  return ncclSuccess;
}
BATON_SECOND_NAME(ncclGroupStart);

ncclResult_t ncclGroupEnd() {
  if (off()) return pass_on("ncclGroupEnd", &ncclGroupEnd, ncclSystemError);
  return end_group();
}
BATON_SECOND_NAME(ncclGroupEnd);

ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* simInfo) {
  if (off())
    return pass_on("ncclGroupSimulateEnd", &ncclGroupSimulateEnd, ncclSystemError, simInfo);
  if (simInfo != nullptr) simInfo->estimatedTime = NCCL_UNDEF_FLOAT;
  return end_group(true);
}
BATON_SECOND_NAME(ncclGroupSimulateEnd);

}  // extern "C"
