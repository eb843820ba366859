#pragma once
/// A fuzz target is a source with the function of libFuzzer, which is called with many inputs. It
/// ends the process where the code under test breaks a promise.

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "baton/error.hpp"

/// One input. Returns 0.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace baton::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Ends the process unless the promise was kept.
inline void require(bool kept, const char* promise) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

/// Runs `parse`, which may refuse its input by an Error; no other exception may leave it. Returns
/// whether it accepted the input.
template <class Parse>
bool accepted(const Parse& parse) {
  try {
    parse();
    return true;
  } catch (const Error& error) {
    require(error.what()[0] != '\0', "an error has a sentence");
    return false;
  }
}

/// A file that contains each input in turn. Its name is not that of a status page.
class InputFile {
 public:
  InputFile() {
    const int descriptor = mkstemp(name_);
    if (descriptor < 0) throw std::runtime_error("cannot make a file in /dev/shm");
    file_ = descriptor;
  }
  ~InputFile() {
    close(file_);
    unlink(name_);
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const char* name() const { return name_; }
  void fill(const void* data, std::size_t size) const {
    const bool written =
        ftruncate(file_, 0) == 0 && pwrite(file_, data, size, 0) == static_cast<ssize_t>(size);
    require(written, "the input file can be written");
  }

 private:
  char name_[32] = "/dev/shm/fuzz-XXXXXX";
  int file_ = -1;
};

}  // namespace baton::fuzz
