#include "baton/processes.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "../base/raise.hpp"
#include "baton/shm.hpp"
#include "groups.hpp"
#include "place.hpp"
#include "process.hpp"
#include "tcp/meeting.hpp"
#ifdef BATON_HAS_UCX
#include "baton/ucx.hpp"
#endif

namespace baton {
namespace {

using Bytes = std::vector<std::byte>;

constexpr int most_processes = tcp::most_ranks;

/// The value of each rank.
template <class T>
std::vector<T> all_of(const Exchange& exchange, const T& own, int rank, int size) {
  Bytes block(sizeof own);
  std::memcpy(block.data(), &own, sizeof own);
  std::vector<T> values;
  for (const Bytes& other : transport::exchanged(exchange, block, rank, size, sizeof own))
    std::memcpy(&values.emplace_back(), other.data(), sizeof own);
  return values;
}

/// Where a rank runs, and its user's wish.
struct Wish {
  std::uint64_t machine, host;
  transport::Choice choice;
};

Wish own_wish() {
  Wish wish{.machine = transport::own_process().machine,
            .host = transport::own_place().host,
            .choice = transport::chosen_transport()};
  // Who chooses UCX's ways wants UCX.
  if (wish.choice[0] == 0 && std::getenv("BATON_UCX_TLS") != nullptr) wish.choice = {"ucx"};
  return wish;
}

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
  const std::vector<Wish> wishes = all_of(exchange, own_wish(), rank, size);
  std::vector<transport::Choice> choices;
  for (const Wish& wish : wishes) choices.push_back(wish.choice);
  const std::string chosen = transport::agreed_transport(choices, {"shm", "ucx"}, rank);
  const ShmOptions shared{.meeting = options.meeting, .concurrent = options.concurrent};
  if (chosen == "shm") return shm_transport(rank, size, exchange, shared);
  if (chosen == "ucx") return by_ucx(rank, size, exchange, options, "it was chosen");
  // A machine that poses as several hosts is taken at its word.
  const bool one_host = std::ranges::all_of(wishes, [&](const Wish& wish) {
    return wish.machine == wishes[0].machine && wish.host == wishes[0].host;
  });
  if (!one_host) return by_ucx(rank, size, exchange, options, "ranks run on several hosts");
  std::unique_ptr<Transport> together;
  std::string why = "another rank may not share memory";
  bool exchanging = false;
  const Exchange watched = [&](const Bytes& own) {
    exchanging = true;
    auto blocks = exchange(own);
    exchanging = false;
    return blocks;
  };
  try {
    together = shm_transport(rank, size, watched, shared);
  } catch (const Error& error) {
    if (exchanging || error.code != ErrorCode::transport) throw;
    why = error.what();  // the system forbids it, or has too little memory
  }
  const auto all = all_of(exchange, static_cast<char>(together != nullptr), rank, size);
  if (std::ranges::find(all, 0) == all.end()) return together;
  together.reset();
  return by_ucx(rank, size, exchange, options, why);
}

std::unique_ptr<Transport> process_transport(int rank, int size, const std::string& address,
                                             const ProcessOptions& options) {
  return process_transport(
      rank, size,
      [&](const Bytes& own) { return tcp::exchange_at(address, rank, size, own, options.meeting); },
      options);
}

}  // namespace baton
