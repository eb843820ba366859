#include <c10/util/StringUtil.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "baton/calls.hpp"
#include "group.hpp"

namespace baton::pytorch {
namespace {

using c10d::OpType;
using Tensors = Group::Tensors;

/// Throws std::invalid_argument, as PyTorch's own backends do, and in their words.
auto refusing(const char* operation) {
  return [operation](const std::string& found) {
    throw std::invalid_argument(c10::str("Group::", operation, ": ", found));
  };
}

template <class Refuse>
void require_dense(const Refuse& refuse, const Tensors& tensors) {
  for (const at::Tensor& tensor : tensors) {
    c10d::assertDense(refuse, {tensor});
    c10d::assertCPU(refuse, {tensor});
  }
}

template <class Refuse>
void require_type(const Refuse& refuse, const at::Tensor& like, const Tensors& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    c10d::assertTypeMatch(refuse, like.options(), tensors, i);
}

/// A list of the root with a tensor like `own` for each rank.
template <class Refuse>
void require_list_like(const Refuse& refuse, const at::Tensor& own, const Tensors& list) {
  require_dense(refuse, list);
  require_type(refuse, own, list);
  for (std::size_t i = 0; i < list.size(); ++i)
    c10d::assertSizesMatch(refuse, own.sizes(), list, i);
}

/// What a rank gives to a reduction.
at::Tensor scaled(const at::Tensor& tensor, const c10d::ReduceOp& op) {
  if (op.op_ != c10d::ReduceOp::PREMUL_SUM) return tensor;
  const auto& factor = static_cast<const c10d::PreMulSumSupplement&>(*op.supplement_);
  const at::Tensor product = factor.tensor_factor.defined() ? tensor * factor.tensor_factor
                                                            : tensor * factor.double_factor;
  return product.to(tensor.scalar_type()).contiguous();  // the op's memory: it needs no copy
}

std::vector<std::int64_t> counts_of(const Tensors& tensors, Elements elements) {
  std::vector<std::int64_t> counts;
  for (const at::Tensor& tensor : tensors) counts.push_back(tensor.numel() * elements.per);
  return counts;
}

bool all_equal(const std::vector<std::int64_t>& counts) {
  return std::ranges::adjacent_find(counts, std::not_equal_to<>()) == counts.end();
}

/// Elements of each rank's part of a tensor that is cut along its first dimension.
std::vector<std::int64_t> split_counts(const std::vector<std::int64_t>& splits,
                                       const at::Tensor& tensor, int ranks, Elements elements) {
  c10d::checkSplitSizes(splits, tensor, ranks);
  const std::int64_t rows = tensor.size(0);
  const std::int64_t row = rows == 0 ? 0 : tensor.numel() / rows * elements.per;
  std::vector<std::int64_t> counts;
  for (int r = 0; r < ranks; ++r)
    counts.push_back(row * (splits.empty() ? rows / ranks : splits[static_cast<std::size_t>(r)]));
  return counts;
}

}  // namespace

Group::Result Group::broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) {
  const auto refuse = refusing("broadcast");
  c10d::assertRootRank(refuse, opts.rootRank, size_);
  c10d::assertSingleElement(refuse, tensors);
  c10d::assertRootTensor(refuse, opts.rootTensor, 1);
  require_dense(refuse, tensors);
  const Pointer work = this->work(OpType::BROADCAST, "broadcast", tensors, opts.timeout);
  work->results = tensors;
  const Data data = work->update(tensors[0], moved(tensors[0].scalar_type()));
  return begin(work, {calls::broadcast(data, static_cast<int>(opts.rootRank))}, opts.asyncOp);
}

Group::Result Group::allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) {
  const auto refuse = refusing("allreduce");
  c10d::assertNonEmpty(refuse, tensors);
  if (tensors[0].layout() == at::kSparse) return allreduce_sparse(tensors, opts);
  return reduce_all("all_reduce", OpType::ALLREDUCE, refuse, tensors, opts);
}

Group::Result Group::allreduce_coalesced(Tensors& tensors,
                                         const c10d::AllreduceCoalescedOptions& opts) {
  const auto refuse = refusing("allreduce_coalesced");
  c10d::assertNonEmpty(refuse, tensors);
  return reduce_all("all_reduce", OpType::ALLREDUCE_COALESCED, refuse, tensors, opts);
}

