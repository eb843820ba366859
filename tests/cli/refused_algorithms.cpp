// Shared objects that `baton --registry` refuses, one for each of these macros.

#include <stdexcept>

#if defined(OUTDATED)  // as compiled with headers of another version
#include "baton/version.hpp"
#undef BATON_VERSION_MAJOR
#undef BATON_VERSION_MINOR
#define BATON_VERSION_MAJOR 1
#define BATON_VERSION_MINOR 7
#include "baton/own_algorithms.hpp"
void baton_register(baton::Registry&) { __builtin_trap(); }
#elif defined(WITHOUT_HEADER)  // but needs the library, which has the header's symbol
#include "baton/version.hpp"
extern "C" [[gnu::visibility("default")]] void baton_register(void*);
void baton_register(void*) { throw std::runtime_error(baton::version()); }
#elif defined(WITHOUT_FUNCTION)
#include "baton/own_algorithms.hpp"
#elif defined(THROWS)
#include "baton/own_algorithms.hpp"
void baton_register(baton::Registry&) { throw std::runtime_error("no algorithm today"); }
#elif defined(THROWS_ANYTHING)
#include "baton/own_algorithms.hpp"
void baton_register(baton::Registry&) { throw 7; }
#endif
