#include "baton/version.hpp"

#define BATON_TEXT(number) #number
#define BATON_DOTTED(major, minor, patch) BATON_TEXT(major) "." BATON_TEXT(minor) "." BATON_TEXT(patch)

namespace baton {

const char* version() {
  return BATON_DOTTED(BATON_VERSION_MAJOR, BATON_VERSION_MINOR, BATON_VERSION_PATCH);
}

}  // namespace baton
