#include "names.hpp"

#include <ATen/record_function.h>

#include <memory>
#include <mutex>
#include <vector>

namespace baton::pytorch {
namespace {

thread_local std::vector<std::string> names;

}  // namespace

void remember_names() {
  static std::once_flag once;
  std::call_once(once, [] {
    at::addGlobalCallback(
        at::RecordFunctionCallback(
            [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
              names.emplace_back(function.name());
              return nullptr;
            },
            [](const at::RecordFunction&, at::ObserverContext*) {
              if (!names.empty()) names.pop_back();
            })
            .scopes({at::RecordScope::USER_SCOPE}));
  });
}

const std::string* name_around() { return names.empty() ? nullptr : &names.back(); }

}  // namespace baton::pytorch
