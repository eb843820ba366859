/// Recordings, from the bytes of a file.

#include "trace/part.hpp"

#include "target.hpp"

using namespace baton;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::accepted([&] {
    tracing::merged(tracing::read_parts(fuzz::text_of(data, size), "trace").parts, true);
  });
  return 0;
}
