#include "device_case_runner.hpp"

#include <algorithm>
#include <thread>

namespace baton::cli::bench_device {

DeviceCaseRunner::DeviceCaseRunner(StreamCommunicator& communicator, const Gpu& gpu,
                                   const Case& subject)
    : measure::CaseBuffers(communicator.rank(), subject, false),
      communicator_(communicator),
      device_(*gpu.device),
      stream_(gpu.make_stream(), gpu.end_stream),
      end_(device_.make_marker()),
      device_input_(allocate(input_.size())),
      device_output_(allocate(output_.size())),
      call_(subject.call(ConstData(device_input_.get(), subject.input_count(rank_), subject.type),
                         Data(device_output_.get(), subject.output_count(rank_), subject.type))) {}

DeviceCaseRunner::Memory DeviceCaseRunner::allocate(std::size_t bytes) {
  return {device_.allocate(std::max<std::size_t>(bytes, 1)),
          [this](std::byte* memory) { device_.free(memory); }};
}

Choice DeviceCaseRunner::chosen(const Choice& choice) {
  call_.choice = choice;
  return communicator_.chosen(call_);
}

void DeviceCaseRunner::upload() {
  // A broadcast has an input on the host only: reset() has laid it into the output.
  if (subject_.collective() != Collective::broadcast) {
    copy(device_input_.get(), input_.data(), input_.size());
  }
  copy(device_output_.get(), output_.data(), output_.size());
  wait();
}

void DeviceCaseRunner::download() {
  copy(output_.data(), device_output_.get(), output_.size());
  wait();
}

void DeviceCaseRunner::run(const Choice& choice, int calls) {
  call_.choice = choice;
  run([this](Stream stream) { communicator_.enqueue(call_, stream); }, calls);
  communicator_.synchronize();
}

void DeviceCaseRunner::run(const std::function<void(Stream)>& call, int calls) {
  for (int i = 0; i < calls; ++i) call(stream_.get());
  wait();
}

void DeviceCaseRunner::copy(std::byte* to, std::byte* from, std::size_t bytes) {
  Rows rows;
  rows.at[0] = to;
  rows.at[1] = from;
  rows.block = static_cast<std::int64_t>(bytes);
  device_.copy({&rows, 1}, 1, stream_.get());
}

void DeviceCaseRunner::wait() {
  end_->set(stream_.get());
  while (!end_->passed()) std::this_thread::yield();
}

}  // namespace baton::cli::bench_device
