#pragma once
/// Descriptions of collective calls.

#include <cstdint>
#include <span>

#include "baton/collective.hpp"
#include "baton/data.hpp"
#include "baton/options.hpp"
#include "baton/types.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// The description of one collective call. The functions in namespace `calls` make it. It refers to
/// the caller's buffers and lists, which must outlive its use.
struct Call {
  Collective collective = Collective::barrier;
  Op op;
  int root = 0;
  std::span<const ConstData> inputs{};  ///< tensors laid end to end, instead of `input`
  std::span<const Data> outputs{};      ///< likewise; without `inputs`, the call is in place
  ConstData input{};
  Data output{};
  bool tensor = false;  ///< shapes and dimensions apply
  Shape input_shape, output_shape;
  int scatter_dim = 0, gather_dim = 0;
  std::span<const std::int64_t> send_counts{}, send_offsets{}, recv_counts{}, recv_offsets{};
  /// Of gather and scatter: only the root knows the uneven counts; other ranks' lists are ignored.
  /// The algorithm is then the registry's first, whatever is chosen.
  bool counts_at_root = false;
  Choice choice{};
};

/// One function for each collective. n is `input.count` unless said otherwise, counts and offsets
/// are elements, P is the number of ranks. Communicator has every function in three forms:
/// all_reduce() waits, start_all_reduce() returns a Request, plan_all_reduce() a PersistentCall,
/// each with a Choice as one more argument. StreamCommunicator has them with a Stream.
namespace calls {

/// Every rank's `data` (n) equals root's.
Call broadcast(Data data, int root);
/// Several tensors, in place, as one vector.
Call broadcast(std::span<const Data> tensors, int root);
/// output (n) of root = op over all ranks' inputs (n); elsewhere `output` is ignored.
Call reduce(ConstData input, Data output, Op op, int root);
/// output (n) = op over all ranks' inputs (n).
Call all_reduce(ConstData input, Data output, Op op);
/// In place.
Call all_reduce(Data data, Op op);
/// Several tensors, in place, as one vector.
Call all_reduce(std::span<const Data> tensors, Op op);
/// output (P·n) of root = all inputs (n) in rank order.
Call gather(ConstData input, Data output, int root);
/// output of root = all inputs, that of rank r being counts[r] elements, in rank order.
Call gather_v(ConstData input, Data output, std::span<const std::int64_t> counts, int root);
/// output (n) = block `rank` of root's input (P·n).
Call scatter(ConstData input, Data output, int root);
/// output (counts[rank]) = block `rank` of root's input, whose blocks lie end to end.
Call scatter_v(ConstData input, Data output, std::span<const std::int64_t> counts, int root);
/// output (P·n) = all inputs (n) in rank order.
Call all_gather(ConstData input, Data output);
/// output = all inputs joined along `dim` (negative: from the end): [.., n, ..] -> [.., P·n, ..].
Call all_gather(const ConstTensor& input, const Tensor& output, int dim);
/// output = all inputs (counts[rank]), end to end or placed at `offsets`.
Call all_gather_v(ConstData input, Data output, std::span<const std::int64_t> counts,
                  std::span<const std::int64_t> offsets = {});
/// output (n) = op over all ranks of block `rank` of the inputs (P·n).
Call reduce_scatter(ConstData input, Data output, Op op);
/// output (counts[rank]) = op over all ranks of block `rank` of the inputs.
Call reduce_scatter_v(ConstData input, Data output, std::span<const std::int64_t> counts, Op op);
/// Block j of output (P·n) = block `rank` of rank j's input (P·n).
Call all_to_all(ConstData input, Data output);
/// input is cut into P parts along scatter_dim, part i goes to rank i, and the parts received are
/// joined along gather_dim in rank order: [b, s/P, h, d], 2, 1 -> [b, s, h/P, d].
Call all_to_all(const ConstTensor& input, const Tensor& output, int scatter_dim, int gather_dim);
/// send_counts[i] elements at send_offsets[i] go to rank i; recv_counts[i] elements from rank i
/// arrive at recv_offsets[i]. Without offsets, blocks lie end to end.
Call all_to_all_v(ConstData input, std::span<const std::int64_t> send_counts, Data output,
                  std::span<const std::int64_t> recv_counts,
                  std::span<const std::int64_t> send_offsets = {},
                  std::span<const std::int64_t> recv_offsets = {});
/// output (n) = op over the inputs (n) of ranks 0 … rank.
Call scan(ConstData input, Data output, Op op);
/// output (n) = op over the inputs (n) of ranks 0 … rank - 1; untouched on rank 0.
Call exscan(ConstData input, Data output, Op op);
/// Every rank has called it.
Call barrier();

}  // namespace calls

