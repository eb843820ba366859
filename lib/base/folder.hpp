#pragma once
/// The names in a folder.

#include <dirent.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace baton::base {

/// In no order, "." and ".." among them; none if the folder cannot be opened: errno says why.
/// Without memory it throws std::bad_alloc, where std::filesystem::directory_iterator ends the
/// program.
inline std::optional<std::vector<std::string>> names_in(const std::string& folder) {
  struct Close {
    void operator()(DIR* opened) const { closedir(opened); }
  };
  const std::unique_ptr<DIR, Close> opened(opendir(folder.c_str()));
  if (!opened) return std::nullopt;
  std::vector<std::string> names;
  while (const dirent* const entry = readdir(opened.get())) names.emplace_back(entry->d_name);
  return names;
}

}  // namespace baton::base
