#pragma once
/// Somebody who sees each collective of a thread's stages before it starts, and waits for it.

#include "baton/communicator.hpp"

namespace baton::transformer {

/// Through it go the collectives on the host that a thread starts by Group::start(), and the waits
/// for them (Started::wait()), while a WatchScope lives.
class ExchangeWatch {
 public:
  virtual ~ExchangeWatch() = default;
  /// Communicator::start().
  virtual Request start(Communicator& ranks, const Call& call) = 0;
  /// Request::wait().
  virtual void wait(Request& request) = 0;
  /// Waits for a request whose owner an exception destroys, if it can end.
  virtual void settle(Request& request) noexcept = 0;
};

/// That of this thread; null: none.
ExchangeWatch* exchange_watch();

/// Until the scope ends, the thread's collectives go through `watch`.
class WatchScope {
 public:
  /// Null: through none.
  explicit WatchScope(ExchangeWatch* watch);
  ~WatchScope();
  WatchScope(const WatchScope&) = delete;
  WatchScope& operator=(const WatchScope&) = delete;

 private:
  ExchangeWatch* before_;
};

}  // namespace baton::transformer