Group::Result Group::reduce_all(const char* name, OpType type, const Refuse& refuse,
                                Tensors& tensors, const c10d::AllreduceOptions& opts) {
  require_dense(refuse, tensors);
  require_type(refuse, tensors[0], tensors);
  const at::ScalarType scalar = tensors[0].scalar_type();
  const Elements elements = reduced(scalar, opts.reduceOp);
  const Pointer work = this->work(type, name, tensors, opts.timeout);
  work->results = tensors;
  Work::Lists& lists = work->lists();
  for (const Tensor& tensor : tensors) {
    const Tensor input = scaled(tensor, opts.reduceOp);
    if (!input.is_same(tensor)) work->copy_at_end(tensor, input);
    lists.outputs.push_back(work->update(input, elements));
  }
  const Op op = op_of(scalar, opts.reduceOp);
  return begin(work,
               {tensors.size() == 1 ? calls::all_reduce(lists.outputs[0], op)
                                    : calls::all_reduce(std::span<const Data>(lists.outputs), op)},
               opts.asyncOp);
}

Group::Result Group::reduce(Tensors& tensors, const c10d::ReduceOptions& opts) {
  const auto refuse = refusing("reduce");
  c10d::assertRootRank(refuse, opts.rootRank, size_);
  c10d::assertRootTensor(refuse, opts.rootTensor, static_cast<std::int64_t>(tensors.size()));
  c10d::assertSingleElement(refuse, tensors);
  require_dense(refuse, tensors);
  const at::ScalarType scalar = tensors[0].scalar_type();
  const Elements elements = reduced(scalar, opts.reduceOp);
  const Pointer work = this->work(OpType::REDUCE, "reduce", tensors, opts.timeout);
  work->results = tensors;
  const bool root = opts.rootRank == rank_;
  const Tensor input = scaled(tensors[0], opts.reduceOp);
  if (root && !input.is_same(tensors[0])) work->copy_at_end(tensors[0], input);
  const Op op = op_of(scalar, opts.reduceOp);
  if (root) {
    const Data data = work->update(input, elements);
    return begin(work, {calls::reduce(data, data, op, rank_)}, opts.asyncOp);
  }
  return begin(
      work, {calls::reduce(work->read(input, elements), {}, op, static_cast<int>(opts.rootRank))},
      opts.asyncOp);
}

Call Group::gather_call(Work& work, const Tensors& outputs, const Tensor& input,
                        std::optional<int> root) {
  const Elements elements = moved(input.scalar_type());
  Work::Lists& lists = work.lists();
  lists.inputs = {work.read(input, elements)};
  for (const Tensor& output : outputs) lists.outputs.push_back(work.write(output, elements));
  Call call =
      root ? calls::gather(lists.inputs[0], {}, *root) : calls::all_gather(lists.inputs[0], Data());
  if (outputs.size() == 1) {
    call.output = lists.outputs[0];
  } else if (!outputs.empty()) {
    call.inputs = lists.inputs;
    call.outputs = lists.outputs;
    lists.received = counts_of(outputs, elements);
    if (!all_equal(lists.received)) call.recv_counts = lists.received;
  }
  return call;
}

Group::Result Group::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                               const c10d::AllgatherOptions& opts) {
  const auto refuse = refusing("allgather");
  c10d::assertNonEmpty(refuse, inputs);
  c10d::assertSingleElementInput(refuse, inputs);
  if (outputs.size() != 1) refuse("requires input/output tensor lists to have the same length");
  if (outputs[0].size() != static_cast<std::size_t>(size_))
    refuse(c10::str("invalid output tensor list at index 0 (expected length ", size_, ", got ",
                    outputs[0].size(), ")"));
  require_dense(refuse, inputs);
  require_dense(refuse, outputs[0]);
  require_type(refuse, inputs[0], outputs[0]);
  const Pointer work = this->work(OpType::ALLGATHER, "all_gather", inputs, opts.timeout);
  work->results = outputs[0];
  return begin(work, {gather_call(*work, outputs[0], inputs[0], {})}, opts.asyncOp);
}

Group::Result Group::all_gather_single(Tensor& output, Tensor& input,
                                       const c10d::AllgatherOptions& opts) {
  Tensors outputs{output}, inputs{input};
  return gather_singles("all_gather_single", OpType::_ALLGATHER_BASE, outputs, inputs, opts);
}

