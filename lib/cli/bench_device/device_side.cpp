#include "device_side.hpp"

#include <algorithm>
#include <utility>

#include "cli/common/collective_options.hpp"
#include "cli/measure/sides.hpp"

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

Choice DeviceSide::begin(const Case& subject, const Choice& choice) {
  choice_ = choice;
  result_ = {};
  checker_.reset();
  runner_.reset();
  Choice chosen;
  world_.together([&] {
    runner_.emplace(communicator_, gpu_, subject);
    chosen = runner_->chosen(choice);
  });
  checker_.emplace(world_, subject, *runner_);
  const auto run = [&] { runner_->run_on_host(choice_); };
  for (const measure::Fill fill : checker_->fills()) {
    checker_->check(result_, run, checker_->reference(fill));
  }
  return chosen;
}

double DeviceSide::seconds(int calls) {
  return measure::timed(
      world_, [&] { runner_->run(choice_, calls); }, 1);
}

measure::CheckResult DeviceSide::end() {
  world_.together([&] { runner_->download(); });
  checker_->recheck(result_);
  return result_;
}

ThreadPool::ThreadPool(int ranks, const ThreadOptions& options)
    : ranks_(ranks), thread_([this, options] {
        try {
          run_as_threads(ranks_, options, [this](World& world) { serve(world); });
        } catch (...) {
          const std::lock_guard lock(mutex_);
          wrong_ = std::current_exception();
          gone_ = true;
          changed_.notify_all();
        }
      }) {}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    work_ = nullptr;
    ++turn_;
  }
  changed_.notify_all();
  thread_.join();
}

void ThreadPool::run(const std::function<void(World&)>& work) {
  std::unique_lock lock(mutex_);
  work_ = &work;
  busy_ = ranks_;
  ++turn_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return busy_ == 0 || gone_; });
  if (wrong_) std::rethrow_exception(gone_ ? wrong_ : std::exchange(wrong_, nullptr));
}

void ThreadPool::serve(World& world) {
  for (std::uint64_t turn = 1;; ++turn) {
    const std::function<void(World&)>* work = nullptr;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return turn_ == turn; });
      work = work_;
    }
    if (!work) return;
    std::exception_ptr wrong;
    try {
      (*work)(world);
    } catch (...) {
      wrong = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    if (wrong && !wrong_) wrong_ = wrong;
    if (--busy_ == 0) changed_.notify_all();
  }
}

namespace {

const Gpu& gpu_of(const std::vector<Gpu>& gpus, int rank) {
  return gpus[static_cast<std::size_t>(rank) % gpus.size()];
}

ThreadOptions options_for(const std::vector<Gpu>& gpus, int ranks) {
  ThreadOptions options;
  for (int rank = 0; rank < ranks; ++rank) {
    options.devices.push_back(gpu_of(gpus, rank).device);
  }
  return options;
}

}  // namespace

DeviceThreads::DeviceThreads(const std::vector<Gpu>& gpus, int ranks)
    : pool_(ranks, options_for(gpus, ranks)), sides_(static_cast<std::size_t>(ranks)) {
  pool_.run([&](World& world) {
    const Gpu& gpu = gpu_of(gpus, world.rank());
    std::unique_ptr<Transport> transport = world.transport();
    std::unique_ptr<FusedTransport> groups;
    if (gpus.size() == 1)  // ranks that share a GPU also share its hardware queues
      groups = thread_fused_transport(*transport, gpu.device, library_options().timeout);
    sides_[static_cast<std::size_t>(world.rank())] = std::make_unique<DeviceSide>(
        world, gpu,
        groups ? StreamCommunicator(std::move(transport), gpu.device, std::move(groups),
                                    library_options())
               : StreamCommunicator(std::move(transport), gpu.device, library_options()));
  });
}

DeviceThreads::~DeviceThreads() {
  try {
    pool_.run([&](World& world) { sides_[static_cast<std::size_t>(world.rank())].reset(); });
  } catch (...) {
    sides_.clear();  // nobody is left to be told
  }
}

}  // namespace baton::cli::bench_device
