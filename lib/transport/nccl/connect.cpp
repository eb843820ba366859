#include "connect.hpp"

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <cstring>

#include "../../base/backoff.hpp"
#include "../../base/raise.hpp"
#include "baton/cuda.hpp"
#include "baton/cuda_runtime.hpp"
#include "bootstrap.hpp"

namespace baton::nccl {
namespace {

Seat seat_of(const Device& device) {
  Seat seat;
  seat.host = own_host();
  try {
    char bus[32] = {};
    cuda::check(cudaDeviceGetPCIBusId(bus, sizeof bus, cuda_ordinal(device)),
                "cudaDeviceGetPCIBusId");
    seat.gpu = bus;
  } catch (const Error& error) {
    seat.wrong = error.what();
  }
  return seat;
}

}  // namespace

void check(ncclResult_t code, const char* call, ncclComm_t communicator, int rank, int peer) {
  if (code == ncclSuccess) return;
  std::string text = ncclGetErrorString(code);
  // The text may belong to an earlier call, but it is often the only explanation.
  if (const char* const last = ncclGetLastError(communicator); last && *last)
    text += fmt::format(": {}", last);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  base::raise(
      ErrorCode::transport,
      fmt::format("{}{}: expected success, found NCCL's error {}, {}", call,
                  peer < 0 ? "" : fmt::format(" with rank {}", peer), static_cast<int>(code), text),
      {.rank = rank, .peer = peer, .backend_code = static_cast<int>(code), .backend_text = text});
}

void settle(ncclResult_t code, const char* call, ncclComm_t communicator, int rank,
            std::chrono::milliseconds limit, const std::function<std::string()>& expected,
            const std::atomic<bool>* interrupted) {
  const auto until = std::chrono::steady_clock::now() + limit;
  for (base::Backoff backoff({.spins = 0, .nap = std::chrono::microseconds(100)});
       code == ncclInProgress; backoff.wait()) {
    check(ncclCommGetAsyncError(communicator, &code), "ncclCommGetAsyncError", communicator, rank);
    if (code != ncclInProgress) break;
    if (interrupted && *interrupted)
      base::raise(ErrorCode::transport,
                  fmt::format("{}, found that it was aborted while {} was in progress on rank {}",
                              expected(), call, rank),
                  {.rank = rank, .backend_code = code});
    if (limit.count() > 0 && std::chrono::steady_clock::now() > until)
      base::raise(ErrorCode::timeout,
                  fmt::format("{} within {} s, found {} still in progress on rank {}", expected(),
                              static_cast<double>(limit.count()) / 1000, call, rank),
                  {.rank = rank, .backend_code = code});
  }
  check(code, call, communicator, rank);
}

void finish(ncclComm_t made, const char* call, int rank, std::chrono::milliseconds limit,
            const std::function<std::string()>& expected) {
  try {
    settle(ncclInProgress, call, made, rank, limit, expected);
  } catch (const Error&) {
    ncclCommAbort(made);  // the result does not matter: the communicator is lost
    throw;
  }
}

ncclComm_t connect(Transport& host, Device& device, std::chrono::milliseconds limit) {
  static_assert(sizeof(ncclUniqueId) == sizeof(Identifier));
  const auto make = [] {
    ncclUniqueId id{};
    check(ncclGetUniqueId(&id), "ncclGetUniqueId", nullptr, 0);
    Identifier bytes;
    std::memcpy(bytes.data(), &id, sizeof id);
    return bytes;
  };
  const Identifier identifier = agree(host, seat_of(device), make, limit);
  ncclUniqueId id{};
  std::memcpy(&id, identifier.data(), sizeof id);
  const cuda::CurrentDevice current(cuda_ordinal(device));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = limit.count() > 0 ? 0 : 1;
  ncclComm_t communicator = nullptr;
  constexpr auto call = "ncclCommInitRankConfig";
  const ncclResult_t code =
      ncclCommInitRankConfig(&communicator, host.size(), id, host.rank(), &config);
  if (code != ncclInProgress) check(code, call, nullptr, host.rank());
  finish(communicator, call, host.rank(), limit, [&] {
    return fmt::format("expected all {} ranks to connect to each other by NCCL", host.size());
  });
  return communicator;
}

}  // namespace baton::nccl
