#include "state.hpp"

namespace baton {

namespace {

Call list_call(Collective collective, std::span<const Data> tensors) {
  Call call;
  call.collective = collective;
  call.outputs = tensors;
  return call;
}

}  // namespace

template <class MakeCall>
void Communicator::State::run_simple(const SimpleCall& simple, const void* input, void* output,
                                     const Choice& choice, const MakeCall& make) {
  const InUse in_use(*busy);
  free_next_tag();
  RepeatedCalls::Entry& entry = repeated.at(simple);
  auto* in = static_cast<std::byte*>(const_cast<void*>(input));
  auto* out = static_cast<std::byte*>(output);
  if (entry.run && entry.is(simple, choice) && entry.fits(in, out)) [[likely]] {
    run_again(entry, in, out);
  } else {
    run_anew(entry, simple, in, out, choice, make);
  }
}

template <class MakeCall>
[[gnu::noinline]] void Communicator::State::run_anew(RepeatedCalls::Entry& entry,
                                                     const SimpleCall& simple, std::byte* in,
                                                     std::byte* out, const Choice& choice,
                                                     const MakeCall& make) {
  if (entry.is(simple, choice) && entry.fits(in, out)) {
    entry.run = entry.plan->take_small(options.window);
    if (entry.run) return run_again(entry, in, out);
    std::byte* const bases[] = {in, out};
    blocking.execution() = execute(*entry.plan, entry.kernels, bases);
    const int tag = next_tag();
    blocking.begin(name(simple.collective()).data(), sequence, tag);
    record(*blocking.execution().run, *entry.plan, entry.call);
  } else {
    prepare(blocking, make(), choice);
    if (!simple.of_user() && !options.check) {
      if (entry.run) entry.plan->give(std::move(entry.run));
      const Execution& execution = blocking.execution();
      const std::size_t bytes = arguments.element_bytes;
      entry.call = simple;
      entry.choice = choice;
      entry.plan = execution.plan;
      entry.kernels = execution.kernels;
      entry.input_bytes = static_cast<std::size_t>(arguments.input_sizes[0]) * bytes;
      entry.output_bytes = static_cast<std::size_t>(arguments.output_sizes[0]) * bytes;
      entry.in_place_distance = arguments.in_place ? in - out : 0;
      entry.in_place = arguments.in_place;
    }
  }
  run_blocking();
}

void Communicator::broadcast(Data data, int root, const Choice& choice) {
  state_->run_simple(SimpleCall(Collective::broadcast, {}, data, OpKind::sum, root), nullptr,
                     data.data, choice, [&] { return calls::broadcast(data, root); });
}
void Communicator::reduce(ConstData input, Data output, Op op, int root, const Choice& choice) {
  state_->run(calls::reduce(input, output, op, root), choice);
}
void Communicator::all_reduce(ConstData input, Data output, Op op, const Choice& choice) {
  state_->run_simple(SimpleCall(Collective::all_reduce, input, output, op.kind), input.data,
                     output.data, choice, [&] { return calls::all_reduce(input, output, op); });
}
void Communicator::gather(ConstData input, Data output, int root, const Choice& choice) {
  state_->run(calls::gather(input, output, root), choice);
}
void Communicator::gather_v(ConstData input, Data output, std::span<const std::int64_t> counts,
                            int root, const Choice& choice) {
  Call call = calls::gather(input, output, root);
  call.recv_counts = counts;
  state_->run(call, choice);
}
void Communicator::scatter(ConstData input, Data output, int root, const Choice& choice) {
  state_->run(calls::scatter(input, output, root), choice);
}
void Communicator::scatter_v(ConstData input, Data output, std::span<const std::int64_t> counts,
                             int root, const Choice& choice) {
  Call call = calls::scatter(input, output, root);
  call.send_counts = counts;
  state_->run(call, choice);
}
void Communicator::all_gather(ConstData input, Data output, const Choice& choice) {
  state_->run_simple(SimpleCall(Collective::all_gather, input, output), input.data, output.data,
                     choice, [&] { return calls::all_gather(input, output); });
}
void Communicator::all_gather(const ConstTensor& input, const Tensor& output, int dim,
                              const Choice& choice) {
  state_->run(calls::all_gather(input, output, dim), choice);
}
void Communicator::all_gather_v(ConstData input, Data output, std::span<const std::int64_t> counts,
                                std::span<const std::int64_t> offsets, const Choice& choice) {
  Call call = calls::all_gather(input, output);
  call.recv_counts = counts;
  call.recv_offsets = offsets;
  state_->run(call, choice);
}
void Communicator::reduce_scatter(ConstData input, Data output, Op op, const Choice& choice) {
  state_->run_simple(SimpleCall(Collective::reduce_scatter, input, output, op.kind), input.data,
                     output.data, choice, [&] { return calls::reduce_scatter(input, output, op); });
}
void Communicator::reduce_scatter_v(ConstData input, Data output,
                                    std::span<const std::int64_t> counts, Op op,
                                    const Choice& choice) {
  Call call = calls::reduce_scatter(input, output, op);
  call.send_counts = counts;
  state_->run(call, choice);
}
void Communicator::all_to_all(ConstData input, Data output, const Choice& choice) {
  state_->run_simple(SimpleCall(Collective::all_to_all, input, output), input.data, output.data,
                     choice, [&] { return calls::all_to_all(input, output); });
}
void Communicator::all_to_all(const ConstTensor& input, const Tensor& output, int scatter_dim,
                              int gather_dim, const Choice& choice) {
  state_->run(calls::all_to_all(input, output, scatter_dim, gather_dim), choice);
}
void Communicator::all_to_all_v(ConstData input, std::span<const std::int64_t> send_counts,
                                Data output, std::span<const std::int64_t> recv_counts,
                                std::span<const std::int64_t> send_offsets,
                                std::span<const std::int64_t> recv_offsets, const Choice& choice) {
  Call call = calls::all_to_all(input, output);
  call.send_counts = send_counts;
  call.recv_counts = recv_counts;
  call.send_offsets = send_offsets;
  call.recv_offsets = recv_offsets;
  state_->run(call, choice);
}
void Communicator::scan(ConstData input, Data output, Op op, const Choice& choice) {
  state_->run(calls::scan(input, output, op), choice);
}
void Communicator::exscan(ConstData input, Data output, Op op, const Choice& choice) {
  state_->run(calls::exscan(input, output, op), choice);
}
void Communicator::barrier(const Choice& choice) {
  state_->run_simple(SimpleCall(Collective::barrier, {}, {}), &state_->arguments.token, nullptr,
                     choice, [] { return calls::barrier(); });
}

void Communicator::broadcast(std::span<const Data> tensors, int root, const Choice& choice) {
  Call call = list_call(Collective::broadcast, tensors);
  call.root = root;
  state_->run(call, choice);
}
void Communicator::all_reduce(std::span<const Data> tensors, Op op, const Choice& choice) {
  start_all_reduce(tensors, op, choice).wait();
}
Request Communicator::start_all_reduce(std::span<const Data> tensors, Op op, const Choice& choice) {
  Call call = list_call(Collective::all_reduce, tensors);
  call.op = op;
  return state_->start(call, choice);
}

Request Communicator::start_broadcast(Data data, int root, const Choice& choice) {
  return state_->start(calls::broadcast(data, root), choice);
}
Request Communicator::start_reduce(ConstData input, Data output, Op op, int root,
                                   const Choice& choice) {
  return state_->start(calls::reduce(input, output, op, root), choice);
}
Request Communicator::start_all_reduce(ConstData input, Data output, Op op, const Choice& choice) {
  return state_->start(calls::all_reduce(input, output, op), choice);
}
Request Communicator::start_all_reduce(Data data, Op op, const Choice& choice) {
  return start_all_reduce(data, data, op, choice);
}
Request Communicator::start_gather(ConstData input, Data output, int root, const Choice& choice) {
  return state_->start(calls::gather(input, output, root), choice);
}
Request Communicator::start_scatter(ConstData input, Data output, int root, const Choice& choice) {
  return state_->start(calls::scatter(input, output, root), choice);
}
Request Communicator::start_all_gather(ConstData input, Data output, const Choice& choice) {
  return state_->start(calls::all_gather(input, output), choice);
}
Request Communicator::start_reduce_scatter(ConstData input, Data output, Op op,
                                           const Choice& choice) {
  return state_->start(calls::reduce_scatter(input, output, op), choice);
}
Request Communicator::start_all_to_all(ConstData input, Data output, const Choice& choice) {
  return state_->start(calls::all_to_all(input, output), choice);
}
Request Communicator::start_all_to_all(const ConstTensor& input, const Tensor& output,
                                       int scatter_dim, int gather_dim, const Choice& choice) {
  return state_->start(calls::all_to_all(input, output, scatter_dim, gather_dim), choice);
}
Request Communicator::start_scan(ConstData input, Data output, Op op, const Choice& choice) {
  return state_->start(calls::scan(input, output, op), choice);
}
Request Communicator::start_exscan(ConstData input, Data output, Op op, const Choice& choice) {
  return state_->start(calls::exscan(input, output, op), choice);
}
Request Communicator::start_barrier(const Choice& choice) {
  return state_->start(calls::barrier(), choice);
}

}  // namespace baton
