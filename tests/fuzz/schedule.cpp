/// Schedules as text: what is read is printed, and that is read back as the same.

#include "baton/schedule/text.hpp"

#include "baton/verify.hpp"
#include "target.hpp"

using namespace baton;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::accepted([&] {
    for (const Schedule& schedule : parse(fuzz::text_of(data, size))) {
      const std::string text = print(schedule);
      fuzz::accepted([&] { fuzz::require(parse(text).at(0) == schedule, "print() is read back"); });
      fuzz::accepted([&] { static_cast<void>(problems_of({&schedule, 1})); });
    }
  });
  return 0;
}
