#pragma once
/// The names that a program gives its parts by torch.profiler.record_function.

#include <optional>
#include <string>

namespace baton::pytorch {

/// From now on names are remembered; otherwise they cost nothing.
void remember_names();

/// The innermost name around this thread's present place.
std::optional<std::string> name_around();

/// While it exists, names that begin on this thread are not remembered: those of works.
class IgnoredNames {
 public:
  IgnoredNames();
  ~IgnoredNames();
};

}  // namespace baton::pytorch
