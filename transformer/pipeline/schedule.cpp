#include "schedule.hpp"

namespace baton::transformer {

std::string_view name(PipelineWork work) {
  switch (work) {
    case PipelineWork::forward:
      return "forward";
    case PipelineWork::backward:
      return "backward";
    case PipelineWork::backward_input:
      return "backward_input";
    case PipelineWork::backward_weight:
      return "backward_weight";
  }
  return "unknown";
}

std::vector<int> ranks_of_stages(const PipelineSchedule& schedule) {
  std::vector<int> places(static_cast<std::size_t>(schedule.stages), -1);
  for (int rank = 0; rank < schedule.size(); ++rank) {
    for (const PipelineAction& action : schedule.ranks[static_cast<std::size_t>(rank)]) {
      int& place = places[static_cast<std::size_t>(action.stage)];
      if (action.work == PipelineWork::forward && place < 0) place = rank;
    }
  }
  return places;
}

}  // namespace baton::transformer
