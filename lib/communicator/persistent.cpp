#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "baton/communicator.hpp"
#include "device_calls.hpp"
#include "state.hpp"

namespace baton {

using communicator::InUse;
using communicator::Work;

struct PersistentCall::State {
  State(std::shared_ptr<communicator::State> of, const Call& described)
      : communicator(std::move(of)), call(described) {
    copy_lists();
    communicator->bind(call, call.choice, work);
    work.name = name(call.collective).data();
    bases.assign(work.bases.begin(), work.bases.end());
    work.bases = bases;
    pin.emplace(*work.plan);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Copies the caller's lists, so that the caller may free them.
  void copy_lists() {
    inputs.assign(call.inputs.begin(), call.inputs.end());
    outputs.assign(call.outputs.begin(), call.outputs.end());
    call.inputs = inputs;
    call.outputs = outputs;
    std::span<const std::int64_t>* const refers[] = {&call.send_counts, &call.send_offsets,
                                                     &call.recv_counts, &call.recv_offsets};
    for (std::size_t i = 0; i < lists.size(); ++i) {
      lists[i].assign(refers[i]->begin(), refers[i]->end());
      *refers[i] = lists[i];
    }
  }

  std::shared_ptr<communicator::State> communicator;  // the last to go: it has the plan
  Call call;
  std::vector<ConstData> inputs;
  std::vector<Data> outputs;
  std::array<std::vector<std::int64_t>, 4> lists;
  Work work;
  std::optional<execute::Pin> pin;
  std::vector<std::byte*> bases;
};

PersistentCall::PersistentCall() = default;
PersistentCall::PersistentCall(PersistentCall&&) noexcept = default;
PersistentCall& PersistentCall::operator=(PersistentCall&&) noexcept = default;
PersistentCall::~PersistentCall() = default;

void PersistentCall::run() {
  communicator::State& communicator = *state_->communicator;
  if (communicator.context.options.check)
    return communicator.run(state_->call, state_->call.choice);
  const InUse in_use(communicator.launcher.busy());
  communicator.launcher.require_usable();
  communicator.launcher.free_next_tag();
  communicator.launcher.run(state_->work);
}

Request PersistentCall::start() {
  return state_->communicator->start(state_->call, state_->call.choice);
}

PersistentCall Communicator::plan(const Call& call) {
  const InUse in_use(state_->launcher.busy());
  state_->launcher.require_usable();
  PersistentCall persistent;
  persistent.state_ = std::make_unique<PersistentCall::State>(state_, call);
  return persistent;
}

}  // namespace baton
