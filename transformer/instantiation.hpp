#pragma once

/// Exports an explicit instantiation of a template that a public header declares: GCC gives it the
/// visibility of the place where it stands. BATON_API cannot stand there for clang.
#define BATON_INSTANTIATION __attribute__((visibility("default")))
