#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "baton/communicator.hpp"
#include "device_calls.hpp"
#include "operation.hpp"
#include "progress_thread.hpp"

namespace baton::communicator {

class ThreadedCalls;

/// An operation at a point of a device's stream. It starts when the stream reaches that point, and
/// may hold the stream until it is complete.
class StreamOperation final : public Operation {
 public:
  StreamOperation(const Context& context, Runs& runs, Watch& watch, execute::UseFlag& busy,
                  ThreadedCalls& calls)
      : Operation(context, runs, watch, busy), calls_(calls) {}

  /// The steps of placing it at this point of the stream; the last one holds the stream.
  void mark(Device& device, Stream stream);
  void start_when_reached() { ahead_ = true, completed_ = 0; }
  void hold(Stream stream);
  bool ahead() const override { return ahead_; }

 private:
  bool reach() override;
  void stepped() override;
  void failed_meanwhile() noexcept override;
  void ended() noexcept override;
  void given_up() noexcept override;

  ThreadedCalls& calls_;
  std::unique_ptr<Marker> reached_;
  std::unique_ptr<Gate> gate_;
  bool held_ = false;  // whether the stream is held
  bool ahead_ = false;
  std::size_t completed_ = 0;
  std::chrono::steady_clock::time_point since_;  // time of the last progress
};

/// A thread of the family moves the messages while the stream waits; with Returns::complete, the
/// calling thread does, and no stream waits.
class ThreadedCalls final : public DeviceCalls {
 public:
  ThreadedCalls(State& state, std::shared_ptr<Device> device, Returns returns);

  void enqueue(const Call& call, Stream stream) override;
  void exchange(std::span<const StreamMessage> messages,
                const std::function<bool()>& others_came) override;
  void check() override { tell_error(); }
  void abort() noexcept override;
  void synchronize() override;
  void close() noexcept override { under_way_.clear(); }
  std::unique_ptr<DeviceCalls> split(State* part, int color, int key) override;

  /// Ends an operation with the exception being handled.
  void fail(StreamOperation& operation) noexcept;
  ProgressThread& thread() const;

 private:
  struct UnderWay {
    StreamOperation* operation;
    Request request;
  };
  std::unique_ptr<StreamOperation> take_operation();
  std::unique_ptr<StreamOperation> prepare(const StreamMessage& message);
  /// Starts an operation that is marked in the stream. `ordered`: it is a collective.
  void give(std::unique_ptr<StreamOperation> operation, Stream stream, bool ordered);
  /// With Returns::complete: returns when all calls are complete. Throws what went wrong.
  void complete();
  void wait_for_all();
  void wait_until(const std::function<bool()>& others_came);
  /// Throws the first unreported error, once.
  void tell_error();
  /// Whether ranks of one process have this device, so that their streams may share what it runs
  /// streams on. Equal on all ranks. Collective.
  bool share_devices() const;
  /// Returns when all ranks have called it.
  void meet();

  const Returns returns_;
  const bool meet_;  // before a collective holds a stream
  std::exception_ptr error_;
  std::vector<UnderWay> under_way_;                   // oldest first
  std::map<std::pair<StepKind, int>, int> messages_;  // so far, by kind and peer
};

}  // namespace baton::communicator
