#include "transformer/data/images.hpp"

#include <doctest/doctest.h>

#include <string>

#include "support/ranks.hpp"
#include "support/temporary_folder.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

namespace {

char pixel(int image, std::int64_t at) { return static_cast<char>((image * 31 + at * 7) % 256); }

/// `count` images from number `first` on, in the format's layout. Image i has label i % 10.
std::string file_of(int first, int count) {
  std::string content;
  for (int image = first; image < first + count; ++image) {
    content += static_cast<char>(image % 10);
    for (std::int64_t at = 0; at < 3072; ++at) content += pixel(image, at);
  }
  return content;
}

void refused(const std::vector<std::filesystem::path>& files,
             const std::vector<std::string>& parts) {
  const Error error = error_of([&] { Images images(files); });
  CHECK(error.code == ErrorCode::invalid_argument);
  CHECK_MESSAGE(holds(error.what(), parts), std::string(error.what()));
}

}  // namespace

TEST_CASE("the six files of CIFAR-10 are read in their order") {
  const TemporaryFolder folder;
  int image = 0;
  for (int batch = 1; batch <= 5; ++batch) {
    folder.write("data_batch_" + std::to_string(batch) + ".bin", file_of(image, batch + 1));
    image += batch + 1;
  }
  folder.write("test_batch.bin", file_of(100, 3));
  const Cifar10 data = read_cifar10(folder.path());
  REQUIRE(data.training.size() == 20);
  REQUIRE(data.validation.size() == 3);
  for (int i = 0; i < 20; ++i) {
    CHECK(data.training.label(i) == i % 10);
    const auto bytes = data.training.bytes(i);
    REQUIRE(bytes.size() == 3072);
    int wrong = 0;
    for (std::int64_t at = 0; at < 3072; ++at) {
      wrong += bytes[static_cast<std::size_t>(at)] != static_cast<std::uint8_t>(pixel(i, at));
    }
    CHECK(wrong == 0);
  }
  CHECK(data.validation.label(2) == 2);

  const std::vector<std::int64_t> some = {7, 0, 19};
  const Array<double> inputs = data.training.inputs<double>(some);
  CHECK(inputs.shape() == Shape{3, 3, 32, 32});
  CHECK(data.training.labels(some) == std::vector<std::int32_t>{7, 0, 9});
  for (int n = 0; n < 3; ++n) {
    // Planes of rows: pixel (channel, row, column) is byte (channel · 32 + row) · 32 + column.
    const auto byte = static_cast<std::uint8_t>(
        pixel(static_cast<int>(some[static_cast<std::size_t>(n)]), (2 * 32 + 5) * 32 + 11));
    CHECK(inputs.view()(n, 2, 5, 11) == byte / 127.5 - 1);
  }
  const Array<float> single = data.training.inputs<float>(some);
  const Array<bf16> half = data.training.inputs<bf16>(some);
  CHECK(single.view()(1, 0, 0, 0) == -1);
  CHECK(widen(half.view()(1, 0, 0, 0)) == -1);
}

TEST_CASE("files that are not in the format are refused with file, byte, expected and found") {
  const TemporaryFolder folder;
  const std::string good = folder.write("good", file_of(0, 2));
  refused({folder / "none"}, {"none", "expected a file to read", "No such file"});
  refused({folder.path()}, {folder.path(), "expected a file to read", "a folder"});
  refused({good, folder.write("empty", "")}, {"empty, byte 0", "images of 3073 bytes", "an empty"});
  refused({folder.write("torn", file_of(0, 3).substr(0, 2 * 3073 + 100))},
          {"torn, byte 6146", "images of 3073 bytes", "100 bytes"});
  std::string content = file_of(0, 3);
  content[3073] = 10;
  refused({good, folder.write("label", content)},
          {"label, byte 3073", "expected a label from 0 to 9", "found 10"});
  content[3073] = static_cast<char>(255);
  refused({folder.write("label", content)}, {"byte 3073", "found 255"});
  const Error error = error_of([&] { read_cifar10(folder.path()); });
  CHECK(holds(error.what(), {"data_batch_1.bin", "expected a file to read"}));
  const Images images({std::filesystem::path(good)});
  CHECK(holds(error_of([&] { static_cast<void>(images.label(2)); }).what(), {"[0, 2)", "2"}));
  CHECK(holds(error_of([&] { static_cast<void>(images.bytes(-1)); }).what(), {"[0, 2)", "-1"}));
}
