/// Files of tensors.

#include "transformer/state/safetensors.hpp"

#include "target.hpp"

using namespace baton;
using namespace baton::transformer;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFile input;
  input.fill(data, size);
  fuzz::accepted([&] {
    const SafetensorsFile file(input.name());
    for (const FileTensor& tensor : file.tensors()) {
      fuzz::require(tensor.first >= 8 && tensor.bytes() >= 0 &&
                        tensor.first + tensor.bytes() <= static_cast<std::int64_t>(size),
                    "a tensor lies within its file");
      fuzz::accepted([&] { file.read<float>(tensor); });
    }
  });
  return 0;
}
