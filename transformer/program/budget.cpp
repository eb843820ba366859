#include "budget.hpp"

#include <fmt/core.h>

#include "../training/step.hpp"
#include "model.hpp"

namespace baton::transformer::program {
namespace {

constexpr const char* row = "{:<26} {:<9} {:<15} {:<20} {:>6} {:>9} {:>12} {:>7}  {}\n";

std::string share(const Traffic& sent, double activation) {
  return fmt::format("{:.3f}", static_cast<double>(sent.bytes) / activation);
}

void print(const BudgetLine& line, double activation) {
  fmt::print(row, line.layer, line.backward ? "backward" : "forward", name(line.op),
             line.shape.text(), line.times, line.sent.messages, line.sent.bytes,
             share(line.sent, activation), line.choice.algorithm);
}

void print_sum(const char* of, bool backward, const Traffic& sent, double activation) {
  fmt::print(row, of, backward ? "backward" : "forward", "", "", "", sent.messages, sent.bytes,
             share(sent, activation), "");
}

}  // namespace

template <class T>
void print_budget(Communicator& world, const TrainOptions& options) {
  const Mesh mesh(world, options.axes());
  const Shape whole{options.batch(), options.seq, options.block.d_model};
  const Batch<T> batch{Array<T>::uninitialized(whole), Array<T>::uninitialized(whole)};
  const Share<T> share = share_of(batch, mesh, options.sequence_parallel);
  const Shape x = share.batch.x.shape();
  const Shape micro = x.with(0, slice_of(x[0], options.micro_batches, 0).size());
  const double activation =
      static_cast<double>(micro[0] * whole[1] * whole[2]) * static_cast<double>(sizeof(T));

  Params<T> params;
  std::vector<BudgetLine> lines;
  const auto blocks = make_blocks<T>(options);
  for (const auto& block : blocks) {
    block->parallelize(mesh, options.sequence_parallel);
    const auto more = block->budget(micro);
    lines.insert(lines.end(), more.begin(), more.end());
    const Params<T> own = block->parallel().params();
    params.insert(params.begin(), own.begin(), own.end());  // backward goes from the last
  }
  const Traffic gradients = GradientBuckets<T>(params, mesh, StepOptions{}.bucket_bytes).traffic();
  double loss = 0;
  Communicator* const ranks = mesh.along(all_axes);
  const Data one(&loss, 1, Datatype::f64);
  const Traffic of_loss = ranks ? ranks->traffic(calls::all_reduce(one, one, sum)) : Traffic{};
  if (world.rank() != 0) return;

  fmt::print("# what rank 0 of {} sends in a step; A = {:.0f} B: activations {} of {} sequences\n",
             world.size(), activation, whole.with(0, micro[0]).text(), micro[0]);
  if (options.micro_batches > 1)
    fmt::print("# layers: of the first of {} micro-batches; gradients: once a step\n",
               options.micro_batches);
  fmt::print(row, "layer", "direction", "operator", "of", "calls", "messages", "bytes", "/ A",
             "algorithm");
  Traffic sums[2];
  for (const bool backward : {false, true}) {
    for (const BudgetLine& line : lines) {
      if (line.backward != backward) continue;
      print(line, activation);
      sums[backward] += line.sent;
    }
    print_sum("all layers", backward, sums[backward], activation);
  }
  print_sum("gradients", true, gradients, activation);
  print_sum("loss", true, of_loss, activation);
}

template void print_budget<float>(Communicator&, const TrainOptions&);
template void print_budget<double>(Communicator&, const TrainOptions&);
template void print_budget<bf16>(Communicator&, const TrainOptions&);

}  // namespace baton::transformer::program
