#pragma once
/// Whole tensors of what the ranks of a mesh have in parts. All functions work on the host's memory
/// and its communicators, wherever the parts lie.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "../param.hpp"
#include "baton/error.hpp"
#include "safetensors.hpp"

namespace baton::transformer::state {

/// This rank's part of a tensor that the ranks of a mesh have together.
template <class E>
struct Held {
  Array<E> elements;  ///< shared with their owner, where the thread's arrays lie
  Shape shape;        ///< of the part along placement.axis
  Placement placement;
  /// Axes along which that part's elements, in one row, are divided in the order of ranks. Empty:
  /// `elements` is all of the part.
  Axes sharded;
};

/// The shape of the whole.
Shape whole_shape(const Shape& part, const Placement& placement, const Mesh& mesh);
/// The whole tensor on the first rank of the mesh, on the host; nothing elsewhere. Collective.
template <class E>
Array<E> gather_whole(const Held<E>& held, const Mesh& mesh);
/// Sets this rank's elements to those of `whole`, which lies on every rank's host. Collective.
template <class E>
void take_part(const Array<E>& whole, Held<E> held, const Mesh& mesh);

/// The string that `make` gives on the first rank, where alone it is called, on all ranks. If it
/// throws an Error, all ranks throw one with its code and sentence. Collective.
std::string from_first_rank(const Mesh& mesh, const std::function<std::string()>& make);
/// The same without a string.
void on_first_rank(const Mesh& mesh, const std::function<void()>& act);
/// The same for an array of this shape, on the host.
template <class E>
Array<E> from_first_rank(const Mesh& mesh, const Shape& shape,
                         const std::function<Array<E>()>& make);

/// The first rank's SafetensorsWriter.
class WholeWriter {
 public:
  /// Collective. Throws on all ranks what SafetensorsWriter throws. The mesh must outlive it.
  WholeWriter(const std::filesystem::path& file, const std::vector<FileTensor>& tensors,
              const Metadata& metadata, const Mesh& mesh);
  /// Writes the next tensor, which lies on the first rank (gather_whole()). commit() throws what is
  /// thrown here.
  template <class E>
  void write(const Array<E>& whole);
  /// Collective. Throws on all ranks what SafetensorsWriter throws.
  void commit();

 private:
  const Mesh& mesh_;
  std::optional<SafetensorsWriter> writer_;
  std::optional<Error> failure_;
};

}  // namespace baton::transformer::state
