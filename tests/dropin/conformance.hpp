#pragma once
/// The groups of cases of `conformance`, and the calls that those of single collectives make.

#include "suite.hpp"

namespace dropin {

void movement(Suite& suite);           ///< data moved: counts, roots, in place, every form
void reductions(Suite& suite);         ///< data reduced: the same
void datatypes(Suite& suite);          ///< every predefined datatype and operation
void user_operations(Suite& suite);    ///< commutative and not, on gapped datatypes too
void derived_datatypes(Suite& suite);  ///< moved: gaps, permutations, unequal counts
void communicators(Suite& suite);      ///< however made, many of them
void attributes(Suite& suite);         ///< copied and deleted as often as the program says
void completions(Suite& suite);        ///< of nonblocking collectives, in every way
void lists(Suite& suite);              ///< of nonblocking collectives, freed too early
void in_flight(Suite& suite);          ///< many nonblocking collectives, while in other calls
void messages(Suite& suite);           ///< the program's own, beside collectives
void errors(Suite& suite);             ///< calls that are wrong on all ranks
void passed_on(Suite& suite);          ///< intercommunicators, neighbourhoods, persistent ones

enum class MpiLibrary { openmpi, mpich };
#ifdef OPEN_MPI
inline constexpr auto mpi_library = MpiLibrary::openmpi;
#else
inline constexpr auto mpi_library = MpiLibrary::mpich;
#endif

/// What the cases of a collective vary.
struct Call {
  Form form;
  int count, root;
  bool in_place;

  std::string text() const;
};

/// A collective, and how one call of it is made and its results checked.
struct Check {
  const char* name;
  bool rooted;
  void (*check)(Results& results, const Call& call, int rank, int size);
  /// Whether the MPI library alone is known to fail; such calls are made only under a drop-in.
  bool (*library_fails)(const Call& call) = [](const Call&) { return false; };
};

/// Runs `check` for both forms, counts that break things and all roots, in place and not.
void run_calls(Suite& suite, const std::string& group, const Check& check);

}  // namespace dropin
