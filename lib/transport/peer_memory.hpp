#pragma once
/// Memory of other processes of this host, read by Linux's process_vm_readv.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "baton/transport.hpp"
#include "place.hpp"

namespace baton::transport {

/// A word of this process, which others try to read.
struct OwnWord {
  std::int64_t process;
  std::uint64_t address, word;
};
OwnWord own_word();
/// Whether this process may read another's memory.
bool readable(const OwnWord& of);
/// BATON_SINGLE_COPY. Throws Error(invalid_argument) if it is neither 0 nor 1.
bool single_copy_wanted();

/// For each rank, the process whose memory all ranks of this host may read; 0 for ranks of other
/// hosts and for this rank. Each rank tries it once with a word of every other. Collective, by tag
/// 0. Throws Error(invalid_argument) if BATON_SINGLE_COPY is neither 0 nor 1.
std::vector<pid_t> readable_processes(Transport& group, std::span<const Place> places);

/// A message in another process's memory.
struct RemoteBytes {
  pid_t process;
  std::uint64_t address;
  std::size_t bytes;
};

/// Reads messages part by part. Keeps a buffer of a part, which stays in a core's cache.
class PartReader {
 public:
  /// Reads on behind the first `done` bytes of `from`, about a megabyte at once, and counts them in
  /// `done`. Returns 0, or the system's error.
  int read_some(const RemoteBytes& from, std::size_t& done, const Destination& to);

 private:
  std::byte* part_beside(std::uint64_t address);

  std::unique_ptr<std::byte[]> room_;
};

}  // namespace baton::transport
