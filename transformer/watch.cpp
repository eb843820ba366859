#include "watch.hpp"

#include <utility>

namespace baton::transformer {
namespace {
thread_local ExchangeWatch* watch = nullptr;
}

ExchangeWatch* exchange_watch() { return watch; }

WatchScope::WatchScope(ExchangeWatch* its) : before_(std::exchange(watch, its)) {}
WatchScope::~WatchScope() { watch = before_; }

}  // namespace baton::transformer
