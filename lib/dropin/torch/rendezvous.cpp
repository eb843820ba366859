#include "rendezvous.hpp"

#include <c10/util/StringUtil.h>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "baton/processes.hpp"

namespace baton::pytorch {

namespace {

/// A name for this meeting, the same on all ranks and another one than before: the store may have
/// keys of an earlier group, and of ranks that came and met nobody. Rank 0 takes the latest arrival
/// of each rank away, and answers it.
std::string name_meeting(c10d::Store& store, int rank, int size,
                         std::chrono::milliseconds timeout) {
  const std::string arrival = std::to_string(store.add("baton/arrivals", 1));
  if (rank != 0) {
    const std::string own = c10::str("baton/arrival/", rank), answer = "baton/answer/" + arrival;
    store.set(own, arrival);
    try {
      store.wait({answer}, timeout);
    } catch (...) {
      store.deleteKey(own);
      throw;
    }
    return store.get_to_str(answer);
  }
  std::vector<std::string> keys;
  for (int r = 1; r < size; ++r) keys.push_back(c10::str("baton/arrival/", r));
  if (!keys.empty()) store.wait(keys, timeout);
  for (const std::string& key : keys) {
    const std::string its = store.get_to_str(key);
    store.deleteKey(key);
    store.set("baton/answer/" + its, arrival);
  }
  return arrival;
}

}  // namespace

std::unique_ptr<Transport> rendezvous(c10d::Store& store, int rank, int size,
                                      std::chrono::milliseconds timeout) {
  const std::string meeting = name_meeting(store, rank, size, timeout);
  int times = 0;
  const auto exchange = [&](const std::vector<std::byte>& own) {
    const std::string prefix = c10::str("baton/", meeting, "/", times++, "/");
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(own.data());
    store.set(c10::str(prefix, rank), std::vector<std::uint8_t>(bytes, bytes + own.size()));
    std::vector<std::string> keys;
    for (int r = 0; r < size; ++r) keys.push_back(c10::str(prefix, r));
    store.wait(keys, timeout);
    std::vector<std::vector<std::byte>> blocks;
    const auto append = [&](const std::vector<std::uint8_t>& block) {
      const auto* const begin = reinterpret_cast<const std::byte*>(block.data());
      blocks.emplace_back(begin, begin + block.size());
    };
    if (store.hasExtendedApi()) {
      for (const auto& block : store.multiGet(keys)) append(block);
    } else {
      for (const std::string& key : keys) append(store.get(key));
    }
    return blocks;
  };
  // The driver's thread and the program's threads take turns.
  return process_transport(
      rank, size, exchange,
      {.meeting = timeout, .farewell = std::chrono::seconds(5), .concurrent = true});
}

}  // namespace baton::pytorch
