#include "baton/calls.hpp"

namespace baton::calls {
namespace {

Call on(Collective collective, ConstData input, Data output, Op op = sum, int root = 0) {
  Call call;
  call.collective = collective;
  call.op = op;
  call.root = root;
  call.input = input;
  call.output = output;
  return call;
}

Call on(Collective collective, const ConstTensor& input, const Tensor& output) {
  Call call = on(collective, ConstData(input.data, input.shape.elements(), input.type),
                 Data(output.data, output.shape.elements(), output.type));
  call.tensor = true;
  call.input_shape = input.shape;
  call.output_shape = output.shape;
  return call;
}

Call in_place(Collective collective, std::span<const Data> tensors, Op op, int root) {
  Call call = on(collective, {}, {}, op, root);
  call.outputs = tensors;
  return call;
}

}  // namespace

Call broadcast(Data data, int root) { return on(Collective::broadcast, data, data, sum, root); }
Call broadcast(std::span<const Data> tensors, int root) {
  return in_place(Collective::broadcast, tensors, sum, root);
}
Call reduce(ConstData input, Data output, Op op, int root) {
  return on(Collective::reduce, input, output, op, root);
}
Call all_reduce(ConstData input, Data output, Op op) {
  return on(Collective::all_reduce, input, output, op);
}
Call all_reduce(Data data, Op op) { return all_reduce(data, data, op); }
Call all_reduce(std::span<const Data> tensors, Op op) {
  return in_place(Collective::all_reduce, tensors, op, 0);
}
Call gather(ConstData input, Data output, int root) {
  return on(Collective::gather, input, output, sum, root);
}
Call gather_v(ConstData input, Data output, std::span<const std::int64_t> counts, int root) {
  Call call = gather(input, output, root);
  call.recv_counts = counts;
  return call;
}
Call scatter(ConstData input, Data output, int root) {
  return on(Collective::scatter, input, output, sum, root);
}
Call scatter_v(ConstData input, Data output, std::span<const std::int64_t> counts, int root) {
  Call call = scatter(input, output, root);
  call.send_counts = counts;
  return call;
}
Call all_gather(ConstData input, Data output) { return on(Collective::all_gather, input, output); }
Call all_gather(const ConstTensor& input, const Tensor& output, int dim) {
  Call call = on(Collective::all_gather, input, output);
  call.gather_dim = dim;
  return call;
}
Call all_gather_v(ConstData input, Data output, std::span<const std::int64_t> counts,
                  std::span<const std::int64_t> offsets) {
  Call call = all_gather(input, output);
  call.recv_counts = counts;
  call.recv_offsets = offsets;
  return call;
}
Call reduce_scatter(ConstData input, Data output, Op op) {
  return on(Collective::reduce_scatter, input, output, op);
}
Call reduce_scatter_v(ConstData input, Data output, std::span<const std::int64_t> counts, Op op) {
  Call call = reduce_scatter(input, output, op);
  call.send_counts = counts;
  return call;
}
Call all_to_all(ConstData input, Data output) { return on(Collective::all_to_all, input, output); }
Call all_to_all(const ConstTensor& input, const Tensor& output, int scatter_dim, int gather_dim) {
  Call call = on(Collective::all_to_all, input, output);
  call.scatter_dim = scatter_dim;
  call.gather_dim = gather_dim;
  return call;
}
Call all_to_all_v(ConstData input, std::span<const std::int64_t> send_counts, Data output,
                  std::span<const std::int64_t> recv_counts,
                  std::span<const std::int64_t> send_offsets,
                  std::span<const std::int64_t> recv_offsets) {
  Call call = all_to_all(input, output);
  call.send_counts = send_counts;
  call.recv_counts = recv_counts;
  call.send_offsets = send_offsets;
  call.recv_offsets = recv_offsets;
  return call;
}
Call scan(ConstData input, Data output, Op op) { return on(Collective::scan, input, output, op); }
Call exscan(ConstData input, Data output, Op op) {
  return on(Collective::exscan, input, output, op);
}
Call barrier() { return {}; }

}  // namespace baton::calls
