#include "baton/communicator.hpp"

namespace baton::calls {
namespace {

Call rooted_call(Collective collective, ConstData input, Data output, int root) {
  Call call;
  call.collective = collective;
  call.input = input;
  call.output = output;
  call.root = root;
  return call;
}

Call tensor_call(Collective collective, const ConstTensor& input, const Tensor& output,
                 int scatter_dim, int gather_dim) {
  Call call;
  call.collective = collective;
  call.input = {input.data, input.shape.elements(), input.type};
  call.output = {output.data, output.shape.elements(), output.type};
  call.tensor = true;
  call.input_shape = input.shape;
  call.output_shape = output.shape;
  call.scatter_dim = scatter_dim;
  call.gather_dim = gather_dim;
  return call;
}

Call reduction(Collective collective, ConstData input, Data output, Op op, int root = 0) {
  Call call = rooted_call(collective, input, output, root);
  call.op = op;
  return call;
}

}  // namespace

Call broadcast(Data data, int root) { return rooted_call(Collective::broadcast, data, data, root); }
Call reduce(ConstData input, Data output, Op op, int root) {
  return reduction(Collective::reduce, input, output, op, root);
}
Call all_reduce(ConstData input, Data output, Op op) {
  return reduction(Collective::all_reduce, input, output, op);
}
Call gather(ConstData input, Data output, int root) {
  return rooted_call(Collective::gather, input, output, root);
}
Call scatter(ConstData input, Data output, int root) {
  return rooted_call(Collective::scatter, input, output, root);
}
Call all_gather(ConstData input, Data output) {
  return rooted_call(Collective::all_gather, input, output, 0);
}
Call all_gather(const ConstTensor& input, const Tensor& output, int dim) {
  return tensor_call(Collective::all_gather, input, output, 0, dim);
}
Call reduce_scatter(ConstData input, Data output, Op op) {
  return reduction(Collective::reduce_scatter, input, output, op);
}
Call all_to_all(ConstData input, Data output) {
  return rooted_call(Collective::all_to_all, input, output, 0);
}
Call all_to_all(const ConstTensor& input, const Tensor& output, int scatter_dim, int gather_dim) {
  return tensor_call(Collective::all_to_all, input, output, scatter_dim, gather_dim);
}
Call scan(ConstData input, Data output, Op op) {
  return reduction(Collective::scan, input, output, op);
}
Call exscan(ConstData input, Data output, Op op) {
  return reduction(Collective::exscan, input, output, op);
}
Call barrier() { return {}; }

}  // namespace baton::calls
