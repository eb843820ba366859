#pragma once
/// The names that a program gives its parts by torch.profiler.record_function.

#include <string>

namespace baton::pytorch {

/// From now on names are remembered; otherwise they cost nothing.
void remember_names();

/// The innermost name around this thread's present place; null: there is none.
const std::string* name_around();

}  // namespace baton::pytorch
