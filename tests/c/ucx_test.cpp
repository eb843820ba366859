#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <barrier>
#include <cstring>
#include <thread>

#include "collectives.hpp"
#include "support.hpp"

using namespace c_support;

namespace {

/// Ranks that are threads and exchange blocks by shared memory.
struct Board {
  explicit Board(int ranks) : blocks(static_cast<std::size_t>(ranks)), all_wrote(ranks) {}
  std::vector<std::vector<char>> blocks;
  std::barrier<> all_wrote;
};
struct Place {
  Board* board;
  int rank;
};

int exchange(const void* own, size_t bytes, baton_blocks* blocks, void* context) {
  const auto& [board, rank] = *static_cast<Place*>(context);
  const char* const begin = static_cast<const char*>(own);
  board->blocks[static_cast<std::size_t>(rank)].assign(begin, begin + bytes);
  board->all_wrote.arrive_and_wait();
  int r = 0;
  for (const auto& block : board->blocks)
    if (const int status = baton_blocks_set(blocks, r++, block.data(), block.size())) return status;
  return 0;
}

int free_port() {
  const int probe = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const bool bound = bind(probe, any, length) == 0 && getsockname(probe, any, &length) == 0;
  close(probe);
  REQUIRE(bound);
  return ntohs(address.sin_port);
}

void on_ucx(int size, const std::function<int(int rank, baton_transport**)>& connect,
            const Body& body) {
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      baton_transport* transport = nullptr;
      const int status = connect(r, &transport);
      CHECK_MESSAGE(status == BATON_OK, std::string(baton_last_error()));
      if (status != BATON_OK) return;
      baton_communicator* world = nullptr;
      CHECK(baton_communicator_create(transport, Options(), &world) == BATON_OK);
      body(world);
      baton_communicator_destroy(world);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("ranks that UCX connects by an exchange of the program") {
  for (const int size : {1, 2, 3}) {
    Board board(size);
    on_ucx(
        size,
        [&](int rank, baton_transport** transport) {
          Place place{&board, rank};
          return baton_ucx_transport_by_exchange(rank, size, exchange, &place, nullptr, transport);
        },
        [&](baton_communicator* world) {
          CHECK(baton_size(world) == size);
          for (const long long count : {0, 1, 1009}) every_collective(world, count);
        });
  }
}

TEST_CASE("ranks that meet at an address") {
  for (const int size : {1, 2, 3}) {
    const std::string address = "127.0.0.1:" + std::to_string(free_port());
    const baton_ucx_options options{sizeof options, 20'000, 5'000, 1};
    on_ucx(
        size,
        [&](int rank, baton_transport** transport) {
          const int status = baton_ucx_transport(rank, size, address.c_str(), &options, transport);
          CHECK(baton_transport_rank(*transport) == rank);
          CHECK(baton_transport_size(*transport) == size);
          return status;
        },
        [](baton_communicator* world) { every_collective(world, 17); });
  }
}

TEST_CASE("splits of a concurrent transport are used by different threads at once") {
  Board board(2);
  on_ucx(
      2,
      [&](int rank, baton_transport** transport) {
        Place place{&board, rank};
        const baton_ucx_options options{sizeof options, 0, 0, 1};
        return baton_ucx_transport_by_exchange(rank, 2, exchange, &place, &options, transport);
      },
      [](baton_communicator* world) {
        baton_communicator* part = nullptr;
        CHECK(baton_split(world, 0, 0, &part) == BATON_OK);
        std::thread waits;  // for rank 1, which comes last
        if (baton_rank(world) == 0) {
          waits = std::thread([&] { CHECK(baton_barrier(world, nullptr) == BATON_OK); });
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
        int x = 1;
        const int status = baton_all_reduce(part, &x, &x, 1, BATON_I32, BATON_SUM, nullptr);
        CHECK_MESSAGE(status == BATON_OK, std::string(baton_last_error()));
        CHECK(x == 2);
        if (waits.joinable()) {
          waits.join();
        } else {
          CHECK(baton_barrier(world, nullptr) == BATON_OK);
        }
        baton_communicator_destroy(part);
      });
}

TEST_CASE("an exchange that fails or brings nothing, and wrong arguments") {
  baton_transport* transport = nullptr;
  const auto by = [&](baton_exchange with, int rank = 0, int size = 1) {
    const int status =
        baton_ucx_transport_by_exchange(rank, size, with, nullptr, nullptr, &transport);
    CHECK(transport == nullptr);
    return status;
  };
  FAILS(by([](const void*, size_t, baton_blocks*, void*) { return 3; }), BATON_FAILED,
        {"exchange of addresses of rank 0 to return 0, found 3"});
  FAILS(by([](const void*, size_t, baton_blocks*, void*) { return 0; }), BATON_TRANSPORT,
        {"exchange of addresses", "address of rank 0", "0 bytes"});
  FAILS(by([](const void* own, size_t, baton_blocks* blocks, void*) {
          FAILS(baton_blocks_set(blocks, 1, own, 1), BATON_INVALID_ARGUMENT,
                {"from 0 to 0, found rank 1"});
          FAILS(baton_blocks_set(blocks, 0, nullptr, 1), BATON_INVALID_ARGUMENT,
                {"the bytes of a block, found NULL"});
          return baton_blocks_set(blocks, -1, own, 1);
        }),
        BATON_INVALID_ARGUMENT, {"found rank -1"});
  FAILS(by(nullptr), BATON_INVALID_ARGUMENT, {"an exchange of addresses, found NULL"});
  const auto none = [](const void*, size_t, baton_blocks*, void*) { return 0; };
  FAILS(by(none, 2, 2), BATON_INVALID_ARGUMENT, {"found rank 2 of size 2"});
  FAILS(by(none, 0, -1), BATON_INVALID_ARGUMENT, {"found rank 0 of size -1"});

  FAILS(baton_ucx_transport(0, 1, nullptr, nullptr, &transport), BATON_INVALID_ARGUMENT,
        {"an address, found NULL"});
  FAILS(baton_ucx_transport(0, 2, "nowhere", nullptr, &transport), BATON_INVALID_ARGUMENT,
        {"found \"nowhere\""});
  baton_ucx_options options{sizeof options, -1, 0, 0};
  FAILS(baton_ucx_transport(0, 2, "127.0.0.1:1", &options, &transport), BATON_INVALID_ARGUMENT,
        {"meeting_ms of at least 0, found -1"});
  options = {sizeof options, 0, -1, 0};
  FAILS(baton_ucx_transport(0, 2, "127.0.0.1:1", &options, &transport), BATON_INVALID_ARGUMENT,
        {"farewell_ms of at least 0, found -1"});
  options = {sizeof options, 100, 100, 0};
  FAILS(baton_ucx_transport(1, 2, "127.0.0.1:1", &options, &transport), BATON_TIMEOUT,
        {"within 100 ms"});
  FAILS(baton_ucx_transport(0, 2, "127.0.0.1:1", &options, nullptr), BATON_INVALID_ARGUMENT,
        {"an address for the handle"});
}
