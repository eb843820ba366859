#include "rendezvous.hpp"

#include <c10/util/StringUtil.h>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "baton/processes.hpp"

namespace baton::pytorch {

std::unique_ptr<Transport> rendezvous(c10d::Store& store, int rank, int size,
                                      std::chrono::milliseconds timeout) {
  int times = 0;
  const auto exchange = [&](const std::vector<std::byte>& own) {
    const std::string prefix = c10::str("baton/", times++, "/");
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
