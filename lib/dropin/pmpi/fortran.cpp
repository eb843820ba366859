#include "fortran.hpp"

#include <dlfcn.h>

#include <cstddef>

namespace baton::pmpi::fortran {

Constants::Constants() {
  // A missing symbol gets an address that no argument has.
  const auto address = [&](const char* name) -> const void* {
    const void* const found = dlsym(RTLD_DEFAULT, name);
    return found ? found : this;
  };
  in_place_ = address("mpi_fortran_in_place_");
  bottom_ = address("mpi_fortran_bottom_");
  status_ignore_ = address("mpi_fortran_status_ignore_");
  statuses_ignore_ = address("mpi_fortran_statuses_ignore_");
  unweighted_ = address("mpi_fortran_unweighted_");
  weights_empty_ = address("mpi_fortran_weights_empty_");
}

const Constants& Constants::now() {
  static const Constants constants;
  return constants;
}

Requests::Requests(MPI_Fint* handles, int count) : handles(handles) {
  for (int i = 0; i < count; ++i) all.push_back(PMPI_Request_f2c(handles[i]));
}
Requests::~Requests() {
  for (std::size_t i = 0; i < all.size(); ++i) handles[i] = PMPI_Request_c2f(all[i]);
}

Statuses::Statuses(MPI_Fint* statuses, int count)
    : target(statuses),
      ignored(Constants::now().ignored(statuses)),
      all(static_cast<std::size_t>(ignored ? 0 : count) + 1) {}
Statuses::~Statuses() {
  constexpr std::size_t words = sizeof(MPI_Status) / sizeof(MPI_Fint);
  if (ignored) return;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) PMPI_Status_c2f(&all[i], target + i * words);
}

}  // namespace baton::pmpi::fortran
