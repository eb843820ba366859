#include "machine.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <initializer_list>
#include <string_view>
#include <system_error>

namespace baton::cli {
namespace {

using Prefixes = std::initializer_list<std::string_view>;

/// Variables with one of the prefixes and none of the others.
std::vector<std::string> environment(Prefixes prefixes, Prefixes others = {}) {
  const auto begins = [](std::string_view variable, Prefixes with) {
    return std::ranges::any_of(with, [&](auto prefix) { return variable.starts_with(prefix); });
  };
  std::vector<std::string> found;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (begins(*variable, prefixes) && !begins(*variable, others)) found.emplace_back(*variable);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const auto colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string compiler() {
#if defined(__clang__)
  return "Clang " __clang_version__;
#elif defined(__GNUC__)
  return "GCC " __VERSION__;
#else
  return "unknown";
#endif
}

std::filesystem::path program_folder() {
  std::error_code unknown;
  return std::filesystem::read_symlink("/proc/self/exe", unknown).parent_path();
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::string drop_in() {
  void* const symbol = dlsym(RTLD_DEFAULT, "baton_pmpi_version");
  Dl_info info{};
  if (symbol == nullptr || dladdr(symbol, &info) == 0) return {};
  return info.dli_fname;
}

std::vector<std::string> own_environment() { return environment({"BATON_"}); }

std::vector<std::string> mpi_environment() {
  return environment({"OMPI_MCA_", "MPIR_CVAR_", "MPICH_", "UCX_", "FI_"},
                     {"OMPI_MCA_orte_", "OMPI_MCA_ess", "OMPI_MCA_pmix", "OMPI_MCA_initial_wdir",
                      "OMPI_MCA_shmem_RUNTIME"});
}

std::vector<std::string> nccl_environment() { return environment({"NCCL_"}); }

}  // namespace baton::cli
