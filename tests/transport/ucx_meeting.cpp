/// A process of ucx_meeting_test.py: meets the others, reduces with them, and says how it went.
///
/// Usage: ucx_meeting RANK SIZE HOST:PORT MILLISECONDS

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "baton/communicator.hpp"
#include "baton/error.hpp"
#include "baton/ucx.hpp"

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  try {
    baton::Communicator c(
        baton::ucx_transport(std::atoi(argv[1]), std::atoi(argv[2]), argv[3],
                             {.meeting = std::chrono::milliseconds(std::atoi(argv[4]))}));
    std::vector<std::int64_t> ranks(100'000, c.rank() + 1);
    c.all_reduce(ranks, baton::sum);
    baton::Communicator last = c.split(c.rank() / 2);
    last.barrier();
    std::printf("%lld\n", static_cast<long long>(ranks.back()));
    return 0;
  } catch (const baton::Error& error) {
    std::printf("%s: %s\n", std::string(baton::name(error.code)).c_str(), error.what());
    return 1;
  }
}
