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

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

template <class ScheduleRequest>
std::vector<std::string> environment(const ScheduleRequest& wanted) {
  std::vector<std::string> found;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (wanted(std::string_view(*variable))) found.emplace_back(*variable);
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

std::vector<std::string> own_environment() {
  return environment([](std::string_view v) { return v.starts_with("BATON_"); });
}

std::vector<std::string> mpi_environment() {
  return environment([](std::string_view v) {
    return starts_with_any(v, {"OMPI_MCA_", "MPIR_CVAR_", "MPICH_", "UCX_", "FI_"}) &&
           !starts_with_any(v, {"OMPI_MCA_orte_", "OMPI_MCA_ess", "OMPI_MCA_pmix",
                                "OMPI_MCA_initial_wdir", "OMPI_MCA_shmem_RUNTIME"});
  });
}

std::vector<std::string> nccl_environment() {
  return environment([](std::string_view v) { return v.starts_with("NCCL_"); });
}

}  // namespace baton::cli
