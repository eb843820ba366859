#include "stand_in_platform.hpp"

#include <cstdlib>
#include <memory>
#include <vector>

#include "dropin/nccl/platform.hpp"

namespace nccl_stand_in {
namespace {

const std::shared_ptr<support::StandInDevice>& owned(int ordinal) {
  static const std::vector<std::shared_ptr<support::StandInDevice>> all = [] {
    std::vector<std::shared_ptr<support::StandInDevice>> made;
    const char* const queues = std::getenv("STAND_IN_QUEUES");  // of each device
    for (int i = 0; i < devices; ++i)
      made.push_back(std::make_shared<support::StandInDevice>(
          support::StandInOptions{.channels = queues ? std::atoi(queues) : 0}));
    return made;
  }();
  return all.at(static_cast<std::size_t>(ordinal));
}

thread_local int current = 0;

}  // namespace

support::StandInDevice& device(int ordinal) { return *owned(ordinal); }
void set_device(int ordinal) { current = ordinal; }
cudaStream_t make_stream(int ordinal) {
  return static_cast<cudaStream_t>(device(ordinal).make_user_stream());
}

}  // namespace nccl_stand_in

namespace baton::nccl_abi::platform {

int devices() { return nccl_stand_in::devices; }
int current_device() { return nccl_stand_in::current; }
std::shared_ptr<Device> device(int ordinal) { return nccl_stand_in::owned(ordinal); }
void* allocate(std::size_t bytes) {
  return nccl_stand_in::device(nccl_stand_in::current).allocate(bytes);
}
void free(void* memory) {
  for (int i = 0; i < nccl_stand_in::devices; ++i)
    if (nccl_stand_in::device(i).residence(memory) == Residence::device)
      nccl_stand_in::device(i).free(static_cast<std::byte*>(memory));
}

}  // namespace baton::nccl_abi::platform
