#pragma once
/// Whole tensors of what the ranks of a mesh have in parts, and in stages along axis pp. All
/// functions work on the host's memory and its communicators, wherever the parts lie.

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

/// A parameter of the model that all ranks have together.
struct WholeParam {
  std::string name;
  Shape shape;
  bool shared = false;  ///< whether two stages have it
  int owner = 0;        ///< the first rank along axis pp that has it
};
/// The parameters of all stages by name, the same on all ranks; `own` are those of this rank's
/// stages. Collective. Throws Error(invalid_argument) on all ranks if two have one name and are not
/// shared.
template <class T>
std::vector<WholeParam> whole_params(const Params<T>& own, const Mesh& mesh);

/// The whole of a tensor of a parameter's shape on the first rank of the mesh, on the host; nothing
/// elsewhere. `held` has this rank's part: none on ranks of other stages, two where its stages
/// share the parameter. Collective.
template <class E>
Array<E> gather_whole(const std::vector<Held<E>>& held, const WholeParam& param, const Mesh& mesh);
/// Sets this rank's elements to those of `whole`, which lies on every rank's host. Collective over
/// the ranks that have the same stages.
template <class E>
void take_part(const Array<E>& whole, const std::vector<Held<E>>& held, const Mesh& mesh);

/// Calls `act` on every rank. If it throws an Error on some, all ranks throw the first one's.
/// Collective.
void on_every_rank(const Mesh& mesh, const std::function<void()>& act);
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
