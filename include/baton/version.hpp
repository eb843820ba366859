#pragma once
/// The version of these headers, by Semantic Versioning 2.0.0: while the major number is 0, a new
/// minor number may change the interface; a new patch number does not.

#define BATON_VERSION_MAJOR 0
#define BATON_VERSION_MINOR 2
#define BATON_VERSION_PATCH 0

#pragma GCC visibility push(default)
namespace baton {

/// The version of the library that the program runs with: "0.2.0".
const char* version();

}  // namespace baton
#pragma GCC visibility pop
