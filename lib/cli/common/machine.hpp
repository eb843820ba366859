#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace baton::cli {

/// "AMD EPYC 7B13", as the kernel names the processor; "unknown" where it does not.
std::string processor();
/// The compiler of this program: "GCC 12.2.0".
std::string compiler();
/// The folder of this process's program.
std::filesystem::path program_folder();
/// This process's host name.
std::string host_name();
/// Where a drop-in that is loaded into this process lies: the file that exports
/// `baton_pmpi_version`. Empty: none is.
std::string drop_in();
/// Environment variables that set this library's options (BATON_…), as NAME=VALUE, sorted.
std::vector<std::string> own_environment();
/// Those that set an MPI library's or its networks' (OMPI_MCA_…, MPIR_CVAR_…, UCX_…, FI_…), without
/// what a launcher tells its processes about themselves.
std::vector<std::string> mpi_environment();
/// Those that set NCCL's (NCCL_…).
std::vector<std::string> nccl_environment();

}  // namespace baton::cli
