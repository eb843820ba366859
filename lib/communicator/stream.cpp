#include "baton/stream.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "state.hpp"

namespace baton {

void Communicator::State::check_residence() const {
  const Device& device = *on_device->device;
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {}", name(arguments.collective), what));
  };
  if (arguments.collective == Collective::barrier) return;
  if (reducing(arguments.collective) && arguments.op.kind == OpKind::user)
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: expected an operation of the library on a device's memory, found "
                            "the user's {}",
                            name(arguments.collective), arguments.op.label));
  const std::size_t inputs = arguments.input_sizes.size();
  for (std::size_t i = 0; i < arguments.bases.size(); ++i) {
    const bool input = i < inputs;
    if ((input ? arguments.input_sizes[i] : arguments.output_sizes[i - inputs]) == 0) continue;
    const std::byte* const data = arguments.bases[i];
    const char* const what = input ? "input" : "output";
    if (const Residence found = device.residence(data); found != Residence::device)
      refuse(fmt::format("expected an {} in the memory of {}, found one in {} memory", what,
                         device.name(),
                         found == Residence::host ? "the host's" : "another device's"));
    if (reinterpret_cast<std::uintptr_t>(data) % arguments.element_bytes != 0)
      refuse(
          fmt::format("expected an {} aligned to its elements of {} bytes, found one {} bytes off",
                      what, arguments.element_bytes,
                      reinterpret_cast<std::uintptr_t>(data) % arguments.element_bytes));
  }
}

void Communicator::State::meet() {
  std::byte* const bases[] = {&arguments.token, nullptr};
  blocking.execution() = internal(Collective::barrier, "dissemination", 0, bases);
  const int tag = next_tag();
  blocking.begin(name(Collective::barrier).data(), sequence, tag);
  run_blocking();
}

void Communicator::State::tell_error() {
  if (on_device->error) std::rethrow_exception(std::exchange(on_device->error, nullptr));
}

void Communicator::State::fail_in_stream(Operation& operation) noexcept {
  try {
    fail(operation);
  } catch (...) {
    if (!on_device->error) on_device->error = std::current_exception();
  }
}

Request Communicator::State::enqueue(const Call& call, const Choice& choice, Stream stream) {
  const InUse in_use(*busy);
  tell_error();
  require_usable();
  std::unique_ptr<Operation> operation = take_operation();
  std::exception_ptr wrong;
  try {
    on_device->device->check_stream(stream);
    prepare(*operation, call, choice);
    operation->mark(*on_device->device, stream);
  } catch (const Error& error) {
    // Its peers may have scratch, and wait.
    if (error.code != ErrorCode::invalid_argument && error.code != ErrorCode::unsupported)
      break_off(error.what());
    operation->abandon();
    wrong = std::current_exception();
  }
  if (can.one_process && size > 1) meet();
  if (wrong) {
    idle_operations.push_back(std::move(operation));
    std::rethrow_exception(wrong);
  }
  family->engine->began();
  try {
    operation->start_when_reached(stream);
  } catch (const Error& error) {
    family->engine->ended();
    break_off(error.what());
    operation->abandon();
    throw;
  }
  under_way.push_back(operation.get());
  operation->keep_alive = shared_from_this();
  family->operations.add(operation.get());
  return Request(std::unique_ptr<Operation, Request::Release>(operation.release()));
}

StreamCommunicator::StreamCommunicator(std::unique_ptr<Transport> transport,
                                       std::shared_ptr<Device> device, Options options) {
  if (!device) throw Error(ErrorCode::invalid_argument, "expected a device, found null");
  if (!transport->capabilities().concurrent)
    throw Error(ErrorCode::unsupported,
                fmt::format("expected a transport that a second thread may use, since calls in "
                            "streams return before they are complete; found {}, which serves one "
                            "(of MPI, ask for MPI_THREAD_MULTIPLE)",
                            transport->capabilities().name));
  if (!transport->capabilities().device_memory)
    throw Error(
        ErrorCode::unsupported,
        fmt::format("expected a transport whose messages may lie in the memory of {}, found "
                    "{}, which takes the host's alone (device_transport() makes one of it)",
                    device->name(), transport->capabilities().name));
  state_ = std::make_shared<Communicator::State>(std::move(transport), std::move(options),
                                                 std::make_shared<Family>());
  state_->agree_options();
  state_->on_device = std::make_unique<DevicePart>(std::move(device));
  state_->family->engine = std::make_unique<Engine>(state_->family->operations);
}

StreamCommunicator::StreamCommunicator(std::unique_ptr<Transport> host,
                                       std::shared_ptr<Device> device,
                                       std::unique_ptr<FusedTransport> fused, Options options) {
  if (!host || !device || !fused)
    throw Error(
        ErrorCode::invalid_argument,
        "expected a transport of the host's, a device and a transport of fused groups, found null");
  if (host->rank() != fused->rank() || host->size() != fused->size())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("expected two transports of the same ranks, found rank {} of {} and, in "
                    "fused groups, rank {} of {}",
                    host->rank(), host->size(), fused->rank(), fused->size()));
  state_ = std::make_shared<Communicator::State>(std::move(host), std::move(options),
                                                 std::make_shared<Family>());
  state_->agree_options();
  state_->on_device = std::make_unique<DevicePart>(std::move(device), std::move(fused));
}

