// Usage: conformance [--drop-in] [GROUP...]
//
// Checks collectives against what MPI says, and prints a line of case and digest for each case, so
// that two runs can be compared. Without GROUP: all. With --drop-in there must be a drop-in, and
// what MPI says but not every MPI library keeps is checked too. Exit code 1 if a result was not as
// expected.

#include "conformance.hpp"

#include <dlfcn.h>

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
    {"completions", completions},
    {"lists", lists},
    {"in_flight", in_flight},
    {"messages", messages},
    {"errors", errors},
    {"passed_on", passed_on},
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
  std::vector<Call> kept, failing;
  for (const Call& call : calls(suite.size(), check.rooted))
    (check.library_fails(call) ? failing : kept).push_back(call);
  const auto all = [&](const std::vector<Call>& chosen) {
    return [&](Results& results) {
      for (const Call& call : chosen) check.check(results, call, suite.rank(), suite.size());
    };
  };
  const std::string name = group + '/' + check.name;
  if (!kept.empty()) suite.run(name, all(kept));
  if (!failing.empty()) suite.run_beyond_library(name, all(failing));
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
  if (under_drop_in && !dlsym(RTLD_DEFAULT, "baton_pmpi_version")) {
    std::fputs("conformance: expected a drop-in to be preloaded, found none\n", stderr);
    return 2;
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  Suite suite(60, under_drop_in);
  for (const Group& group : groups)
    if (chosen.empty() || std::ranges::count(chosen, group.name) > 0) group.run(suite);
  MPI_Finalize();
  return suite.exit_code();
}
