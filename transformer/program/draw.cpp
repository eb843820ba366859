#include "draw.hpp"

#include <fmt/core.h>

#include <cmath>
#include <memory>

#include "../pipeline/program.hpp"
#include "baton/simulate.hpp"
#include "diagrams/diagrams.hpp"

namespace baton::transformer::program {
namespace {

PipelineLoad load_of(const DrawOptions& options) {
  const double forward = options.forward_ms,
               backward = options.backward_ms > 0 ? options.backward_ms : 2 * forward;
  PipelineLoad load;
  load.elements = [bytes = options.bytes](const PipelineAction&) { return bytes; };
  load.ns = [=, part = options.weight_part](const PipelineAction& action) -> std::int64_t {
    switch (action.work) {
      case PipelineWork::forward:
        return std::llround(forward * 1e6);
      case PipelineWork::backward:
        return std::llround(backward * 1e6);
      case PipelineWork::backward_input:
        return std::llround(backward * (1 - part) * 1e6);
      case PipelineWork::backward_weight:
        return std::llround(backward * part * 1e6);
    }
    return 0;
  };
  return load;
}

std::shared_ptr<const Hosts> hosts_of(const Network& network, int ranks) {
  const int each = network.ranks_per_host;
  if (each <= 0 || each >= ranks) return nullptr;
  std::vector<int> hosts;
  for (int rank = 0; rank < ranks; ++rank) hosts.push_back(rank / each);
  return host_grouping(hosts);
}

}  // namespace

Drawn draw(const PipelineSchedule& schedule, const DrawOptions& options) {
  diagrams::ending_of(options.output);  // refuses before the simulation
  const auto programs =
      std::make_shared<const std::vector<Schedule>>(programs_of(schedule, load_of(options)));
  const Network network = options.network.empty() ? Network{} : network_named(options.network);
  SimulateOptions how;
  how.hosts = hosts_of(network, schedule.size());
  how.timeline = true;
  how.panel = 100'000;  // messages progress beside computations
  const Prediction prediction = simulate(programs, 1, network, how);
  Timeline timeline = *prediction.timeline;
  finish(timeline);
  timeline.title = options.title.empty()
                       ? fmt::format("{}, {} micro-batches", schedule.name, schedule.micro_batches)
                       : options.title;
  if (options.network.empty()) timeline.parameters = "messages take no time";
  diagrams::Options picture;
  picture.critical_path = options.critical_path;
  diagrams::write(options.output, timeline, picture);
  std::int64_t busy = 0;
  for (const Schedule& program : *programs) busy += program.computed();
  const auto whole = static_cast<double>(prediction.total) * schedule.size();
  return {prediction.total, whole > 0 ? 1 - static_cast<double>(busy) / whole : 0};
}

}  // namespace baton::transformer::program
