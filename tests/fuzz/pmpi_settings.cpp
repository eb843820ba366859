/// The environment of the MPI drop-in: BATON_PMPI's list, and after a line's end BATON_PMPI_STATS.

#include "dropin/pmpi/settings.hpp"

#include <algorithm>

#include "target.hpp"

using namespace baton;
using namespace baton::pmpi;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  const std::size_t end = std::min(text.find('\n'), size);
  const std::string_view what = text.substr(0, end), stats = text.substr(std::min(end + 1, size));
  fuzz::accepted([&] {
    const Settings settings = Settings::parse(what, stats);
    fuzz::require(settings.stats == (stats == "1"), "1 asks for statistics");
    fuzz::require(settings.any() == (what != "off"), "only off interposes nothing");
    std::string names;
    for (std::size_t i = 0; i < function_count; ++i)
      for (const bool nonblocking : {false, true})
        if ((nonblocking ? settings.nonblocking : settings.blocking)[i])
          names += (names.empty() ? "only:" : ",") + std::string(nonblocking ? "i" : "") +
                   std::string(functions[i].name);
    const Settings again = Settings::parse(names.empty() ? "off" : names, stats);
    fuzz::require(again.blocking == settings.blocking && again.nonblocking == settings.nonblocking,
                  "a list names what it interposes");
  });
  return 0;
}
