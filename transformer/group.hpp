#pragma once
/// The ranks that activations and gradients are exchanged among.

#include <memory>
#include <utility>

#include "baton/communicator.hpp"
#include "baton/export.hpp"
#include "baton/stream.hpp"

namespace BATON_API baton {
namespace transformer {

class Accelerator;

/// A call that may be under way, on the host or on an accelerator.
class Started {
 public:
  Started() = default;
  explicit Started(Request request) : request_(std::move(request)) {}
  /// Of a call that an accelerator's exchange stream was given last.
  explicit Started(Accelerator& accelerator);
  Started(Started&& other) noexcept = default;
  Started& operator=(Started&& other) noexcept;
  ~Started();
  /// On the host, returns when it is complete; on an accelerator, at once: what its stream is given
  /// from here on comes after the call.
  void wait();

 private:
  Request request_;
  Accelerator* accelerator_ = nullptr;
  std::unique_ptr<Marker> done_;  ///< null: not on an accelerator, or waited for
};

/// Some ranks: by a communicator for the host's memory, and where ranks have accelerators, by
/// another for theirs. Without any, this rank alone.
struct Group {
  Communicator* host = nullptr;
  StreamCommunicator* device = nullptr;

  Group(Communicator* host = nullptr, StreamCommunicator* device = nullptr)  // NOLINT: a group
      : host(host), device(device) {}
  int size() const { return host ? host->size() : 1; }
  int rank() const { return host ? host->rank() : 0; }
  /// Starts a call on memory where Arrays lie now. On an accelerator it is given to its stream,
  /// behind all that came before; with `beside`, what comes later, until wait(), goes on meanwhile.
  /// Throws Error(invalid_argument) where an accelerator's group has no communicator for its
  /// memory.
  Started start(const Call& call, bool beside = false) const;
};

}  // namespace transformer
}  // namespace baton
