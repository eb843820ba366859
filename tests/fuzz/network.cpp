/// Networks.

#include "baton/simulate.hpp"

#include "target.hpp"

using namespace baton;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::accepted([&] {
    const Network network = parse_network(fuzz::text_of(data, size), "network");
    const Network again = parse_network(print(network), "printed network");
    fuzz::require(again == network, "print() is read back");
    static_cast<void>(summary(network));
    for (const std::int64_t bytes : {0, 1, 1 << 20, 1 << 30}) {
      for (const NetworkLevel* level : {&network.within, &network.across})
        fuzz::require(level->send.of(bytes) >= 0 && level->wire.of(bytes) >= 0,
                      "times are not negative");
    }
  });
  return 0;
}
