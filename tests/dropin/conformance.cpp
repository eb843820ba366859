// Usage: conformance [--drop-in] [GROUP...]
//
// Checks collectives against what MPI says, and prints a line of case and digest for each case, so
// that two runs can be compared. Without GROUP: all but `passed_on`, whose calls a drop-in may
// leave to the MPI library. With --drop-in also what MPI says but not every MPI library keeps.
// Exit code 1 if a result was not as expected.

#include "conformance.hpp"

#include <algorithm>
#include <cstdio>

namespace dropin {

namespace {

struct Group {
  std::string_view name;
  void (*run)(Suite&);
};

constexpr Group groups[] = {
    {"movement", movement},
    {"reductions", reductions},
    {"datatypes", datatypes},
    {"user_operations", user_operations},
    {"derived_datatypes", derived_datatypes},
    {"communicators", communicators},
    {"attributes", attributes},
};

/// All roots for few counts, the first and the last for all; a third of it, another for each size,
/// where ranks wait for a processor more than for each other.
std::vector<Call> calls(int size, bool rooted) {
  std::vector<Call> calls;
  int number = 0;
  for (Form form : forms)
    for (int count : {0, 1, size - 1, size, size + 1, 13, 97, 1009, 100003})
      for (int root = 0; root < (rooted ? size : 1); ++root)
        if (count == 1 || count == 1009 || root == 0 || root == size - 1)
          for (bool in_place : {false, true})
            if (size <= 4 || mixed(++number, size) % 3 == 0)
              calls.push_back({form, count, root, in_place});
  return calls;
}

}  // namespace

std::string Call::text() const {
  return std::string(name_of(form)) + (in_place ? ", in place, " : ", ") + std::to_string(count) +
         " elements, root " + std::to_string(root);
}

void run_calls(Suite& suite, const std::string& group, const Check& check) {
  for (const bool fails : {false, true}) {
    auto chosen = calls(suite.size(), check.rooted);
    std::erase_if(chosen, [&](const Call& call) { return check.library_fails(call) != fails; });
    if (chosen.empty() || (fails && !suite.under_drop_in())) continue;
    suite.run(group + '/' + check.name + (fails ? "/beyond_library" : ""), [&](Results& results) {
      for (const Call& call : chosen) check.check(results, call, suite.rank(), suite.size());
    });
  }
}

}  // namespace dropin

int main(int argc, char** argv) {
  using namespace dropin;
  std::vector<std::string_view> chosen(argv + 1, argv + argc);
  const bool under_drop_in = std::erase(chosen, "--drop-in") > 0;
  for (std::string_view name : chosen)
    if (std::ranges::find(groups, name, &Group::name) == std::end(groups)) {
      std::fprintf(stderr, "conformance: expected a group of cases, found '%s'\n", name.data());
      return 2;
    }
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  Suite suite(under_drop_in, 120);
  for (const Group& group : groups)
    if (chosen.empty() ? group.name != "passed_on" : std::ranges::count(chosen, group.name) > 0)
      group.run(suite);
  MPI_Finalize();
  return suite.exit_code();
}
