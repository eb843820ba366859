#include "transformer/predict/program.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "baton/verify.hpp"
#include "models.hpp"
#include "support/ranks.hpp"
#include "transformer/training/analysis.hpp"

using namespace baton;
using namespace baton::transformer;
using support::plan;
using support::small_model;

namespace {

using Stage = std::optional<ShardingStage>;
const std::vector<Stage> stages{std::nullopt, ShardingStage::optimizer, ShardingStage::gradients,
                                ShardingStage::parameters};

std::vector<Schedule> programs(const StepPlan& plan) {
  std::vector<Schedule> all;
  for (int rank = 0; rank < plan.layout.ranks(); ++rank) all.push_back(program_of(plan, rank));
  return all;
}

/// Elements that a rank sends in an all_reduce.
std::int64_t all_reduced(std::int64_t elements, int ranks, int rank, const StepPlan& plan) {
  StepGroup group{{}, rank};
  for (int r = 0; r < ranks; ++r) group.ranks.push_back(r);
  const StepCollective call{Collective::all_reduce, Axis::dp, elements};
  return plan.choice.schedule(call, group, plan.choice.of(call, group)).sent();
}

/// A collective, the elements of each rank's input, and whether it is of backward.
using Exchanged = std::tuple<std::string, std::int64_t, bool>;

}  // namespace

TEST_CASE("programs of every form are right") {
  std::vector<StepLayout> layouts;
  const auto add = [&](StepLayout layout) {
    layout.micro_batches = 2;
    for (const Stage stage : stages) {
      layout.stage = stage;
      layouts.push_back(layout);
    }
  };
  for (const int size : {1, 2, 3, 4, 5, 7, 8}) add({.dp = size});
  for (const int size : {2, 4}) {
    add({.tp = size});
    add({.tp = size, .sequence_parallel = true});
    add({.sp = size});
    add({.pp = size});
    add({.pp = size, .schedule = "gpipe"});
    add({.pp = size, .schedule = "zb_h1"});
  }
  add({.pp = 2, .schedule = "interleaved_1f1b", .stages_per_rank = 2});
  add({.dp = 2, .tp = 2, .pp = 2});
  add({.dp = 2, .tp = 2, .sp = 2, .pp = 2, .sequence_parallel = true, .schedule = "zb_h1"});
  for (const StepLayout& layout : layouts) {
    CAPTURE(print(layout));
    const std::vector<Schedule> all = programs(plan(small_model(16), layout));
    const Proof proof = baton::verify(all, problems_of(all));
    for (const Finding& finding : proof.findings) CHECK(finding.sentence == "");
    CHECK(proof.holds());
  }
}

TEST_CASE("a step without messages computes all of a rank's layers, and nothing else") {
  for (const int micro_batches : {1, 2, 3, 5}) {
    const StepPlan one = plan(small_model(8), {.micro_batches = micro_batches});
    const Schedule program = program_of(one, 0);
    CHECK(program.messages() == 0);
    // The blocks, the head, and AdamW at half a ns for a parameter.
    CHECK(program.computed() ==
          micro_batches * (4 * 3000 + 900) + (small_model(8).gpt2.parameters() + 1) / 2);
  }
  for (const char* schedule : {"gpipe", "1f1b", "zb_h1"}) {
    const StepPlan two = plan(small_model(8), {.pp = 2, .micro_batches = 4, .schedule = schedule});
    CHECK(program_of(two, 0).computed() + program_of(two, 1).computed() -
              static_cast<std::int64_t>(0.5 * 2 * 16 * 8) / 2 >=
          4 * (4 * 3000 + 900));
  }
}

TEST_CASE("units have the model's parameters") {
  StepModel model = small_model(8);
  const auto sum = [&](const StepLayout& layout) {
    std::int64_t elements = 0;
    for (int pp = 0; pp < layout.pp; ++pp)
      for (const StepUnit& unit : units_of(model, layout, pp)) elements += unit.elements();
    return elements;
  };
  CHECK(sum({}) == model.gpt2.parameters());
  // Two ranks have the token embedding.
  CHECK(sum({.pp = 2}) == model.gpt2.parameters() + 16 * 8);
  model.gpt2 = gpt2_preset("small");
  CHECK(sum({}) == model.gpt2.parameters());
}

TEST_CASE("bytes of gradients and sharded state are the calculator's") {
  const std::map<Collective, std::string> rings{{Collective::all_reduce, "ring"},
                                                {Collective::all_gather, "ring"},
                                                {Collective::reduce_scatter, "ring"}};
  for (const int ranks : {2, 3, 4, 5, 7, 8}) {
    for (const int micro_batches : {1, 2}) {
      for (const Stage stage : stages) {
        StepLayout layout{.dp = ranks, .stage = stage, .micro_batches = micro_batches};
        const StepModel model = small_model(16);
        StepPlan its = plan(model, layout, {}, rings);
        its.bucket_bytes = 1;  // every parameter alone
        AnalyzedModel analyzed;
        for (const StepUnit& unit : units_of(model, layout, 0)) {
          if (stage) analyzed.units.push_back(unit.elements());
          for (const StepParam& param : unit.params)
            if (!stage) analyzed.units.push_back(param.elements);
        }
        analyzed.bytes = parameter_bytes(Datatype::f32, Datatype::f32, 2);
        analyzed.ranks = ranks;
        analyzed.micro_batches = micro_batches;
        for (int rank = 0; rank < ranks; ++rank) {
          // And the loss.
          const std::int64_t loss = 4 * all_reduced(2, ranks, rank, its);
          CHECK(4 * program_of(its, rank).sent() ==
                sent_bytes(analyzed, stage, rank).total() + loss);
        }
      }
    }
  }
}

