#pragma once
/// An exception of one rank that all ranks throw.

#include <exception>
#include <optional>
#include <string>

#include "../mesh.hpp"
#include "baton/error.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// An exception, as a sentence that names its place.
struct Failure {
  ErrorCode code = ErrorCode::invalid_argument;
  std::string sentence;

  /// "place: error.what()".
  static Failure of(const std::exception& error, const std::string& place);
  /// Throws it.
  [[noreturn]] void raise() const { throw Error(code, sentence); }
};

/// `text` of one of the ranks, on all. Collective.
std::string broadcast_text(Communicator& ranks, std::string text, int root);

/// Whether any rank of the mesh has a failure. Collective over the mesh.
bool any_failed(const Mesh& mesh, const std::optional<Failure>& failure);
/// Throws that of the first rank that has one, on all ranks. Collective over the mesh, and one
/// must.
[[noreturn]] void raise_first(const Mesh& mesh, const std::optional<Failure>& failure);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
