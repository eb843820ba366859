#pragma once
/// The objects behind the handles of the C interface, and its errors.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../base/raise.hpp"
#include "baton/baton.h"
#include "baton/communicator.hpp"
#include "baton/timeline.hpp"

struct baton_transport {
  std::unique_ptr<baton::Transport> transport;
};
struct baton_communicator {
  baton::Communicator communicator;
};
struct baton_request {
  baton::Request request;
};
struct baton_plan {
  baton::PersistentCall call;
  baton::Choice choice;
  baton::Traffic traffic;
};
struct baton_options {
  baton::Options options;
};
struct baton_schedules {
  std::shared_ptr<const std::vector<baton::Schedule>> schedules;
};
struct baton_timeline {
  baton::Timeline timeline;
};
struct baton_blocks {
  std::vector<std::vector<std::byte>> blocks;
};

namespace baton::c {

/// A function of the caller's has failed: BATON_FAILED.
class Failed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Makes the exception that is being handled the thread's latest error; its status.
int failed() noexcept;
/// A function of the caller's has returned `status`: throws the thread's latest error if that is
/// its status, else Failed with `who`, which returned it.
[[noreturn]] void fail_returned(int status, const std::string& who);

/// BATON_OK, or the status of the exception of f().
template <class F>
int guarded(const F& f) noexcept {
  try {
    f();
    return BATON_OK;
  } catch (...) {
    return failed();
  }
}

/// *pointer, which must not be NULL; `what` names it: "a communicator".
template <class T>
T& given(T* pointer, const char* what) {
  if (pointer == nullptr) base::refuse("expected {}, found NULL", what);
  return *pointer;
}
inline Communicator& given(baton_communicator* handle) {
  return given(handle, "a communicator").communicator;
}

/// *out = a new handle of make(), or NULL after an error.
template <class Handle, class Make>
int made(Handle** out, const Make& make) {
  return guarded([&] {
    given(out, "an address for the handle") = nullptr;
    *out = new Handle{make()};
  });
}

/// The caller's struct, which may be that of an older or a newer interface; NULL: all 0. Members
/// that the older one has not are 0. `least`: bytes of the interface's first form of the struct.
template <class Struct>
Struct taken(const Struct* from, const char* name, std::size_t least = sizeof(Struct)) {
  Struct own{};
  if (from == nullptr) return own;
  if (from->size < least)
    base::refuse("expected a {} of at least {} bytes, found size {}", name, least, from->size);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(from);
  const std::size_t known = std::min(from->size, sizeof(Struct));
  if (std::any_of(bytes + known, bytes + from->size, [](auto b) { return b != 0; }))
    throw Error(ErrorCode::unsupported,
                fmt::format("expected a {} whose members beyond {} bytes are 0, as this library "
                            "does not know them, found others",
                            name, sizeof(Struct)));
  std::memcpy(&own, from, known);
  return own;
}

/// Fills the caller's struct, as far as it goes; its size stays. Members that this library does not
/// know become 0. `least`: as for taken().
template <class Struct>
void fill(Struct* to, Struct from, const char* name, std::size_t least = sizeof(Struct)) {
  if (to == nullptr) base::refuse("expected a {}, found NULL", name);
  from.size = to->size;
  if (from.size < least)
    base::refuse("expected a {} of at least {} bytes, found size {}", name, least, from.size);
  std::memset(static_cast<void*>(to), 0, from.size);
  std::memcpy(to, &from, std::min(from.size, sizeof(Struct)));
}

/// Gives a text as baton.h says.
void give_text(std::string_view from, char* text, std::size_t room, std::size_t* length);

Datatype datatype(int type);
Op op_of(baton_op op);
Choice choice_of(const char* text);
/// NULL: what the environment says.
Options options_of(const baton_options* options);

}  // namespace baton::c
