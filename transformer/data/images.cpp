#include "images.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "../accelerator.hpp"
#include "../instantiation.hpp"
#include "baton/error.hpp"
#include "file.hpp"

namespace baton::transformer {

Images::Images(const std::vector<std::filesystem::path>& files) {
  for (const auto& file : files) append(file);
}

void Images::append(const std::filesystem::path& file) {
  const std::string content = data::read_file(file);
  const auto size = static_cast<std::int64_t>(content.size());
  if (size == 0 || size % record != 0) {
    data::refuse(
        file, size - size % record, fmt::format("images of {} bytes each", record),
        size == 0 ? "an empty file" : fmt::format("{} bytes before its end", size % record));
  }
  for (std::int64_t at = 0; at < size; at += record) {
    const auto label = static_cast<std::uint8_t>(content[static_cast<std::size_t>(at)]);
    if (label >= classes) {
      data::refuse(file, at, fmt::format("a label from 0 to {}", classes - 1),
                   std::to_string(label));
    }
  }
  records_.insert(records_.end(), content.begin(), content.end());
}

const std::uint8_t* Images::bytes_of(std::int64_t image) const {
  if (image < 0 || image >= size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("images: expected an index within [0, {}), found {}", size(), image));
  }
  return records_.data() + image * record;
}

template <class T>
Array<T> Images::inputs(std::span<const std::int64_t> images) const {
  std::vector<T> values;
  values.reserve(images.size() * static_cast<std::size_t>(pixels));
  for (const std::int64_t image : images) {
    for (const std::uint8_t byte : bytes(image)) {
      values.push_back(narrow<T>(static_cast<Wide<T>>(byte) / static_cast<Wide<T>>(127.5) - 1));
    }
  }
  const Shape shape{static_cast<std::int64_t>(images.size()), channels, side, side};
  return from_host<T>(View<const T>(values.data(), shape));
}

std::vector<std::int32_t> Images::labels(std::span<const std::int64_t> images) const {
  std::vector<std::int32_t> labels;
  for (const std::int64_t image : images) labels.push_back(label(image));
  return labels;
}

Cifar10 read_cifar10(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> training;
  for (int i = 1; i <= 5; ++i) training.push_back(folder / fmt::format("data_batch_{}.bin", i));
  return {Images(training), Images({folder / "test_batch.bin"})};
}

template BATON_INSTANTIATION Array<float> Images::inputs(std::span<const std::int64_t>) const;
template BATON_INSTANTIATION Array<double> Images::inputs(std::span<const std::int64_t>) const;
template BATON_INSTANTIATION Array<bf16> Images::inputs(std::span<const std::int64_t>) const;

}  // namespace baton::transformer
