#include <baton/baton.hpp>
#include <cstdio>
#include <vector>

int main() {
  baton::run_threads(4, [](auto transport) {
    baton::Communicator world(std::move(transport));
    std::vector<float> data(1000, static_cast<float>(world.rank() + 1));
    world.all_reduce(data, baton::sum);
    if (world.rank() == 0) std::printf("%g\n", static_cast<double>(data.back()));
  });
}