Group::Result Group::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                         const c10d::AllgatherOptions& opts) {
  const auto refuse = refusing("allgather_coalesced");
  c10d::assertNonEmpty(refuse, inputs);
  c10d::assertAllgatherCoalescedOutputTensorLists(refuse, outputs, inputs.size(), size_);
  require_dense(refuse, inputs);
  for (const Tensors& list : outputs) {
    require_dense(refuse, list);
    for (std::size_t i = 0; i < list.size(); ++i) require_type(refuse, inputs[i], {list[i]});
  }
  const Pointer work = this->work(OpType::ALLGATHER_COALESCED, "all_gather", inputs, opts.timeout);
  std::vector<Call> all;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Tensors of_all;
    for (const Tensors& list : outputs) of_all.push_back(list[i]);
    all.push_back(gather_call(*work, of_all, inputs[i], {}));
  }
  for (const Tensors& list : outputs)
    work->results.insert(work->results.end(), list.begin(), list.end());
  return begin(work, std::move(all), opts.asyncOp);
}

Group::Result Group::all_gather_single_coalesced(Tensors& outputs, Tensors& inputs,
                                                 const c10d::AllgatherOptions& opts) {
  return gather_singles("all_gather_single_coalesced", OpType::ALLGATHER_INTO_TENSOR_COALESCED,
                        outputs, inputs, opts);
}

Group::Result Group::gather_singles(const char* operation, OpType type, Tensors& outputs,
                                    Tensors& inputs, const c10d::AllgatherOptions& opts) {
  const auto refuse = refusing(operation);
  c10d::assertInputOutputTensorListsSameSize(refuse, inputs.size(), outputs.size());
  require_dense(refuse, inputs);
  require_dense(refuse, outputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    require_type(refuse, inputs[i], {outputs[i]});
    if (outputs[i].numel() != inputs[i].numel() * size_)
      refuse(
          c10::str("output tensor size must be equal to world_size times input tensor size "
                   "(expected ",
                   inputs[i].numel() * size_, " elements, got ", outputs[i].numel(), ")"));
  }
  const Pointer work = this->work(type, "all_gather", inputs, opts.timeout);
  work->results = outputs;
  std::vector<Call> all;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    all.push_back(gather_call(*work, {outputs[i]}, inputs[i], {}));
  return begin(work, std::move(all), opts.asyncOp);
}

Group::Result Group::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                            const c10d::GatherOptions& opts) {
  const auto refuse = refusing("gather");
  c10d::assertRootRank(refuse, opts.rootRank, size_);
  c10d::assertSingleElementInput(refuse, inputs);
  require_dense(refuse, inputs);
  const bool root = opts.rootRank == rank_;
  if (root) {
    c10d::assertGatherOutputTensorList(refuse, outputs, size_);
    require_list_like(refuse, inputs[0], outputs[0]);
  } else if (!outputs.empty()) {
    refuse("requires empty output on non-root");
  }
  const Tensors room = root ? outputs[0] : Tensors{};
  const Pointer work = this->work(OpType::GATHER, "gather", inputs, opts.timeout);
  work->results = room;
  return begin(work, {gather_call(*work, room, inputs[0], static_cast<int>(opts.rootRank))},
               opts.asyncOp);
}

Group::Result Group::gather_single(Tensor& output, Tensor& input, const c10d::GatherOptions& opts) {
  const auto refuse = refusing("gather_single");
  c10d::assertRootRank(refuse, opts.rootRank, size_);
  require_dense(refuse, {input});
  Tensors room;
  if (opts.rootRank == rank_) {
    room = {output};
    require_dense(refuse, room);
    require_type(refuse, input, room);
  }
  const Pointer work = this->work(OpType::GATHER, "gather", {input}, opts.timeout);
  work->results = room;
  return begin(work, {gather_call(*work, room, input, static_cast<int>(opts.rootRank))},
               opts.asyncOp);
}

Group::Result Group::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                             const c10d::ScatterOptions& opts) {
  const auto refuse = refusing("scatter");
  c10d::assertRootRank(refuse, opts.rootRank, size_);
  c10d::assertSingleElementOutput(refuse, outputs);
  require_dense(refuse, outputs);
  const bool root = opts.rootRank == rank_;
  if (root) {
    c10d::assertScatterInputTensorList(refuse, inputs, size_);
    require_list_like(refuse, outputs[0], inputs[0]);
  } else if (!inputs.empty()) {
    refuse("requires empty input on non-root");
  }
  const Elements elements = moved(outputs[0].scalar_type());
  const Pointer work =
      this->work(OpType::SCATTER, "scatter", root ? inputs[0] : Tensors{}, opts.timeout);
  work->results = outputs;
  Work::Lists& lists = work->lists();
  lists.outputs = {work->write(outputs[0], elements)};
  Call call = calls::scatter({}, lists.outputs[0], static_cast<int>(opts.rootRank));
  if (root) {
    for (const Tensor& input : inputs[0]) lists.inputs.push_back(work->read(input, elements));
    call.inputs = lists.inputs;
    call.outputs = lists.outputs;
  }
  return begin(work, {call}, opts.asyncOp);
}