TEST_CASE("bytes over boundaries are the calculator's") {
  const StepModel model = small_model(8);
  const StepPlan its = plan(model, {.pp = 4, .micro_batches = 4});
  const std::int64_t boundary =
      boundary_bytes({2, model.seq, model.gpt2.d_model}, Datatype::f32) * 4;
  // Whether shapes fit, whether somebody has failed, and the loss go to all ranks.
  const auto control = [&](int rank) {
    return 4 * (all_reduced(16, 4, rank, its) + 2 * all_reduced(2, 4, rank, its));
  };
  for (int rank = 1; rank < 3; ++rank) {
    CHECK(4 * program_of(its, rank).sent() ==
          pipeline_sent_bytes(boundary, 4, rank) + control(rank));
  }
  // The first and the last also sum the gradient of the token embedding.
  CHECK(4 * program_of(its, 0).sent() ==
        pipeline_sent_bytes(boundary, 4, 0) + control(0) + 4 * 16 * 8);
}

TEST_CASE("exchanges of a block are those of its budget") {
  for (const StepLayout& layout :
       {StepLayout{.tp = 2}, StepLayout{.tp = 4}, StepLayout{.tp = 2, .sequence_parallel = true},
        StepLayout{.sp = 2}, StepLayout{.sp = 4}, StepLayout{.tp = 2, .sp = 2},
        StepLayout{.tp = 2, .sp = 2, .sequence_parallel = true}}) {
    CAPTURE(print(layout));
    const StepModel model = small_model(3);
    std::map<Exchanged, int> expected, found;
    support::on_ranks(layout.ranks(), [&](Communicator& world) {
      const Mesh mesh(world, {{Axis::sp, layout.sp}, {Axis::tp, layout.tp}});
      TransformerBlock<float> block(model.gpt2.block(0), {1});
      block.parallelize(mesh, layout.sequence_parallel);
      const StepShare share = share_of(model, layout);
      const std::int64_t positions = share.boundary / share.samples / model.gpt2.d_model;
      const auto lines = block.budget({share.samples, positions, model.gpt2.d_model});
      if (world.rank() != 0) return;
      for (const BudgetLine& line : lines) {
        if (line.op == Operator::identity || line.op == Operator::split) continue;
        std::int64_t elements = 1;
        for (int d = 0; d < line.shape.rank(); ++d) elements *= line.shape[d];
        expected[{std::string(name(line.op)), elements, line.backward}] += line.times;
      }
    });
    for (const bool backward : {false, true}) {
      const auto kind = StepUnit::Kind::block;
      for (const StepPiece& piece : backward ? backward_pieces(model, layout, kind, {})
                                             : forward_pieces(model, layout, kind, {})) {
        for (const StepCollective& call : piece.starts) {
          const bool blocks = call.collective == Collective::reduce_scatter ||
                              call.collective == Collective::all_to_all;
          const int size = blocks ? size_of(layout, call.along) : 1;
          ++found[{std::string(name(call.collective)), size * call.count, backward}];
        }
      }
    }
    CHECK(found == expected);
  }
}

TEST_CASE("pieces of a block take its time") {
  for (const StepLayout& layout : {StepLayout{}, StepLayout{.tp = 2}, StepLayout{.sp = 4},
                                   StepLayout{.tp = 2, .sp = 2, .sequence_parallel = true}}) {
    for (const std::int64_t ns : {0, 1, 7, 1000, 12345}) {
      ComputeTimes times;
      times.block_forward = ns, times.block_backward = 2 * ns;
      const PartTimes parts = parts_of(small_model(2), layout, times);
      const auto kind = StepUnit::Kind::block;
      const auto sum = [](const std::vector<StepPiece>& pieces) {
        std::int64_t all = 0;
        for (const StepPiece& piece : pieces) all += piece.ns;
        return all;
      };
      const auto backward = [&](BackwardPart part) {
        return backward_pieces(small_model(2), layout, kind, parts, part);
      };
      CHECK(sum(forward_pieces(small_model(2), layout, kind, parts)) == ns);
      CHECK(sum(joined(forward_pieces(small_model(2), layout, kind, parts))) == ns);
      CHECK(sum(backward(BackwardPart::all)) == 2 * ns);
      CHECK(sum(backward(BackwardPart::input)) + sum(backward(BackwardPart::weights)) == 2 * ns);
    }
  }
}

TEST_CASE("joined pieces wait, start and complete the same in the same order") {
  for (const StepLayout& layout : {StepLayout{}, StepLayout{.tp = 2}, StepLayout{.sp = 4},
                                   StepLayout{.tp = 2, .sp = 2, .sequence_parallel = true}}) {
    const auto pieces = backward_pieces(small_model(2), layout, StepUnit::Kind::block, {});
    const auto fewer = joined(pieces);
    CHECK(fewer.size() < pieces.size());
    const auto all = [](const std::vector<StepPiece>& of, const auto member) {
      auto list = of.front().*member;
      for (std::size_t i = 1; i < of.size(); ++i)
        list.insert(list.end(), (of[i].*member).begin(), (of[i].*member).end());
      return list;
    };
    CHECK(all(fewer, &StepPiece::waits) == all(pieces, &StepPiece::waits));
    CHECK(all(fewer, &StepPiece::starts) == all(pieces, &StepPiece::starts));
    CHECK(all(fewer, &StepPiece::completes) == all(pieces, &StepPiece::completes));
    CHECK(all(pieces, &StepPiece::completes).size() == block_param_count);
  }
}