// The functions of namespace `calls` once more, as a table: form(name, parameters, arguments) for
// each. The classes that have every collective in several forms declare and define them by it.
// clang-format off
#define BATON_COLLECTIVES(form) BATON_SIMPLE_COLLECTIVES(form) BATON_OTHER_COLLECTIVES(form)
// Those whose repeated calls take a shorter way.
#define BATON_SIMPLE_COLLECTIVES(form)                                                         \
  form(broadcast, (Data data, int root), (data, root))                                         \
  form(all_reduce, (ConstData input, Data output, Op op), (input, output, op))                 \
  form(all_reduce, (Data data, Op op), (data, op))                                             \
  form(all_gather, (ConstData input, Data output), (input, output))                            \
  form(reduce_scatter, (ConstData input, Data output, Op op), (input, output, op))             \
  form(all_to_all, (ConstData input, Data output), (input, output))                            \
  form(barrier, (), ())
#define BATON_OTHER_COLLECTIVES(form)                                                          \
  form(broadcast, (std::span<const Data> tensors, int root), (tensors, root))                  \
  form(reduce, (ConstData input, Data output, Op op, int root), (input, output, op, root))     \
  form(all_reduce, (std::span<const Data> tensors, Op op), (tensors, op))                      \
  form(gather, (ConstData input, Data output, int root), (input, output, root))                \
  form(gather_v,                                                                               \
       (ConstData input, Data output, std::span<const std::int64_t> counts, int root),         \
       (input, output, counts, root))                                                          \
  form(scatter, (ConstData input, Data output, int root), (input, output, root))               \
  form(scatter_v,                                                                              \
       (ConstData input, Data output, std::span<const std::int64_t> counts, int root),         \
       (input, output, counts, root))                                                          \
  form(all_gather, (const ConstTensor& input, const Tensor& output, int dim),                  \
       (input, output, dim))                                                                   \
  form(all_gather_v, (ConstData input, Data output, std::span<const std::int64_t> counts),     \
       (input, output, counts))                                                                \
  form(all_gather_v,                                                                           \
       (ConstData input, Data output, std::span<const std::int64_t> counts,                    \
        std::span<const std::int64_t> offsets),                                                \
       (input, output, counts, offsets))                                                       \
  form(reduce_scatter_v,                                                                       \
       (ConstData input, Data output, std::span<const std::int64_t> counts, Op op),            \
       (input, output, counts, op))                                                            \
  form(all_to_all,                                                                             \
       (const ConstTensor& input, const Tensor& output, int scatter_dim, int gather_dim),      \
       (input, output, scatter_dim, gather_dim))                                               \
  form(all_to_all_v,                                                                           \
       (ConstData input, std::span<const std::int64_t> send_counts, Data output,               \
        std::span<const std::int64_t> recv_counts),                                            \
       (input, send_counts, output, recv_counts))                                              \
  form(all_to_all_v,                                                                           \
       (ConstData input, std::span<const std::int64_t> send_counts, Data output,               \
        std::span<const std::int64_t> recv_counts, std::span<const std::int64_t> send_offsets, \
        std::span<const std::int64_t> recv_offsets),                                           \
       (input, send_counts, output, recv_counts, send_offsets, recv_offsets))                  \
  form(scan, (ConstData input, Data output, Op op), (input, output, op))                       \
  form(exscan, (ConstData input, Data output, Op op), (input, output, op))
// clang-format on
// The parameters or arguments in parentheses, to be followed by one more.
#define BATON_LIST(...) __VA_ARGS__ __VA_OPT__(, )

}  // namespace baton
#pragma GCC visibility pop
