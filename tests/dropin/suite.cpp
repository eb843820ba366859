#include "suite.hpp"

#include <signal.h>  // NOLINT: sigaction is POSIX's
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace dropin {

namespace {

constexpr int digest_tag = 31000;

// What the signal handler may read.
char running[256];
std::size_t running_length = 0;

void end_hang(int) {
  // Nothing else is allowed here; the launcher ends the other ranks.
  [[maybe_unused]] const auto written = write(STDERR_FILENO, running, running_length);
  _exit(1);
}

}  // namespace

int rank_in(MPI_Comm communicator) {
  int rank = -1;
  MPI_Comm_rank(communicator, &rank);
  return rank;
}

int size_of(MPI_Comm communicator) {
  int size = -1;
  MPI_Comm_size(communicator, &size);
  return size;
}

std::uint64_t mixed(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t x = a * 0x9E3779B97F4A7C15u ^ b * 0xC2B2AE3D27D4EB4Fu ^ c * 0x165667B19E3779F9u;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

std::string_view name_of(Form form) {
  constexpr std::string_view names[] = {"blocking", "nonblocking", "large", "large nonblocking"};
  return names[static_cast<int>(form)];
}

void Results::add(const void* data, std::size_t bytes) {
  const auto* byte = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i) digest_ = (digest_ ^ byte[i]) * 1099511628211u;
}

void Results::add(const Results& other) {
  add(static_cast<std::int64_t>(other.digest_));
  if (!other.failure_.empty()) fail(other.failure_);
}

void Results::fail(const std::string& failure) {
  if (failure_.empty()) failure_ = failure;
}

void Results::expect(std::int64_t found, std::int64_t expected, const std::string& what) {
  add(found);
  if (found != expected)
    fail(what + ": expected " + std::to_string(expected) + ", found " + std::to_string(found));
}

void Results::expect(std::span<const std::byte> found, std::span<const std::byte> expected,
                     const std::string& what) {
  add(found.data(), found.size());
  if (found.size() != expected.size())
    return fail(what + ": expected " + std::to_string(expected.size()) + " bytes, found " +
                std::to_string(found.size()));
  const auto [wrong, right] = std::ranges::mismatch(found, expected);
  if (wrong == found.end()) return;
  char text[96];
  std::snprintf(text, sizeof text, ": byte %td of %zu: expected %02x, found %02x",
                wrong - found.begin(), found.size(), std::to_integer<unsigned>(*right),
                std::to_integer<unsigned>(*wrong));
  fail(what + text);
}

MPI_Request* Pending::add(std::function<void()> check) {
  checks_.push_back(std::move(check));
  return &requests_.emplace_back(MPI_REQUEST_NULL);
}

void Pending::complete(Results& results) {
  std::vector<MPI_Request> all(requests_.begin(), requests_.end());
  results.succeeds(MPI_Waitall(static_cast<int>(all.size()), all.data(), MPI_STATUSES_IGNORE),
                   "Waitall");
  for (MPI_Request request : all)
    results.expect(request == MPI_REQUEST_NULL, true, "a completed request is null");
  for (const auto& check : checks_) check();
  requests_.clear();
  checks_.clear();
}

Suite::Suite(unsigned seconds, bool under_drop_in)
    : seconds_(seconds),
      under_drop_in_(under_drop_in),
      rank_(rank_in(MPI_COMM_WORLD)),
      size_(size_of(MPI_COMM_WORLD)) {
  signal(SIGALRM, end_hang);
}

void Suite::run(const std::string& name, const std::function<void(Results&)>& body) {
  const auto length =
      std::snprintf(running, sizeof running, "FAILED %s on rank %d of %d: no end after %u s\n",
                    name.c_str(), rank_, size_, seconds_);
  running_length = std::min<std::size_t>(length, sizeof running - 1);
  alarm(seconds_);

  Results results;
  MPI_Pcontrol(1);
  body(results);
  MPI_Pcontrol(0);

  std::uint64_t report[2] = {results.digest(), !results.failure().empty()};
  if (report[1]) {
    failed_ = true;
    std::fprintf(stderr, "FAILED %s on rank %d of %d: %s\n", name.c_str(), rank_, size_,
                 results.failure().c_str());
  }
  if (rank_ != 0) {
    MPI_Send(report, 2, MPI_UINT64_T, 0, digest_tag, MPI_COMM_WORLD);
  } else {
    std::uint64_t all = report[0];
    for (int peer = 1; peer < size_; ++peer) {
      MPI_Recv(report, 2, MPI_UINT64_T, peer, digest_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      all = mixed(all, report[0], peer);
      failed_ |= report[1] != 0;
    }
    std::printf("%s %016llx\n", name.c_str(), static_cast<unsigned long long>(all));
    std::fflush(stdout);
  }
  alarm(0);
}

void Suite::run_beyond_library(const std::string& name, const std::function<void(Results&)>& body) {
  if (under_drop_in_) run("beyond the library: " + name, body);
}

}  // namespace dropin
