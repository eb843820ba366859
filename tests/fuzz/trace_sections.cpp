/// Recordings whose checksums are right. The input is a list of sections, each with a byte of its
/// kind and two bytes of its length, lowest first, in front.

#include <algorithm>

#include "target.hpp"
#include "trace/part.hpp"
#include "trace/section.hpp"

using namespace baton;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string file = tracing::file_head();
  for (std::string_view rest = fuzz::text_of(data, size); rest.size() >= 3;) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(rest[i]); };
    const std::size_t length = std::min<std::size_t>(byte(1) | byte(2) << 8, rest.size() - 3);
    file += tracing::section(static_cast<tracing::SectionKind>(byte(0)), rest.substr(3, length));
    rest.remove_prefix(3 + length);
  }
  fuzz::accepted([&] {
    tracing::ReadParts read = tracing::read_parts(file, "trace");
    std::string again = tracing::file_head();
    for (const tracing::Part& part : read.parts) again += tracing::written(part);
    const tracing::ReadParts reread = tracing::read_parts(again, "written trace");
    fuzz::require(reread.damage.empty() && reread.parts.size() == read.parts.size(),
                  "what is written is whole");
    tracing::merged(std::move(read.parts), true);
  });
  return 0;
}