StreamCommunicator::StreamCommunicator(std::shared_ptr<Communicator::State> state)
    : state_(std::move(state)) {}
StreamCommunicator::StreamCommunicator(StreamCommunicator&&) noexcept = default;
StreamCommunicator& StreamCommunicator::operator=(StreamCommunicator&& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(under_way_, other.under_way_);
  return *this;
}
StreamCommunicator::~StreamCommunicator() {
  if (!state_) return;
  try {
    synchronize();
  } catch (...) {
    under_way_.clear();  // nobody is left to be told
  }
}

int StreamCommunicator::rank() const { return state_->rank; }
int StreamCommunicator::size() const { return state_->size; }
Device& StreamCommunicator::device() const { return *state_->on_device->device; }

StreamCommunicator StreamCommunicator::split(int color, int key) {
  synchronize();
  const InUse in_use(*state_->busy);
  state_->require_usable();
  std::unique_ptr<Transport> transport = state_->transport->split(color, key);
  std::unique_ptr<FusedTransport> fused;
  if (const auto& own = state_->on_device->fused) fused = own->transport().split(color, key);
  if (!transport) return StreamCommunicator(std::shared_ptr<Communicator::State>());
  return StreamCommunicator(
      std::make_shared<Communicator::State>(std::move(transport), *state_, std::move(fused)));
}

void StreamCommunicator::reap() {
  const InUse in_use(*state_->busy);
  std::erase_if(under_way_, [](const Request& request) { return request.done(); });
}

Choice StreamCommunicator::chosen(const Call& call) { return state_->chosen(call); }

void StreamCommunicator::enqueue(const Call& call, Stream stream) {
  if (state_->on_device->fused) return state_->enqueue_fused(call, call.choice, stream);
  reap();
  under_way_.push_back(state_->enqueue(call, call.choice, stream));
}

void StreamCommunicator::synchronize() {
  const InUse in_use(*state_->busy);
  if (state_->on_device->fused) {
    if (state_->broken.empty()) state_->complete_fused();
    return;
  }
  for (const Request& request : under_way_) {
    if (request.done()) continue;
    try {
      state_->wait(*request.operation_);
    } catch (...) {
      if (!state_->on_device->error) state_->on_device->error = std::current_exception();
    }
  }
  under_way_.clear();
  state_->tell_error();
}

namespace {

Call with_choice(Call call, const Choice& choice) {
  call.choice = choice;
  return call;
}

}  // namespace

void StreamCommunicator::broadcast(Data data, int root, Stream stream, const Choice& choice) {
  enqueue(with_choice(calls::broadcast(data, root), choice), stream);
}
void StreamCommunicator::reduce(ConstData input, Data output, Op op, int root, Stream stream,
                                const Choice& choice) {
  enqueue(with_choice(calls::reduce(input, output, op, root), choice), stream);
}
void StreamCommunicator::all_reduce(ConstData input, Data output, Op op, Stream stream,
                                    const Choice& choice) {
  enqueue(with_choice(calls::all_reduce(input, output, op), choice), stream);
}
void StreamCommunicator::gather(ConstData input, Data output, int root, Stream stream,
                                const Choice& choice) {
  enqueue(with_choice(calls::gather(input, output, root), choice), stream);
}
void StreamCommunicator::scatter(ConstData input, Data output, int root, Stream stream,
                                 const Choice& choice) {
  enqueue(with_choice(calls::scatter(input, output, root), choice), stream);
}
void StreamCommunicator::all_gather(ConstData input, Data output, Stream stream,
                                    const Choice& choice) {
  enqueue(with_choice(calls::all_gather(input, output), choice), stream);
}
void StreamCommunicator::all_gather(const ConstTensor& input, const Tensor& output, int dim,
                                    Stream stream, const Choice& choice) {
  enqueue(with_choice(calls::all_gather(input, output, dim), choice), stream);
}
void StreamCommunicator::reduce_scatter(ConstData input, Data output, Op op, Stream stream,
                                        const Choice& choice) {
  enqueue(with_choice(calls::reduce_scatter(input, output, op), choice), stream);
}
void StreamCommunicator::all_to_all(ConstData input, Data output, Stream stream,
                                    const Choice& choice) {
  enqueue(with_choice(calls::all_to_all(input, output), choice), stream);
}
void StreamCommunicator::all_to_all(const ConstTensor& input, const Tensor& output, int scatter_dim,
                                    int gather_dim, Stream stream, const Choice& choice) {
  enqueue(with_choice(calls::all_to_all(input, output, scatter_dim, gather_dim), choice), stream);
}
void StreamCommunicator::scan(ConstData input, Data output, Op op, Stream stream,
                              const Choice& choice) {
  enqueue(with_choice(calls::scan(input, output, op), choice), stream);
}
void StreamCommunicator::exscan(ConstData input, Data output, Op op, Stream stream,
                                const Choice& choice) {
  enqueue(with_choice(calls::exscan(input, output, op), choice), stream);
}
void StreamCommunicator::barrier(Stream stream, const Choice& choice) {
  enqueue(with_choice(calls::barrier(), choice), stream);
}

}  // namespace baton
