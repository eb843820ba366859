#include "world.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstring>
#include <vector>

namespace baton::cli {
namespace {

template <class T>
std::vector<T> gathered(World& world, const T& mine) {
  std::vector<T> all(static_cast<std::size_t>(world.size()));
  world.gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

/// The state that the ranks of one process share.
struct Meeting {
  explicit Meeting(int size) : barrier(size), places(static_cast<std::size_t>(size)) {}
  std::barrier<> barrier;
  std::vector<std::span<const std::byte>> places;
};

class ThreadWorld final : public World {
 public:
  ThreadWorld(std::unique_ptr<Transport> transport, Meeting& meeting)
      : World(transport->rank(), transport->size()),
        transport_(std::move(transport)),
        meeting_(meeting) {}

  std::unique_ptr<Transport> transport() override { return std::move(transport_); }
  void gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    meeting_.places[static_cast<std::size_t>(rank())] = mine;
    meeting_.barrier.arrive_and_wait();
    for (const auto place : meeting_.places) {
      std::copy(place.begin(), place.end(), all.begin());
      all = all.subspan(place.size());
    }
    meeting_.barrier.arrive_and_wait();
  }

 private:
  std::unique_ptr<Transport> transport_;
  Meeting& meeting_;
};

}  // namespace

double PlainMessages::ping_pong(int rank, int first, int second, std::size_t bytes, int trips) {
  double begin = 0;
  for (int i = -2; i < trips && (rank == first || rank == second); ++i) {
    if (i == 0) begin = now();
    if (rank == first) send(second, bytes);
    recv(rank == first ? second : first, bytes);
    if (rank == second) send(first, bytes);
  }
  return rank == first ? (now() - begin) / (2 * trips) : 0;
}

World::World(int rank, int size, std::vector<int> hosts) : rank_(rank), hosts_(std::move(hosts)) {
  hosts_.resize(static_cast<std::size_t>(size));
}

std::vector<BuiltIn> World::built_ins(const Case&, const void*, void*, Entry) { return {}; }

int World::host_count() const { return 1 + *std::ranges::max_element(hosts_); }

bool World::one_clock() const { return host_count() == 1; }

void World::barrier() { gathered(*this, char{}); }

double World::max(double value) {
  const auto all = gathered(*this, value);
  return *std::max_element(all.begin(), all.end());
}

std::int64_t World::sum(std::int64_t value) {
  std::int64_t sum = 0;
  for (const std::int64_t v : gathered(*this, value)) sum += v;
  return sum;
}

bool World::equal(std::uint64_t value) {
  const auto all = gathered(*this, value);
  return std::all_of(all.begin(), all.end(), [&](std::uint64_t v) { return v == all[0]; });
}

std::string World::first(const std::string& text) {
  for (const std::string& found : texts(text)) {
    if (!found.empty()) return found;
  }
  return {};
}

std::vector<std::string> World::texts(const std::string& text) {
  std::array<char, 480> fixed{};
  std::memcpy(fixed.data(), text.data(), std::min(text.size(), fixed.size() - 1));
  std::vector<std::string> all;
  for (const auto& found : gathered(*this, fixed)) all.emplace_back(found.data());
  return all;
}

void World::together(const std::function<void()>& body) {
  std::string failure;
  auto code = ErrorCode::transport;
  try {
    body();
  } catch (const Error& error) {
    code = error.code;
    failure = error.what();
  } catch (const std::bad_alloc&) {
    failure = fmt::format("rank {}: expected more memory than there is", rank());
  } catch (const std::exception& error) {
    failure = error.what();
  }
  if (const std::string found = first(failure); !found.empty()) throw Error(code, found);
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void run_as_threads(int ranks, const ThreadOptions& options,
                    const std::function<void(World&)>& body) {
  Meeting meeting(ranks);
  run_threads(
      ranks,
      [&](std::unique_ptr<Transport> transport) {
        ThreadWorld world(std::move(transport), meeting);
        body(world);
      },
      options);
}

void on_ranks(Launch& launch, int ranks, const ThreadOptions& options,
              const std::function<void(World&)>& body) {
  if (launch.processes() == 0) return run_as_threads(ranks, options, body);
  launch.run(ranks,
             [&](std::unique_ptr<Transport> transport) { body(*mpi_world(std::move(transport))); });
}

}  // namespace baton::cli
