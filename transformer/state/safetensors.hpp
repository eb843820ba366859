#pragma once
/// Files of named tensors in the format safetensors, version 0.4 and later: 8 bytes with the length
/// of a header, little-endian; the header, an object of JSON, {"NAME": {"dtype": "F32", "shape":
/// [2, 3], "data_offsets": [0, 24]}, ..}, in which "__metadata__" is an object of strings; the
/// elements, little-endian and row-major, without gaps. https://github.com/huggingface/safetensors

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../tensor.hpp"
#include "baton/export.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// A tensor of a file.
struct FileTensor {
  std::string name;
  Datatype type = Datatype::f32;  ///< BOOL is u8
  Shape shape;
  std::int64_t first = 0;  ///< its first byte in the file; writers find it themselves

  /// The size of its elements, in bytes.
  std::int64_t bytes() const { return shape.elements() * static_cast<std::int64_t>(size_of(type)); }
};

/// Strings that a file has beside its tensors, by name.
using Metadata = std::map<std::string, std::string, std::less<>>;

/// A file to read, of which the header has been read and checked. Elements are read when they are
/// asked for. May be used by several threads.
class SafetensorsFile {
 public:
  /// Throws Error(invalid_argument) that names the file, and the tensor or the byte, if it is no
  /// such file, ends too early, or has a tensor that no Datatype or Shape describes.
  explicit SafetensorsFile(const std::filesystem::path& file);

  /// As it was given.
  const std::filesystem::path& name() const;
  /// All tensors, in the order of their elements.
  const std::vector<FileTensor>& tensors() const;
  /// The tensor of that name; null if there is none.
  const FileTensor* find(std::string_view name) const;
  /// find(); throws Error(invalid_argument) that names the file if there is none, its shape is not
  /// `shape`, in which `any` (shape_guard.hpp) stands for every extent, or read<T>() refuses it.
  template <class T>
  const FileTensor& expect(std::string_view name, const Shape& shape) const;
  /// The strings beside the tensors.
  const Metadata& metadata() const;
  /// The string of that name. Throws Error(invalid_argument) that names the file if there is none.
  const std::string& metadata(std::string_view name) const;
  /// All elements of a tensor of this file, on the host, of the tensor's own type or converted:
  /// f16, bf16, f32 and f64 to any of float, double and bf16, the nearest value of it, ties to
  /// even. The way from f64 to bf16 leads through f32. Throws Error(invalid_argument) if the tensor
  /// has other elements, or the file does not have as many bytes as when it was opened.
  template <class T>
  Array<T> read(const FileTensor& tensor) const;

 private:
  struct BATON_HIDDEN State;
  std::shared_ptr<const State> state_;
};

/// A file that is written tensor by tensor. It takes its name when it is whole: until commit(), and
/// wherever that fails or the program ends before, a file that was there stays as it was.
class SafetensorsWriter {
 public:
  /// A file of these tensors, in this order. Throws Error(invalid_argument) if it cannot be
  /// written, a name is there twice or is not UTF-8, or a type is Datatype::user.
  SafetensorsWriter(const std::filesystem::path& file, const std::vector<FileTensor>& tensors,
                    const Metadata& metadata = {});
  ~SafetensorsWriter();
  SafetensorsWriter(SafetensorsWriter&&) noexcept;

  /// Writes the elements of the next tensor, which lie on the host. Throws Error(invalid_argument)
  /// unless they have its type and shape, and where they cannot be written.
  void write(const ConstTensor& elements);
  /// Gives the file its name. Throws Error(invalid_argument) if a tensor has not been written, and
  /// where the file cannot be.
  void commit();

 private:
  struct BATON_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
