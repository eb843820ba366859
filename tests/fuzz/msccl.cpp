/// MSCCL's algorithms. The first byte: elements of a chunk, and whether they run in place.

#include "diagrams/readers.hpp"

#include "target.hpp"

using namespace baton;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const diagrams::MscclOptions options{.chunk = 1 + (data[0] >> 1), .in_place = data[0] % 2 != 0};
  fuzz::accepted(
      [&] { diagrams::parse_msccl(fuzz::text_of(data + 1, size - 1), "algorithm.xml", options); });
  return 0;
}
