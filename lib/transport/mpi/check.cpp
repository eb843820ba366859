#include "check.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "../../base/raise.hpp"

namespace baton::mpi {

void fail(int code, const char* call, int rank, int peer) {
  char text[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0;
  std::string reason = MPI_Error_string(code, text, &length) == MPI_SUCCESS
                           ? std::string(text, static_cast<std::size_t>(length))
                           : fmt::format("code {}", code);
  base::raise_failed(
      call, {.rank = rank, .peer = peer, .backend_code = code, .backend_text = std::move(reason)});
}

std::string library_version() {
  std::string text(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
  int length = 0;
  check(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
  text.resize(text.find_first_of(std::string_view(",\n\0", 3)));
  std::replace(text.begin(), text.end(), '\t', ' ');
  return text;
}

}  // namespace baton::mpi
