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

void DeviceCalls::check_data(const Arguments& arguments) const {
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
    check_residence(name(arguments.collective).data(), input ? "input" : "output", data,
                    arguments.element_bytes);
  }
}

void DeviceCalls::check_residence(const char* call, const char* what, const void* data,
                                  std::size_t alignment) const {
  const char* const article = *what == 'b' ? "a" : "an";
  if (const Residence found = device_->residence(data); found != Residence::device)
    base::refuse("{}: expected {} {} in the memory of {}, found one in {} memory", call, article,
                 what, device_->name(),
                 found == Residence::host ? "the host's" : "another device's");
  if (const auto off = reinterpret_cast<std::uintptr_t>(data) % alignment; off != 0)
    base::refuse("{}: expected {} {} aligned to its elements of {} bytes, found one {} bytes off",
                 call, article, what, alignment, off);
}

}  // namespace baton::communicator
