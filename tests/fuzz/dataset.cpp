/// Files of images and of text to train on.

#include "transformer/data/images.hpp"
#include "transformer/data/text.hpp"

#include "target.hpp"

using namespace baton;
using namespace baton::transformer;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFile input;
  input.fill(data, size);
  fuzz::accepted([&] {
    const Images images({input.name()});
    for (std::int64_t i = 0; i < images.size(); ++i)
      fuzz::require(images.label(i) < Images::classes, "a label is a class");
  });
  fuzz::accepted([&] { fuzz::require(read_text({input.name()}).size() == size, "all is read"); });
  return 0;
}
