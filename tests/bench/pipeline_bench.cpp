// What a pipeline's runner costs an action: stages compute next to nothing here. On one rank
// nothing is sent; on two threads the time contains each action's message of one element.

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <vector>

#include "baton/launch.hpp"
#include "transformer/pipeline/runner.hpp"

namespace {

using namespace baton;
using namespace baton::transformer;

/// Passes on what it gets.
class Idle final : public PipelineStage<float> {
 public:
  Idle(bool first, bool last) : first_(first), last_(last) {}
  Shape input(int) const override { return first_ ? Shape() : Shape{1}; }
  Shape output(int) const override { return last_ ? Shape() : Shape{1}; }
  StageOutput<float> forward(int, Array<float> x, Context&) override {
    return {first_ ? Array<float>({1}) : std::move(x)};
  }
  Array<float> backward(Array<float> dy, Context&) override {
    if (first_) return {};
    return last_ ? Array<float>({1}) : std::move(dy);
  }
  Params<float> params() override { return {}; }

 private:
  bool first_, last_;
};

/// Microseconds of an action of one rank, the least of some passes.
double microseconds(int ranks, const char* algorithm, int stages_per_rank) {
  constexpr int micro_batches = 64, passes = 200;
  double best = 1e9;
  run_threads(ranks, [&](std::unique_ptr<Transport> transport) {
    Communicator world(std::move(transport));
    const Mesh mesh(world, {{Axis::pp, ranks}});
    const PipelineSchedule schedule =
        pipeline_schedule(algorithm, {ranks, micro_batches, stages_per_rank});
    std::vector<std::unique_ptr<Idle>> own;
    std::map<int, PipelineStage<float>*> stages;
    const std::vector<int> places = ranks_of_stages(schedule);
    for (int s = 0; s < schedule.stages; ++s) {
      if (places[static_cast<std::size_t>(s)] != mesh.rank(Axis::pp)) continue;
      own.push_back(std::make_unique<Idle>(s == 0, s + 1 == schedule.stages));
      stages[s] = own.back().get();
    }
    Pipeline<float> pipeline(schedule, stages, mesh);
    DistributedDataParallel<float> replicas(pipeline, mesh);
    const auto actions = static_cast<double>(schedule.ranks[0].size());
    for (int pass = 0; pass < passes; ++pass) {
      const auto begin = std::chrono::steady_clock::now();
      pipeline.run(replicas, {});
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - begin;
      if (world.rank() == 0) best = std::min(best, took.count() / actions);
    }
  });
  return best;
}

}  // namespace

int main() {
  fmt::print("µs of an action, least of 200 passes of 64 micro-batches\n");
  fmt::print("{:<44} {:6.2f}\n", "1 rank, 4 stages, no messages",
             microseconds(1, "interleaved_1f1b", 4));
  fmt::print("{:<44} {:6.2f}\n", "2 threads, 1f1b, with its messages", microseconds(2, "1f1b", 1));
  fmt::print("{:<44} {:6.2f}\n", "2 threads, zb_h1, with its messages",
             microseconds(2, "zb_h1", 1));
}
