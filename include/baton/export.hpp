#pragma once
/// The names that the shared libraries export.

/// Marks a namespace whose declarations other programs may link to; all else is hidden.
#define BATON_API [[gnu::visibility("default")]]
/// Marks a type that an exported class keeps for itself.
#define BATON_HIDDEN [[gnu::visibility("hidden")]]
