/// Schedules of pipelines: read, proved and printed.

#include "transformer/pipeline/schedule.hpp"

#include "target.hpp"
#include "transformer/pipeline/verify.hpp"

using namespace baton;
using namespace baton::transformer;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::accepted([&] {
    const PipelineSchedule schedule = parse_pipeline(fuzz::text_of(data, size), "pipeline");
    if (verify(schedule).right())
      fuzz::require(parse_pipeline(print(schedule), "pipeline").ranks == schedule.ranks,
                    "print() is read back");
  });
  return 0;
}
