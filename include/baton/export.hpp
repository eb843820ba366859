#pragma once
/// The names that the shared libraries export: those that are declared between
/// `#pragma GCC visibility push(default)` and `pop`, and those that are marked. An attribute of the
/// namespace would not do: clang forgets it where a function is defined.

/// Marks a name that other programs may link to; all else is hidden.
#define BATON_API [[gnu::visibility("default")]]
/// Marks a type that an exported class keeps for itself.
#define BATON_HIDDEN [[gnu::visibility("hidden")]]
