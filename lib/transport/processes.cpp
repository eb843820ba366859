#include "baton/processes.hpp"

#include <cstdlib>
#include <string>

#include "../base/raise.hpp"
#include "baton/shm.hpp"
#include "choice.hpp"
#include "groups.hpp"
#include "tcp/meeting.hpp"
#ifdef BATON_HAS_UCX
#include "baton/ucx.hpp"
#endif

namespace baton {
namespace {

constexpr int most_processes = tcp::most_ranks;

/// `why`: the reason, for builds without it.
std::unique_ptr<Transport> by_ucx(int rank, int size, const Exchange& exchange,
                                  const ProcessOptions& options, const std::string& why) {
#ifdef BATON_HAS_UCX
  static_cast<void>(why);
  return ucx_transport(
      rank, size, exchange,
      {.meeting = options.meeting, .farewell = options.farewell, .concurrent = options.concurrent});
#else
  static_cast<void>(size), static_cast<void>(exchange), static_cast<void>(options);
  base::raise(
      ErrorCode::unsupported,
      "expected a library with UCX, found one that was built without; it is needed since: " + why,
      {.rank = rank});
#endif
}

}  // namespace

std::unique_ptr<Transport> process_transport(int rank, int size, const Exchange& exchange,
                                             const ProcessOptions& options) {
  transport::check_meeting("a transport of processes", rank, size, most_processes, exchange);
  const transport::Meeting meeting{rank, size, exchange};
  // Who chooses UCX's ways wants UCX.
  const auto wishes = transport::wishes(meeting, {"shm", "ucx"},
                                        std::getenv("BATON_UCX_TLS") != nullptr ? "ucx" : "");
  const ShmOptions shared{.meeting = options.meeting, .concurrent = options.concurrent};
  if (wishes.chosen == "shm") return shm_transport(rank, size, exchange, shared);
  if (wishes.chosen == "ucx") return by_ucx(rank, size, exchange, options, "it was chosen");
  std::string why = "ranks run on several hosts";
  if (wishes.one_host)
    if (auto together = transport::shm_if_possible(meeting, shared, why)) return together;
  return by_ucx(rank, size, exchange, options, why);
}

std::unique_ptr<Transport> process_transport(int rank, int size, const std::string& address,
                                             const ProcessOptions& options) {
  return process_transport(
      rank, size,
      [&](const tcp::Bytes& own) {
        return tcp::exchange_at(address, rank, size, own, options.meeting);
      },
      options);
}

}  // namespace baton
