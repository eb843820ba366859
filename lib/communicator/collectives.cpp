// Defines every collective, blocking and nonblocking, from the table in baton/calls.hpp.

#include <utility>

#include "state.hpp"

namespace baton {
namespace communicator {

template <class Describe>
[[gnu::noinline]] void State::run_anew(RepeatedCalls::Entry& entry, const SimpleCall& simple,
                                       std::byte* input, std::byte* output, const Choice& choice,
                                       const Describe& describe) {
  Operation& operation = launcher.blocking();
  if (entry.is(simple, choice) && entry.fits(input, output)) {
    entry.run = entry.plan->take_small(context.options.window);
    if (entry.run) return launcher.run_again(entry, input, output);
    std::byte* const bases[] = {input, output};
    return launcher.run({entry.plan, entry.kernels, bases, name(simple.collective()).data(),
                         RecordedCall{simple.collective(), simple.type(), simple.op()},
                         entry.shown});
  }
  prepare(operation, describe(), choice);
  if (!simple.of_user() && !context.options.check) {
    if (entry.run) entry.plan->give(std::move(entry.run));
    const Execution& execution = operation.execution();
    const std::size_t bytes = arguments.element_bytes;
    entry.call = simple;
    entry.choice = choice;
    entry.plan = execution.plan;
    entry.kernels = execution.kernels;
    entry.input_bytes = static_cast<std::size_t>(arguments.input_sizes[0]) * bytes;
    entry.output_bytes = static_cast<std::size_t>(arguments.output_sizes[0]) * bytes;
    entry.in_place_distance = arguments.in_place ? input - output : 0;
    entry.in_place = arguments.in_place;
    entry.shown = arguments.shown();
    entry.shown.text = execution.plan->label;
  }
  launcher.run_blocking();
}

template <class Describe>
void State::run_simple(const SimpleCall& simple, const void* input, void* output,
                       const Choice& choice, const Describe& describe) {
  const InUse in_use(launcher.busy());
  launcher.free_next_tag();
  RepeatedCalls::Entry& entry = planner.repeated().at(simple);
  auto* const in = static_cast<std::byte*>(const_cast<void*>(input));
  auto* const out = static_cast<std::byte*>(output);
  if (entry.run && entry.is(simple, choice) && entry.fits(in, out)) [[likely]] {
    launcher.run_again(entry, in, out);
  } else {
    run_anew(entry, simple, in, out, choice, describe);
  }
}

}  // namespace communicator

using communicator::SimpleCall;

void Communicator::broadcast(Data data, int root, const Choice& choice) {
  state_->run_simple(SimpleCall(Collective::broadcast, {}, data, OpKind::sum, root), nullptr,
                     data.data, choice, [&] { return calls::broadcast(data, root); });
}
void Communicator::all_reduce(ConstData input, Data output, Op op, const Choice& choice) {
  state_->run_simple(SimpleCall(Collective::all_reduce, input, output, op.kind), input.data,
                     output.data, choice, [&] { return calls::all_reduce(input, output, op); });
}
void Communicator::all_gather(ConstData input, Data output, const Choice& choice) {
  state_->run_simple(SimpleCall(Collective::all_gather, input, output), input.data, output.data,
                     choice, [&] { return calls::all_gather(input, output); });
}
void Communicator::reduce_scatter(ConstData input, Data output, Op op, const Choice& choice) {
  state_->run_simple(SimpleCall(Collective::reduce_scatter, input, output, op.kind), input.data,
                     output.data, choice, [&] { return calls::reduce_scatter(input, output, op); });
}
void Communicator::all_to_all(ConstData input, Data output, const Choice& choice) {
  state_->run_simple(SimpleCall(Collective::all_to_all, input, output), input.data, output.data,
                     choice, [&] { return calls::all_to_all(input, output); });
}
void Communicator::barrier(const Choice& choice) {
  state_->run_simple(SimpleCall(Collective::barrier, {}, {}), &state_->arguments.token, nullptr,
                     choice, [] { return calls::barrier(); });
}
// Calls the two-buffer form, so that RepeatedCalls serves both.
void Communicator::all_reduce(Data data, Op op, const Choice& choice) {
  all_reduce(data, data, op, choice);
}

#define BATON_DEFINE(name, parameters, arguments)                       \
  void Communicator::name(BATON_LIST parameters const Choice& choice) { \
    state_->run(calls::name arguments, choice);                         \
  }
BATON_OTHER_COLLECTIVES(BATON_DEFINE)
#undef BATON_DEFINE

#define BATON_DEFINE(name, parameters, arguments)                                        \
  Request Communicator::start_##name(BATON_LIST parameters const Choice& choice) {       \
    return state_->start(calls::name arguments, choice);                                 \
  }                                                                                      \
  PersistentCall Communicator::plan_##name(BATON_LIST parameters const Choice& choice) { \
    Call call = calls::name arguments;                                                   \
    call.choice = choice;                                                                \
    return plan(call);                                                                   \
  }
BATON_COLLECTIVES(BATON_DEFINE)
#undef BATON_DEFINE

}  // namespace baton
