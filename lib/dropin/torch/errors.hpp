#pragma once
/// The library's errors as programs of PyTorch expect them.

#include <c10/util/Exception.h>

#include <exception>
#include <stdexcept>

#include "baton/error.hpp"

namespace baton::pytorch {

/// A wrong argument is a ValueError in Python, all else a DistBackendError. Other exceptions are
/// unchanged.
inline std::exception_ptr translated(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& found) {
    if (found.code == ErrorCode::invalid_argument)
      return std::make_exception_ptr(std::invalid_argument(found.what()));
    return std::make_exception_ptr(
        c10::DistBackendError({__func__, __FILE__, __LINE__}, found.what()));
  } catch (...) {
    return std::current_exception();
  }
}

/// Runs `use`; throws its errors translated.
template <class Use>
auto translating(const Use& use) {
  try {
    return use();
  } catch (const Error&) {
    std::rethrow_exception(translated(std::current_exception()));
  }
}

}  // namespace baton::pytorch
