#include "peer_memory.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <random>
#include <string_view>

#include "../base/raise.hpp"
#include "gathered.hpp"

namespace baton::transport {
namespace {

constexpr std::size_t part_bytes = 128 << 10;   // of one read: stays in a core's cache
constexpr std::size_t bytes_at_once = 1 << 20;  // of one call
constexpr std::size_t page = 4096;

/// All of it; 0, or the system's error.
int read_from(pid_t process, std::uint64_t address, std::byte* into, std::size_t bytes) {
#ifdef __linux__
  while (bytes > 0) {
    const iovec here{into, bytes}, there{reinterpret_cast<void*>(address), bytes};
    const ssize_t got = process_vm_readv(process, &here, 1, &there, 1, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got < 0 ? errno : EIO;
    address += static_cast<std::uint64_t>(got);
    into += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return 0;
#else
  static_cast<void>(process), static_cast<void>(address), static_cast<void>(into);
  return bytes == 0 ? 0 : ENOSYS;
#endif
}

}  // namespace

bool single_copy_wanted() {
  const char* const text = std::getenv("BATON_SINGLE_COPY");
  if (!text || std::string_view(text) == "1") return true;
  if (std::string_view(text) == "0") return false;
  base::refuse("BATON_SINGLE_COPY: expected 0 or 1, found '{}'", text);
}

OwnWord own_word() {
  static const std::uint64_t word = std::uint64_t{std::random_device()()} << 32 | 1;
  return {getpid(), reinterpret_cast<std::uint64_t>(&word), word};
}

bool readable(const OwnWord& of) {
  std::uint64_t word = 0;
  return read_from(static_cast<pid_t>(of.process), of.address, reinterpret_cast<std::byte*>(&word),
                   sizeof word) == 0 &&
         word == of.word;
}

std::vector<pid_t> readable_processes(Transport& group, std::span<const Place> places) {
  bool reads = single_copy_wanted();
  const auto processes = gathered(group, own_word());
  const auto rank = static_cast<std::size_t>(group.rank());
  const auto neighbour = [&](std::size_t peer) { return places[peer].host == places[rank].host; };
  for (std::size_t peer = 0; peer < places.size(); ++peer)
    if (reads && neighbour(peer)) reads = readable(processes[peer]);
  const std::vector<char> all = gathered(group, static_cast<char>(reads));

  std::vector<pid_t> ids(places.size(), 0);
  for (std::size_t peer = 0; peer < ids.size(); ++peer) {
    if (!neighbour(peer)) continue;
    if (all[peer] == 0) return std::vector<pid_t>(places.size(), 0);
    if (peer != rank) ids[peer] = static_cast<pid_t>(processes[peer].process);
  }
  return ids;
}

/// The buffer of a part, placed as its source is: where the distance of both is 1 to 16 bytes more
/// than a multiple of 4096, the kernel's copy takes up to 2.5 times as long (AMD Zen; glibc's bug
/// 30994 describes the effect).
std::byte* PartReader::part_beside(std::uint64_t address) {
  if (!room_) room_ = std::make_unique_for_overwrite<std::byte[]>(part_bytes + page);
  const auto begin = reinterpret_cast<std::uintptr_t>(room_.get());
  return room_.get() + ((address - begin) & (page - 1));
}

int PartReader::read_some(const RemoteBytes& from, std::size_t& done, const Destination& to) {
  const std::size_t stop = std::min(done + bytes_at_once, from.bytes);
  if (!to.take) {
    const int error = read_from(from.process, from.address + done,
                                static_cast<std::byte*>(to.data) + done, stop - done);
    if (error == 0) done = stop;
    return error;
  }
  const std::size_t most = part_bytes / to.unit * to.unit;
  while (done < stop) {
    const std::size_t bytes = std::min(most, from.bytes - done);
    std::byte* const part = part_beside(from.address + done);
    if (const int error = read_from(from.process, from.address + done, part, bytes); error != 0)
      return error;
    done += bytes;
    to.take(to.data, part, bytes);
  }
  return 0;
}

}  // namespace baton::transport
