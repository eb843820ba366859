#include "device_calls.hpp"

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <utility>

#include "../base/raise.hpp"
#include "state.hpp"

namespace baton::communicator {

DeviceCalls::DeviceCalls(State& state, std::shared_ptr<Device> device)
    : state_(state),
      device_(std::move(device)),
      queue_{device_.get(), device_->make_stream()},
      scratch_(base::BlockPool::Memory::device, device_.get()) {
  state_.launcher.runs().use_device_scratch(scratch_);
}

DeviceCalls::~DeviceCalls() { device_->end_stream(queue_.stream); }

void DeviceCalls::check(const Arguments& arguments) const {
  const auto refuse = [&](const std::string& what) {
    base::refuse("{}: {}", name(arguments.collective), what);
  };
  if (arguments.collective == Collective::barrier) return;
  if (reducing(arguments.collective) && arguments.op.kind == OpKind::user)
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: expected a built-in op on a device's memory, found the user's {}",
                            name(arguments.collective), arguments.op.label));
  const std::size_t inputs = arguments.input_sizes.size();
  for (std::size_t i = 0; i < arguments.bases.size(); ++i) {
    const bool input = i < inputs;
    if ((input ? arguments.input_sizes[i] : arguments.output_sizes[i - inputs]) == 0) continue;
    const std::byte* const data = arguments.bases[i];
    const char* const what = input ? "input" : "output";
    if (const Residence found = device_->residence(data); found != Residence::device)
      refuse(fmt::format("expected an {} in the memory of {}, found one in {} memory", what,
                         device_->name(),
                         found == Residence::host ? "the host's" : "another device's"));
    if (reinterpret_cast<std::uintptr_t>(data) % arguments.element_bytes != 0)
      refuse(
          fmt::format("expected an {} aligned to its elements of {} bytes, found one {} bytes off",
                      what, arguments.element_bytes,
                      reinterpret_cast<std::uintptr_t>(data) % arguments.element_bytes));
  }
}

}  // namespace baton::communicator
