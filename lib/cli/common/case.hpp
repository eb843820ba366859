#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "baton/baton.hpp"

namespace baton::cli {

/// Shapes of an all_to_all or all_gather of tensors, as rank r sees them (all ranks alike).
struct TensorShapes {
  Shape input, output;
  int scatter_dim = 0, gather_dim = 0;  ///< from 0 on; all_gather has the latter only
};

/// busbw / algbw among so many parts, as nccl-tests defines it; scan and exscan, which it has not,
/// as reduce.
double bus_factor(Collective collective, double parts);

/// A case to run, check and time: a collective on data of a size or a shape.
struct Case {
  std::string name;        ///< of the data; may be empty
  std::int64_t times = 1;  ///< per pass over a workload
  std::int64_t asked = 0;  ///< bytes that were asked for; bytes() may be fewer: equal blocks
  Problem problem;         ///< as rank 0 sees it
  Datatype type = Datatype::f32;
  OpKind op = OpKind::sum;
  std::optional<TensorShapes> tensor;
  /// A user's own, to be run in place of an algorithm: one schedule per rank.
  std::shared_ptr<const std::vector<Schedule>> schedules;

  Collective collective() const { return problem.collective; }
  int ranks() const { return problem.size; }
  /// Elements of this rank's own input and output, were they apart.
  std::int64_t input_count(int rank) const;
  std::int64_t output_count(int rank) const;
  /// Where block i begins, in elements, in the buffer that has one per rank.
  std::int64_t block_offset(int i) const;
  /// Size as nccl-tests counts it: bytes of the whole vector, all ranks' blocks together.
  std::int64_t bytes() const;
  /// busbw / algbw.
  double bus_factor() const { return cli::bus_factor(collective(), ranks()); }
  /// The call on this rank's buffers, described, and made; not for `schedules`.
  Call call(const ConstData& in, const Data& out) const;
  void run(Communicator& communicator, const ConstData& in, const Data& out,
           const Choice& choice) const;
  /// "all_reduce of 3.0 MiB f32"
  std::string text() const;
};

/// A case on `elements` of data by nccl-tests' counting: where every rank has a block, rounded
/// down to equal ones, but to one element at least.
Case flat_case(Collective collective, int ranks, std::int64_t elements, Datatype type, OpKind op,
               int root);
/// Cases of these sizes in bytes; of sizes too small to differ, the first.
std::vector<Case> sized_cases(Collective collective, int ranks,
                              const std::vector<std::int64_t>& sizes, Datatype type, OpKind op,
                              int root);
/// The same of tensors; throws Error(invalid_argument) where a dimension does not divide.
Case tensor_case(Collective collective, int ranks, const Shape& input, Datatype type,
                 int scatter_dim, int gather_dim);
/// A user's schedules; throws Error(invalid_argument) where their headers contradict each other.
Case schedule_case(std::vector<Schedule> schedules, Datatype type, OpKind op);

}  // namespace baton::cli
