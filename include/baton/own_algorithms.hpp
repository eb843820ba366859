#pragma once
/// A user's own algorithms: from schedules, and from shared objects.

#include <span>

#include "baton/export.hpp"
#include "baton/schedule/algorithm.hpp"
#include "baton/version.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// The algorithm of these schedules (schedules[r] is rank r's), under their name
/// (Schedule::Header::algorithm). It serves their collective, number of ranks and root, and every
/// even count that their own divides: each element becomes as many neighbours as it takes. In place
/// and not, whichever the schedules are: ranks copy what the schedules would overwrite. An average,
/// if the schedules reduce: ranks divide their result at the end. Ordered, if they fold in rank
/// order. Add it to a registry, and a tuning table or a Choice may name it.
/// Its rounds are those of the proof, or, where one port cannot keep the order, the longest path in
/// messages.
///
/// Throws Error(invalid_argument) if the name is not one word without "#" and ":", if there are no
/// data, or if verify() does not prove the schedules; its first finding is in the sentence.
Algorithm algorithm_of(std::span<const Schedule> schedules);

}  // namespace baton
#pragma GCC visibility pop

extern "C" {

/// Defined by a shared object for `baton --registry`: adds its algorithms to the built-in ones.
BATON_API void baton_register(baton::Registry& registry);

/// The version of these headers in whatever includes them. `baton` refuses a shared object with
/// another one: 1000 times the major number plus the minor number. Not inline: all objects of a
/// process share an inline variable.
[[gnu::weak]] BATON_API extern const int baton_headers;
const int baton_headers = 1000 * BATON_VERSION_MAJOR + BATON_VERSION_MINOR;
}
