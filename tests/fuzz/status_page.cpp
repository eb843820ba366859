/// Status pages: another process's bytes, whatever they are. They are read, described, judged and
/// made into a recording.

#include <algorithm>
#include <cstring>

#include "status/diagnosis.hpp"
#include "status/flight.hpp"
#include "status/page.hpp"
#include "target.hpp"
#include "trace/part.hpp"

using namespace baton;
using namespace baton::status;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFile input;
  std::string bytes(sizeof(Layout), '\0');
  std::memcpy(bytes.data(), data, std::min(size, bytes.size()));
  std::memcpy(bytes.data(), Layout::expected, sizeof Layout::expected);
  input.fill(bytes.data(), bytes.size());
  const PeerPage page(input.name());
  fuzz::require(page.valid(), "the page's own head is accepted");
  const Standing standing = page.read();
  for (const Operation& operation : standing.operations)
    static_cast<void>(describe(operation.call));
  if (standing.size <= 4096)
    fuzz::accepted([&] {  // more only take more time
      tracing::merged(tracing::read_parts(recording_of({&standing, 1}), "flight").parts, true);
    });
  std::vector<Witness> ranks(2);
  ranks[1] = {standing, {.life = Life::runs}, {standing}};
  const Complaint complaint{.label = "world", .number = first_pending(ranks), .name = "all_reduce"};
  fuzz::require(!diagnosis(complaint, ranks).empty(), "a hang has a sentence");
  return 0;
}
