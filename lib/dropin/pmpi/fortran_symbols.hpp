#pragma once

/// Defines a Fortran function under all its names: those of compilers for `call mpi_NAME`, and the
/// one that the mpi_f08 module calls.
#define FORTRAN(name, ...)                                                                \
  extern "C" void ompi_##name##_f(__VA_ARGS__);                                           \
  extern "C" __attribute__((alias("ompi_" #name "_f"))) void mpi_##name(__VA_ARGS__);     \
  extern "C" __attribute__((alias("ompi_" #name "_f"))) void mpi_##name##_(__VA_ARGS__);  \
  extern "C" __attribute__((alias("ompi_" #name "_f"))) void mpi_##name##__(__VA_ARGS__); \
  extern "C" void ompi_##name##_f(__VA_ARGS__)
