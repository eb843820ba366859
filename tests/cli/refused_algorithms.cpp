// Shared objects that `baton --registry` refuses, or whose algorithm is wrong, one for each of
// these macros.

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
#elif defined(FLAWED)  // a broadcast that sends nothing
#include "baton/own_algorithms.hpp"
#include "baton/schedule/builder.hpp"
void baton_register(baton::Registry& registry) {
  baton::Algorithm silent;
  silent.collective = baton::Collective::broadcast;
  silent.name = "silent";
  silent.generate = [](const baton::Problem& p) {
    return baton::ScheduleBuilder(p).build("silent");
  };
  silent.cost = [](const baton::Problem&) { return baton::Cost{}; };
  registry.add(silent);
}
#endif
