#pragma once
/// Calls for the NCCL library itself.

#include <nccl.h>

#include <memory>
#include <type_traits>

#include "arguments.hpp"
#include "communicator.hpp"
#include "group.hpp"
#include "own.hpp"

namespace baton::nccl_abi {

/// Says once, for each function, where its calls go.
void say_passed_on(const char* name, bool found) noexcept;

/// Passes a call on to NCCL. Without one, the result is `otherwise`, with a sentence for
/// ncclGetLastError().
template <class Result, class... Arguments>
Result pass_on(const char* name, Result (*own)(Arguments...), Result otherwise,
               std::type_identity_t<Arguments>... arguments) {
  void* const function = real(name, reinterpret_cast<const void*>(own));
  if (!off()) say_passed_on(name, function != nullptr);
  if (function == nullptr) {
    guarded([&] {
      throw Error(ErrorCode::unsupported, std::string(name) +
                                              ": expected a call that this library takes, or NCCL "
                                              "itself to pass it on to, found neither");
    });
    return otherwise;
  }
  return reinterpret_cast<Result (*)(Arguments...)>(function)(arguments...);
}

using Held = std::shared_ptr<ncclComm>;

/// Does what `call` says to a communicator, or pass_on() with BATON_NCCL=off. In a group, a wrong
/// call spoils the group.
template <class Call, class PassOn>
ncclResult_t taken(const ncclComm* comm, const Call& call, const PassOn& pass_on) {
  if (off()) return pass_on();
  ncclResult_t given = ncclSuccess;
  const ncclResult_t checked = guarded([&] {
    check_pointer(comm, "a communicator");
    const Held member = of_handle(comm);
    if (!member)
      throw Error(ErrorCode::invalid_argument,
                  "expected a communicator in use, found one that has ended, or another handle");
    if constexpr (std::is_void_v<decltype(call(member))>)
      call(member);
    else
      given = call(member);
  });
  return spoil_group(checked != ncclSuccess ? checked : given);
}

}  // namespace baton::nccl_abi

// The last argument of taken().
#define BATON_PASSED_ON(name, ...) \
  [&] { return pass_on(#name, &name, ncclInvalidArgument, __VA_ARGS__); }
// The function's second name, for profilers that take the first one.
#define BATON_SECOND_NAME(name) \
  extern "C" [[gnu::alias(#name), gnu::visibility("default")]] decltype(name) p##name