Group::Result Group::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                    const c10d::ReduceScatterOptions& opts) {
  const auto refuse = refusing("reduce_scatter");
  c10d::assertSingleElementOutput(refuse, outputs);
  c10d::assertScatterInputTensorList(refuse, inputs, size_);
  require_dense(refuse, outputs);
  require_dense(refuse, inputs[0]);
  require_type(refuse, outputs[0], inputs[0]);
  const at::ScalarType scalar = outputs[0].scalar_type();
  const Elements elements = reduced(scalar, opts.reduceOp);
  const Pointer work =
      this->work(OpType::REDUCE_SCATTER, "reduce_scatter", inputs[0], opts.timeout);
  work->results = outputs;
  Work::Lists& lists = work->lists();
  for (const Tensor& input : inputs[0])
    lists.inputs.push_back(work->read(scaled(input, opts.reduceOp), elements));
  lists.outputs = {work->write(outputs[0], elements)};
  Call call = calls::reduce_scatter({}, {}, op_of(scalar, opts.reduceOp));
  call.inputs = lists.inputs;
  call.outputs = lists.outputs;
  lists.sent = counts_of(inputs[0], elements);
  if (!all_equal(lists.sent)) call.send_counts = lists.sent;
  return begin(work, {call}, opts.asyncOp);
}

Group::Result Group::reduce_scatter_single(Tensor& output, Tensor& input,
                                           const c10d::ReduceScatterOptions& opts) {
  Tensors outputs{output}, inputs{input};
  return reduce_scatter_singles("reduce_scatter_single", OpType::_REDUCE_SCATTER_BASE, outputs,
                                inputs, opts);
}

Group::Result Group::reduce_scatter_single_coalesced(Tensors& outputs, Tensors& inputs,
                                                     const c10d::ReduceScatterOptions& opts) {
  return reduce_scatter_singles("reduce_scatter_single_coalesced",
                                OpType::REDUCE_SCATTER_TENSOR_COALESCED, outputs, inputs, opts);
}

Group::Result Group::reduce_scatter_singles(const char* operation, OpType type, Tensors& outputs,
                                            Tensors& inputs,
                                            const c10d::ReduceScatterOptions& opts) {
  const auto refuse = refusing(operation);
  c10d::assertInputOutputTensorListsSameSize(refuse, inputs.size(), outputs.size());
  require_dense(refuse, inputs);
  require_dense(refuse, outputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    require_type(refuse, inputs[i], {outputs[i]});
    if (inputs[i].numel() != outputs[i].numel() * size_)
      refuse(
          c10::str("input tensor size must be equal to world_size times output tensor size "
                   "(expected ",
                   outputs[i].numel() * size_, " elements, got ", inputs[i].numel(), ")"));
    reduced(outputs[i].scalar_type(), opts.reduceOp);
  }
  const Pointer work = this->work(type, "reduce_scatter", inputs, opts.timeout);
  work->results = outputs;
  std::vector<Call> all;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const at::ScalarType scalar = outputs[i].scalar_type();
    const Elements elements = reduced(scalar, opts.reduceOp);
    all.push_back(calls::reduce_scatter(work->read(scaled(inputs[i], opts.reduceOp), elements),
                                        work->write(outputs[i], elements),
                                        op_of(scalar, opts.reduceOp)));
  }
  return begin(work, std::move(all), opts.asyncOp);
}

