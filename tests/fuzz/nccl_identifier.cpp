/// NCCL's unique identifiers, which a program carries from process to process by its own means.

#include "dropin/nccl/identifier.hpp"

#include <string>
#include <vector>

#include "target.hpp"

using namespace baton;
using namespace baton::nccl_abi;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::accepted([&] {
    const Origin origin = parse_identifier(fuzz::text_of(data, size));
    std::vector<std::string> addresses;
    int port = 1;
    for (const std::string& address : origin.addresses) {
      const std::size_t colon = address.rfind(':');
      port = std::stoi(address.substr(colon + 1));
      fuzz::require(colon > 0 && port > 0 && port < 1 << 16, "an address has a port");
      addresses.push_back(address.substr(0, colon));
    }
    const Origin again =
        parse_identifier(identifier_text(origin.key, origin.meeting, port, addresses, size + 128));
    fuzz::require(again.key == origin.key && again.meeting == origin.meeting &&
                      again.addresses == origin.addresses,
                  "an identifier is read as it was written");
    fuzz::require(origin.with(1).meeting == again.with(1).meeting, "all go to the same meeting");
  });
  return 0;
}
