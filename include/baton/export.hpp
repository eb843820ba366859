#pragma once
/// What the shared libraries export.

/// Marks a namespace whose declarations other programs may link to; all else is hidden.
#define BATON_API [[gnu::visibility("default")]]
