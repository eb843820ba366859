#pragma once
/// The ranks among which activations and gradients are exchanged.

#include <memory>
#include <utility>

#include "baton/communicator.hpp"
#include "baton/stream.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

class Accelerator;

/// A call that may be under way, on the host or on an accelerator.
class Started {
 public:
  /// None.
  Started() = default;
  /// A call on the host.
  explicit Started(Request request) : request_(std::move(request)) {}
  /// The last call that was given to the accelerator's exchange stream.
  explicit Started(Accelerator& accelerator);
  Started(Started&& other) noexcept = default;
  Started& operator=(Started&& other) noexcept;
  ~Started();
  /// On the host, returns when the call is complete. On an accelerator, returns at once: work that
  /// its stream is given from here on comes after the call.
  void wait();

 private:
  Request request_;
  Accelerator* accelerator_ = nullptr;
  std::unique_ptr<Marker> done_;  ///< null on the host, and after wait()
};

/// Some ranks: a communicator for the host's memory and, if ranks have accelerators, another one
/// for theirs. Without a communicator, this rank alone.
struct Group {
  Communicator* host = nullptr;
  StreamCommunicator* device = nullptr;

  /// The ranks of these communicators.
  Group(Communicator* host = nullptr, StreamCommunicator* device = nullptr)  // NOLINT: a group
      : host(host), device(device) {}
  /// The number of ranks.
  int size() const { return host ? host->size() : 1; }
  /// This rank's number among them.
  int rank() const { return host ? host->rank() : 0; }
  /// Starts a call on the thread's arrays. An accelerator gives it to its stream, behind all
  /// earlier work; with `beside`, later work goes on meanwhile, until wait(). Throws
  /// Error(invalid_argument) if the thread has an accelerator and the group has no communicator for
  /// its memory.
  Started start(const Call& call, bool beside = false) const;
};

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
