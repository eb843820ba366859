#pragma once
/// Images with labels, in the binary format of CIFAR-10.

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "../tensor.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// Images of 3 x 32 x 32 pixels, each with a label. The format of a file: Krizhevsky, Learning
/// multiple layers of features from tiny images (2009), binary version: for each image one byte,
/// its label, and 3072 bytes, the rows of its red, green and blue plane.
class Images {
 public:
  static constexpr std::int64_t channels = 3;                     ///< planes of an image
  static constexpr std::int64_t side = 32;                        ///< rows, and columns
  static constexpr std::int64_t pixels = channels * side * side;  ///< of an image
  static constexpr std::int64_t classes = 10;                     ///< labels are below this

  /// None.
  Images() = default;
  /// Those of all files, in this order. Throws Error(invalid_argument) that names the file, the
  /// byte in it, and what was expected and found, where a file cannot be read, ends within an
  /// image, has no image, or has a label out of range.
  explicit Images(const std::vector<std::filesystem::path>& files);

  /// The number of images.
  std::int64_t size() const { return static_cast<std::int64_t>(records_.size()) / record; }
  /// The label of an image.
  std::int32_t label(std::int64_t image) const { return bytes_of(image)[0]; }
  /// The bytes of its pixels: [channels, side, side].
  std::span<const std::uint8_t> bytes(std::int64_t image) const {
    return {bytes_of(image) + 1, static_cast<std::size_t>(pixels)};
  }

  /// Some images as [n, channels, side, side], in the memory of the thread's accelerator or the
  /// host's: byte / 127.5 - 1, so within [-1, 1].
  template <class T>
  Array<T> inputs(std::span<const std::int64_t> images) const;
  /// Their labels [n], on the host.
  std::vector<std::int32_t> labels(std::span<const std::int64_t> images) const;

 private:
  static constexpr std::int64_t record = 1 + pixels;
  /// Throws Error(invalid_argument) unless there is such an image.
  const std::uint8_t* bytes_of(std::int64_t image) const;
  void append(const std::filesystem::path& file);
  std::vector<std::uint8_t> records_;
};

/// CIFAR-10's parts.
struct Cifar10 {
  Images training;    ///< data_batch_1.bin … data_batch_5.bin
  Images validation;  ///< test_batch.bin
};
/// The six files in a folder. Throws as Images does.
Cifar10 read_cifar10(const std::filesystem::path& folder);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
