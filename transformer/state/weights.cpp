#include "weights.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "../accelerator.hpp"
#include "../instantiation.hpp"
#include "baton/error.hpp"
#include "whole.hpp"

namespace baton::transformer {
namespace {

using state::Held;
using state::WholeParam;

/// Parameters of all stages by the tensors of a format.
template <class T>
class Stored {
 public:
  /// Collective. Throws on all ranks unless the format's parameters are these, and have values.
  Stored(const Params<T>& params, const WeightsFormat& format, const Mesh& mesh) : mesh_(mesh) {
    std::map<std::string, WholeParam> by_name;
    for (const WholeParam& param : state::whole_params(params, mesh)) by_name[param.name] = param;
    std::map<std::string, Params<T>> own;
    for (Param<T>* param : params) own[whole_name(*param)].push_back(param);
    state::on_every_rank(mesh, [&] {
      for (const StoredTensor& tensor : format.tensors) add(tensor, by_name, own);
      if (!by_name.empty()) refuse("the format's parameters", by_name.begin()->first);
    });
  }

  /// A whole parameter, and this rank's parts of it.
  struct Piece {
    WholeParam param;
    std::vector<Held<T>> held;
  };
  struct Tensor {
    FileTensor file;
    bool transposed = false;
    std::vector<Piece> pieces;
  };
  const std::vector<Tensor>& tensors() const { return tensors_; }

  /// The file's elements on the first rank; nothing elsewhere. Collective.
  Array<T> gather(const Tensor& tensor) const {
    std::vector<Array<T>> parts;
    for (const Piece& piece : tensor.pieces)
      parts.push_back(state::gather_whole(piece.held, piece.param, mesh_));
    const AcceleratorScope on_host(nullptr);
    if (parts[0].empty()) return {};
    if (parts.size() == 1 && !tensor.transposed) return parts[0];
    auto all = Array<T>::uninitialized(tensor.file.shape);
    const View<T> rows = tensor.transposed ? all.view().transposed(0, 1) : all.view();
    std::int64_t first = 0;
    for (const Array<T>& part : parts) {
      assign<T>(part, rows.slice(0, first, first + part.extent(0)));
      first += part.extent(0);
    }
    return all;
  }

  /// Sets the parameters to the file's elements, which every rank has. Collective.
  void take(const Array<T>& all, const Tensor& tensor) const {
    const View<const T> rows = tensor.transposed ? all.view().transposed(0, 1) : all.view();
    std::int64_t first = 0;
    for (const Piece& piece : tensor.pieces) {
      const std::int64_t end = first + piece.param.shape[0];
      Array<T> part;
      {
        const AcceleratorScope on_host(nullptr);
        part = Array<T>::copy_of(rows.slice(0, first, end));
      }
      state::take_part(part, piece.held, mesh_);
      first = end;
    }
  }

 private:
  void add(const StoredTensor& tensor, std::map<std::string, WholeParam>& left,
           const std::map<std::string, Params<T>>& own) {
    Tensor& stored = tensors_.emplace_back();
    stored.transposed = tensor.transposed;
    Shape shape;
    for (const std::string& name : tensor.params) {
      const auto found = left.find(name);
      if (found == left.end()) refuse("a parameter " + name, "none");
      Piece piece{std::move(found->second), {}};
      left.erase(found);
      const auto parts = own.find(name);
      for (const Param<T>* param : parts == own.end() ? Params<T>() : parts->second) {
        if (!param->sharded.empty() || (param->value.empty() && param->value.size() > 0))
          refuse("all values of " + name, "them divided among ranks");
        piece.held.push_back({param->value, param->value.shape(), param->placement, {}});
      }
      const std::int64_t rows = stored.pieces.empty() ? 0 : shape[0];
      shape = piece.param.shape.with(0, rows + piece.param.shape[0]);
      stored.pieces.push_back(std::move(piece));
    }
    stored.file.name = tensor.name;
    stored.file.type = datatype_of<T>;
    stored.file.shape = shape;
    if (tensor.transposed) stored.file.shape = shape.with(0, shape[1]).with(1, shape[0]);
  }
  [[noreturn]] static void refuse(const std::string& expected, const std::string& found) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("weights: expected {}, found {}", expected, found));
  }

