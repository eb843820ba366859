#include "names.hpp"

#include <ATen/record_function.h>

#include <list>
#include <memory>
#include <mutex>

namespace baton::pytorch {
namespace {

/// The names around a thread's present place, the outermost first. Work of other backends ends its
/// name on another thread.
struct Names {
  std::mutex mutex;
  std::list<std::string> list;
};

struct Named final : at::ObserverContext {
  std::shared_ptr<Names> names;
  std::list<std::string>::iterator place;
};

thread_local std::shared_ptr<Names> own = std::make_shared<Names>();
thread_local bool ignored = false;

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  if (ignored) return nullptr;
  auto named = std::make_unique<Named>();
  named->names = own;
  const std::lock_guard lock(own->mutex);
  named->place = own->list.insert(own->list.end(), function.name());
  return named;
}

void end(const at::RecordFunction&, at::ObserverContext* context) {
  const auto* const named = static_cast<const Named*>(context);
  if (!named) return;
  const std::lock_guard lock(named->names->mutex);
  named->names->list.erase(named->place);
}

}  // namespace

void remember_names() {
  static std::once_flag once;
  std::call_once(once, [] {
    at::addGlobalCallback(
        at::RecordFunctionCallback(begin, end).scopes({at::RecordScope::USER_SCOPE}));
  });
}

std::optional<std::string> name_around() {
  const std::lock_guard lock(own->mutex);
  if (own->list.empty()) return std::nullopt;
  return own->list.back();
}

IgnoredNames::IgnoredNames() { ignored = true; }
IgnoredNames::~IgnoredNames() { ignored = false; }

}  // namespace baton::pytorch
