#include "choice.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "baton/error.hpp"
#include "groups.hpp"
#include "place.hpp"
#include "process.hpp"
#include "shm/shared_memory.hpp"

namespace baton::transport {
namespace {

using Bytes = std::vector<std::byte>;

/// The value of each rank.
template <class T>
std::vector<T> all_of(const Meeting& meeting, const T& own) {
  Bytes block(sizeof own);
  std::memcpy(block.data(), &own, sizeof own);
  std::vector<T> values;
  for (const Bytes& other :
       exchanged(meeting.exchange, block, meeting.rank, meeting.size, sizeof own))
    std::memcpy(&values.emplace_back(), other.data(), sizeof own);
  return values;
}

/// Where a rank runs, and its user's wish.
struct Wish {
  std::uint64_t machine, host;
  Choice choice;
};

}  // namespace

Wishes wishes(const Meeting& meeting, std::initializer_list<std::string_view> names,
              std::string_view otherwise) {
  Wish own{
      .machine = own_process().machine, .host = own_place().host, .choice = chosen_transport()};
  // A choice for processes of another kind, with or without MPI, is none.
  const std::string_view chosen = own.choice.data();
  const auto among = [&](std::initializer_list<std::string_view> list) {
    return std::ranges::find(list, chosen) != list.end();
  };
  if (among({"mpi", "shm", "ucx"}) && !among(names)) own.choice = {};
  if (own.choice[0] == 0) otherwise.copy(own.choice.data(), own.choice.size() - 1);
  const std::vector<Wish> all = all_of(meeting, own);
  std::vector<Choice> choices;
  for (const Wish& wish : all) choices.push_back(wish.choice);
  return {.chosen = agreed_transport(choices, names, meeting.rank),
          .one_host = std::ranges::all_of(all, [&](const Wish& wish) {
            return wish.machine == all[0].machine && wish.host == all[0].host;
          })};
}

std::unique_ptr<Transport> shm_if_possible(const Meeting& meeting, const ShmOptions& options,
                                           std::string& why) {
  if (meeting.size > shm::most_ranks) {
    why = fmt::format("shared memory connects at most {} ranks", shm::most_ranks);
    return nullptr;
  }
  std::unique_ptr<Transport> together;
  why = "another rank may not share memory";
  bool exchanging = false;
  const Exchange watched = [&](const Bytes& own) {
    exchanging = true;
    auto blocks = meeting.exchange(own);
    exchanging = false;
    return blocks;
  };
  try {
    together = shm_transport(meeting.rank, meeting.size, watched, options);
  } catch (const Error& error) {
    if (exchanging || (error.code != ErrorCode::transport && error.code != ErrorCode::timeout))
      throw;
    why = error.what();
  }
  const auto all = all_of(meeting, static_cast<char>(together != nullptr));
  if (std::ranges::find(all, 0) != all.end()) together.reset();
  return together;
}

}  // namespace baton::transport
