#pragma once
/// How processes are connected: by BATON_TRANSPORT, or by shared memory where they can.

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "baton/exchange.hpp"
#include "baton/shm.hpp"
#include "baton/transport.hpp"

namespace baton::transport {

/// Processes that are about to be connected.
struct Meeting {
  int rank, size;
  const Exchange& exchange;
};

/// What ranks want, and where they run.
struct Wishes {
  std::string chosen;  ///< by all of them; empty: nothing
  bool one_host;       ///< a machine that poses as several hosts is taken at its word
};

/// `names`: the transports that BATON_TRANSPORT may name here; others of the library count as no
/// choice. `otherwise`: this rank's choice where there is none.
/// Collective. Throws Error(invalid_argument, mismatch), the same on all ranks, and what the
/// exchange throws.
Wishes wishes(const Meeting& meeting, std::initializer_list<std::string_view> names,
              std::string_view otherwise = {});

/// Shared memory if all ranks can share it; null on all of them where the system forbids it to one,
/// has too little memory, or one does not come in time, for the reason `why`. Collective. Throws
/// what the exchange throws.
std::unique_ptr<Transport> shm_if_possible(const Meeting& meeting, const ShmOptions& options,
                                           std::string& why);

}  // namespace baton::transport
