#include "shared_memory.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>

#include "../../base/raise.hpp"

namespace baton::shm {
namespace {

constexpr std::size_t rings_per_rank_bytes = 1 << 20, least_ring = 2 << 10, most_ring = 64 << 10;
constexpr std::size_t page = 4096;

constexpr std::size_t up(std::size_t bytes) { return (bytes + page - 1) / page * page; }

std::size_t bytes_of_ring(int size) {
  const auto ranks = static_cast<std::size_t>(size);
  return std::clamp(std::bit_floor(rings_per_rank_bytes / ranks), least_ring, most_ring);
}

std::size_t bytes_before_rings(int size) {
  return up(sizeof(SharedHead) + static_cast<std::size_t>(size) * sizeof(RingHead));
}

[[noreturn]] void fail(int rank, int peer, const std::string& what, int code) {
  base::raise(
      ErrorCode::transport,
      fmt::format("rank {}: {}, but found: {}", rank, what, std::strerror(code)),
      {.rank = rank, .peer = peer, .backend_code = code, .backend_text = std::strerror(code)});
}

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* time) {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, time,
                 nullptr, 0);
}

}  // namespace

SharedMemory::File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void SharedMemory::Unmap::operator()(std::byte* memory) const { munmap(memory, bytes); }

RingHead* SharedMemory::ring_heads() const {
  return reinterpret_cast<RingHead*>(memory_.get() + sizeof(SharedHead));
}

std::byte* SharedMemory::ring_data(int source) const {
  return memory_.get() + bytes_before_rings(size_) + static_cast<std::size_t>(source) * ring_bytes_;
}

// A new file's bytes are 0: no ring has a record, and no offer of a generation in use is open.
SharedMemory::SharedMemory(int rank, int size) : size_(size), ring_bytes_(bytes_of_ring(size)) {
  file_ = File(memfd_create("baton", MFD_CLOEXEC));
  if (descriptor() < 0) fail(rank, -1, "memory to share with other ranks was expected", errno);
  const std::size_t bytes = bytes_before_rings(size) + static_cast<std::size_t>(size) * ring_bytes_;
  // Memory that is missing is told now; later, it would be a signal.
  int code = EINTR;
  while (code == EINTR) code = posix_fallocate(descriptor(), 0, static_cast<off_t>(bytes));
  if (code != 0)
    fail(rank, -1, fmt::format("{} bytes of memory to share with other ranks were expected", bytes),
         code);
  map(rank, rank);
}

SharedMemory::SharedMemory(int rank, int size, int peer, const transport::ProcessId& process,
                           int descriptor, const FileId& id)
    : size_(size), ring_bytes_(bytes_of_ring(size)) {
  const std::string name = fmt::format("/proc/{}/fd/{}", process.pid, descriptor);
  file_ = File(open(name.c_str(), O_RDWR | O_CLOEXEC));
  if (file_.get() < 0)
    fail(
        rank, peer,
        fmt::format("expected to open the shared memory of rank {}, process {}", peer, process.pid),
        errno);
  if (this->id() != id)
    base::raise(ErrorCode::transport,
                fmt::format("rank {}: expected the shared memory of rank {} as file {} of process "
                            "{}, but found another file",
                            rank, peer, descriptor, process.pid),
                {.rank = rank, .peer = peer});
  map(rank, peer);
  close();
}

FileId SharedMemory::id() const {
  struct stat status {};
  fstat(descriptor(), &status);
  return {status.st_dev, status.st_ino};
}

void SharedMemory::map(int rank, int whose) {
  const std::size_t bytes =
      bytes_before_rings(size_) + static_cast<std::size_t>(size_) * ring_bytes_;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (memory == MAP_FAILED)
    fail(rank, whose, fmt::format("expected to map the shared memory of rank {}", whose), errno);
  memory_ = {static_cast<std::byte*>(memory), Unmap{bytes}};
}

void SharedMemory::ring_bell() const {
  SharedHead& to = head();
  to.bell.fetch_add(1, std::memory_order_seq_cst);
  if (to.sleeping.load(std::memory_order_seq_cst) == 0) return;
  futex(to.bell, FUTEX_WAKE, INT_MAX, nullptr);
}

void SharedMemory::wait(std::uint32_t seen, std::chrono::microseconds at_most) const {
  const timespec time{at_most.count() / 1'000'000, at_most.count() % 1'000'000 * 1'000};
  futex(head().bell, FUTEX_WAIT, seen, &time);
}

}  // namespace baton::shm