  const Mesh& mesh_;
  std::vector<Tensor> tensors_;
};

/// Throws unless a copy has the elements of its original.
template <class T>
void expect_copy(const SafetensorsFile& file, const FileTensor& copy, const FileTensor& original) {
  file.expect<T>(copy.name, original.shape);
  const Array<T> a = file.read<T>(copy), b = file.read<T>(original);
  if (std::memcmp(a.data(), b.data(), a.bytes()) == 0) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: tensor \"{}\": expected the elements of \"{}\", found others",
                          file.name().string(), copy.name, original.name));
}

/// Checks that a file has the tensors of a format, and no others. Returns the prefix of its names.
template <class T>
std::string checked(const SafetensorsFile& file, const WeightsFormat& format,
                    const Stored<T>& stored) {
  const auto prefixed = [&](const StoredTensor& tensor) {
    return file.find(format.prefix + tensor.name) != nullptr;
  };
  const auto& first = format.tensors;
  const bool has_prefix = std::any_of(first.begin(), first.end(), prefixed);
  std::string prefix = has_prefix ? format.prefix : "";
  std::set<std::string> known;
  for (const auto& tensor : stored.tensors()) {
    known.insert(prefix + tensor.file.name);
    file.expect<T>(prefix + tensor.file.name, tensor.file.shape);
  }
  for (const std::string& name : format.ignored) known.insert(prefix + name);
  for (const auto& [name, original] : format.copies) {
    if (const FileTensor* const copy = file.find(name)) {
      known.insert(name);
      expect_copy<T>(file, *copy, *file.find(prefix + original));
    }
  }
  for (const FileTensor& tensor : file.tensors()) {
    if (known.contains(tensor.name)) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: expected {} tensors of the model, found also \"{}\"",
                            file.name().string(), stored.tensors().size(), tensor.name));
  }
  return prefix;
}

}  // namespace

template <class T>
void save_weights(const Params<T>& params, const WeightsFormat& format,
                  const std::filesystem::path& file, const Mesh& mesh, const Metadata& metadata) {
  const Stored<T> stored(params, format, mesh);
  std::vector<FileTensor> tensors;
  for (const auto& tensor : stored.tensors()) tensors.push_back(tensor.file);
  state::WholeWriter writer(file, tensors, metadata, mesh);
  for (const auto& tensor : stored.tensors()) writer.write(stored.gather(tensor));
  writer.commit();
}

template <class T>
void load_weights(const Params<T>& params, const WeightsFormat& format,
                  const std::filesystem::path& file, const Mesh& mesh) {
  const Stored<T> stored(params, format, mesh);
  std::optional<SafetensorsFile> opened;  // by the first rank
  std::string prefix;
  state::on_first_rank(mesh, [&] {
    opened.emplace(file);
    prefix = checked<T>(*opened, format, stored);
  });
  for (const auto& tensor : stored.tensors()) {
    const Array<T> all = state::from_first_rank<T>(mesh, tensor.file.shape, [&] {
      return opened->read<T>(*opened->find(prefix + tensor.file.name));
    });
    stored.take(all, tensor);
  }
}

template <class T>
WeightsFormat own_names(const Params<T>& params, const Mesh& mesh) {
  WeightsFormat format;
  for (const WholeParam& param : state::whole_params(params, mesh))
    format.tensors.push_back({param.name, {param.name}});
  return format;
}

#define BATON_INSTANTIATE(T)                                                                \
  template BATON_INSTANTIATION WeightsFormat own_names(const Params<T>&, const Mesh&);      \
  template BATON_INSTANTIATION void save_weights(const Params<T>&, const WeightsFormat&,    \
                                                 const std::filesystem::path&, const Mesh&, \
                                                 const Metadata&);                          \
  template BATON_INSTANTIATION void load_weights(const Params<T>&, const WeightsFormat&,    \
                                                 const std::filesystem::path&, const Mesh&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