Group::Result Group::all_to_all_single(Tensor& output, Tensor& input,
                                       std::vector<std::int64_t>& output_splits,
                                       std::vector<std::int64_t>& input_splits,
                                       const c10d::AllToAllOptions& opts) {
  const auto refuse = refusing("all_to_all_single");
  require_dense(refuse, {input, output});
  require_type(refuse, input, {output});
  const Elements elements = moved(input.scalar_type());
  const Pointer work = this->work(OpType::ALLTOALL_BASE, "all_to_all", {input}, opts.timeout);
  work->results = {output};
  Work::Lists& lists = work->lists();
  lists.sent = split_counts(input_splits, input, size_, elements);
  lists.received = split_counts(output_splits, output, size_, elements);
  const ConstData from = work->read(input, elements);
  const Data into = work->write(output, elements);
  // With counts on all ranks: some may give splits, others none.
  return begin(work, {calls::all_to_all_v(from, lists.sent, into, lists.received)}, opts.asyncOp);
}

Group::Result Group::alltoall(Tensors& outputs, Tensors& inputs,
                              const c10d::AllToAllOptions& opts) {
  const auto refuse = refusing("alltoall");
  c10d::assertAllToAllTensorListSizes(refuse, outputs.size(), inputs.size(), size_);
  require_dense(refuse, inputs);
  require_dense(refuse, outputs);
  require_type(refuse, inputs[0], inputs);
  require_type(refuse, inputs[0], outputs);
  const Elements elements = moved(inputs[0].scalar_type());
  const Pointer work = this->work(OpType::ALLTOALL, "all_to_all", inputs, opts.timeout);
  work->results = outputs;
  Work::Lists& lists = work->lists();
  for (const Tensor& input : inputs) lists.inputs.push_back(work->read(input, elements));
  for (const Tensor& output : outputs) lists.outputs.push_back(work->write(output, elements));
  lists.sent = counts_of(inputs, elements);
  lists.received = counts_of(outputs, elements);
  Call call = calls::all_to_all_v({}, lists.sent, {}, lists.received);
  call.inputs = lists.inputs;
  call.outputs = lists.outputs;
  return begin(work, {call}, opts.asyncOp);
}

/// Gathers the entries of all ranks and adds those of equal indices. Returns when it is complete,
/// since its collectives follow from each other.
Group::Result Group::allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& opts) {
  const auto refuse = refusing("allreduce");
  c10d::assertSingleElement(refuse, tensors);
  if (tensors[0].layout() != at::kSparse) refuse("only supports sparse tensors");
  c10d::assertCPU(refuse, tensors);
  if (opts.reduceOp.op_ != c10d::ReduceOp::SUM)
    refuse("unsupported reduction operation (expected sum for sparse tensors)");
  const Tensor own = tensors[0].coalesce();
  const c10d::AllgatherOptions blocking{.timeout = opts.timeout, .asyncOp = false};

  // Entries, dimensions, and the shape, of which ranks must agree.
  std::vector<std::int64_t> facts{own._nnz(), own.sparse_dim(), own.dense_dim()};
  facts.resize(3 + 16, -1);
  if (own.dim() > 16) refuse(c10::str("expected at most 16 dimensions, found ", own.dim()));
  std::ranges::copy(own.sizes(), facts.begin() + 3);
  Tensors input{at::tensor(facts, at::kLong)};
  std::vector<Tensors> gathered(1);
  for (int r = 0; r < size_; ++r) gathered[0].push_back(at::empty_like(input[0]));
  allgather(gathered, input, blocking)->wait();
  for (int r = 0; r < size_; ++r) {
    const Tensor& its = gathered[0][static_cast<std::size_t>(r)];
    if (!its.slice(0, 1).equal(input[0].slice(0, 1)))
      refuse(c10::str("Sparse dimensions do not match: rank ", r, " has another shape than rank ",
                      rank_));
  }
  std::vector<Tensors> indices(1), values(1);
  std::vector<std::int64_t> shape = own.values().sizes().vec();
  for (const Tensor& its : gathered[0]) {
    shape[0] = its[0].item<std::int64_t>();
    indices[0].push_back(at::empty({own.sparse_dim(), shape[0]}, at::kLong));
    values[0].push_back(at::empty(shape, own.values().options()));
  }
  Tensors own_indices{own.indices()}, own_values{own.values()};
  allgather(indices, own_indices, blocking)->wait();
  allgather(values, own_values, blocking)->wait();
  const Tensor sum =
      at::sparse_coo_tensor(at::cat(indices[0], 1), at::cat(values[0]), own.sizes()).coalesce();
  tensors[0].copy_(sum);
  const Pointer work =
      this->work(OpType::_ALLREDUCE_SPARSE, "all_reduce", {}, opts.timeout, "sparse_all_reduce");
  work->results = tensors;
  return begin(work, std::vector<Call>(), false);
}

}  // namespace baton::pytorch
