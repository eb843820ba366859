#include "whole.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "../accelerator.hpp"
#include "../pipeline/failure.hpp"

namespace baton::transformer::state {
namespace {

/// Whether this rank is the first along each of these axes.
bool is_first(const Mesh& mesh, Axes axes) {
  for (int a = 0; a < axis_count; ++a) {
    const auto axis = static_cast<Axis>(a);
    if (axes.has(axis) && mesh.rank(axis) != 0) return false;
  }
  return true;
}

Axes without(Axes axes) {
  Axes others;
  for (int a = 0; a < axis_count; ++a) {
    const auto axis = static_cast<Axis>(a);
    if (!axes.has(axis)) others = others | axis;
  }
  return others;
}

Axes cut_along(const Placement& placement) {
  return placement.dim < 0 ? Axes() : Axes(placement.axis);
}

/// How many of the elements each rank has. Collective.
std::vector<std::int64_t> counts_of(std::int64_t own, Communicator& ranks) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(std::span(&own, 1), Data(counts));
  return counts;
}

/// On the first of `ranks`, the elements of all in one row; nothing elsewhere. Collective.
template <class E>
Array<E> gather_rows(const Array<E>& own, Communicator& ranks) {
  const auto counts = counts_of(own.size(), ranks);
  Array<E> all;
  if (ranks.rank() == 0) {
    const auto size = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    all = Array<E>::uninitialized({size});
  }
  ranks.gather_v(own.span(), ranks.rank() == 0 ? Data(all.span()) : Data(), counts, 0);
  return all;
}

/// The shape of the whole.
Shape whole_shape(const Shape& part, const Placement& placement, const Mesh& mesh) {
  if (placement.dim < 0) return part;
  return part.with(placement.dim, part[placement.dim] * mesh.size(placement.axis));
}

/// The whole tensor on the first of the ranks that have the same stages; nothing elsewhere.
/// Collective over these.
template <class E>
Array<E> gather_within_stage(const Held<E>& held, const Mesh& mesh) {
  Array<E> part = accelerator() ? to_host<E>(held.elements) : held.elements;
  const AcceleratorScope on_host(nullptr);
  const Axes cut = cut_along(held.placement);
  // Ranks that differ along the other axes have the same elements.
  if (!is_first(mesh, without(held.sharded | cut | Axis::pp))) return {};
  if (Communicator* const ranks = mesh.along(held.sharded)) part = gather_rows(part, *ranks);
  if (!is_first(mesh, held.sharded)) return {};
  part = part.reshaped(held.shape);
  Communicator* const ranks = mesh.along(cut);
  if (!ranks) return part;
  const Array<E> rows = gather_rows(part, *ranks);
  if (ranks->rank() != 0) return {};
  auto whole = Array<E>::uninitialized(whole_shape(held.shape, held.placement, mesh));
  const int dim = held.placement.dim;
  for (int r = 0; r < ranks->size(); ++r) {
    const Array<E> from = rows.part(r * part.size(), held.shape);
    assign<E>(from, whole.view().slice(dim, r * held.shape[dim], (r + 1) * held.shape[dim]));
  }
  return whole;
}

template <class E>
void take_part(const Array<E>& whole, Held<E> held, const Mesh& mesh) {
  Array<E> part;
  {
    const AcceleratorScope on_host(nullptr);
    part = held.placement.dim < 0 ? whole : part_of<E>(whole, held.placement, mesh);
    if (Communicator* const ranks = mesh.along(held.sharded)) {
      const auto counts = counts_of(held.elements.size(), *ranks);
      const auto first =
          std::accumulate(counts.begin(), counts.begin() + ranks->rank(), std::int64_t{0});
      part = part.part(first, {held.elements.size()});
    }
  }
  if (part.size() == 0) return;
  const Array<E> same = part.reshaped(held.elements.shape());
  if (Accelerator* const device = accelerator())
    return device->upload(same.data(), held.elements.data(), same.bytes());
  assign<E>(same, held.elements.view());
}

/// This rank's parameters as text, to be sent.
template <class T>
std::string text_of(const Params<T>& params, const Mesh& mesh) {
  auto list = nlohmann::json::array();
  for (const Param<T>* param : params) {
    const Shape whole = whole_shape(param->value.shape(), param->placement, mesh);
    std::vector<std::int64_t> extents;
    for (int d = 0; d < whole.rank(); ++d) extents.push_back(whole[d]);
    list.push_back({whole_name(*param), extents, param->shared});
  }
  return list.dump();
}

}  // namespace

template <class T>
std::vector<WholeParam> whole_params(const Params<T>& own, const Mesh& mesh) {
  Communicator* const stages = mesh.along(Axis::pp);
  std::map<std::string, WholeParam> all;
  for (int owner = 0; owner < mesh.size(Axis::pp); ++owner) {
    std::string text = owner == mesh.rank(Axis::pp) ? text_of(own, mesh) : "";
    if (stages) text = broadcast_text(*stages, text, owner);
    for (const auto& one : nlohmann::json::parse(text)) {
      const auto extents = one[1].get<std::vector<std::int64_t>>();
      const WholeParam param{one[0], Shape(std::span(extents)), one[2], owner};
      const auto [found, is_new] = all.try_emplace(param.name, param);
      if (is_new || (found->second.shared && param.shared && found->second.shape == param.shape))
        continue;
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("model: expected parameters of different names, found {} twice", param.name));
    }
  }
  std::vector<WholeParam> params;
  for (auto& [name, param] : all) params.push_back(std::move(param));
  return params;
}

template <class E>
Array<E> gather_whole(const std::vector<Held<E>>& held, const WholeParam& param, const Mesh& mesh) {
  const bool owns = mesh.rank(Axis::pp) == param.owner;
  Array<E> whole;
  if (owns) whole = gather_within_stage(held.at(0), mesh);
  Communicator* const stages = mesh.along(Axis::pp);
  if (!stages || param.owner == 0 || !is_first(mesh, without(Axis::pp))) return whole;
  const AcceleratorScope on_host(nullptr);
  if (owns) {
    stages->send(ConstData(std::as_const(whole).span()), 0);
    return {};
  }
  if (stages->rank() != 0) return {};
  whole = Array<E>::uninitialized(param.shape);
  stages->recv(Data(whole.span()), param.owner);
  return whole;
}

template <class E>
void take_part(const Array<E>& whole, const std::vector<Held<E>>& held, const Mesh& mesh) {
  for (const Held<E>& part : held) take_part(whole, part, mesh);
}

void on_every_rank(const Mesh& mesh, const std::function<void()>& act) {
  std::optional<Failure> failure;
  try {
    act();
  } catch (const Error& error) {
    failure = {error.code, error.what()};
  }
  if (any_failed(mesh, failure)) raise_first(mesh, failure);
}

std::string from_first_rank(const Mesh& mesh, const std::function<std::string()>& make) {
  Communicator* const ranks = mesh.along(all_axes);
  if (!ranks) return make();
  std::string result;
  std::optional<Error> failure;
  if (ranks->rank() == 0) {
    try {
      result = make();
    } catch (const Error& error) {
      failure = error;
      result = error.what();
    }
  }
  std::int64_t head[] = {failure ? static_cast<std::int64_t>(failure->code) : -1,
                         static_cast<std::int64_t>(result.size())};
  ranks->broadcast(std::span(head), 0);
  std::vector<std::uint8_t> bytes(result.begin(), result.end());
  bytes.resize(static_cast<std::size_t>(head[1]));
  ranks->broadcast(Data(bytes), 0);
  result.assign(bytes.begin(), bytes.end());
  if (head[0] >= 0) throw Error(static_cast<ErrorCode>(head[0]), result);
  return result;
}

void on_first_rank(const Mesh& mesh, const std::function<void()>& act) {
  from_first_rank(mesh, [&] {
    act();
    return std::string();
  });
}

template <class E>
Array<E> from_first_rank(const Mesh& mesh, const Shape& shape,
                         const std::function<Array<E>()>& make) {
  const AcceleratorScope on_host(nullptr);
  Array<E> array;
  on_first_rank(mesh, [&] { array = make(); });
  Communicator* const ranks = mesh.along(all_axes);
  if (!ranks) return array;
  if (ranks->rank() != 0) array = Array<E>::uninitialized(shape);
  ranks->broadcast(Data(array.span()), 0);
  return array;
}

WholeWriter::WholeWriter(const std::filesystem::path& file, const std::vector<FileTensor>& tensors,
                         const Metadata& metadata, const Mesh& mesh)
    : mesh_(mesh) {
  on_first_rank(mesh, [&] { writer_.emplace(file, tensors, metadata); });
}

template <class E>
void WholeWriter::write(const Array<E>& whole) {
  if (!writer_ || failure_) return;
  try {
    writer_->write(whole.tensor());
  } catch (const Error& error) {
    failure_ = error;
  }
}

void WholeWriter::commit() {
  on_first_rank(mesh_, [&] {
    if (failure_) throw Error(*failure_);
    writer_->commit();
  });
}

#define BATON_INSTANTIATE(E)                                                                      \
  template std::vector<WholeParam> whole_params(const Params<E>&, const Mesh&);                   \
  template Array<E> gather_whole(const std::vector<Held<E>>&, const WholeParam&, const Mesh&);    \
  template void take_part(const Array<E>&, const std::vector<Held<E>>&, const Mesh&);             \
  template Array<E> from_first_rank(const Mesh&, const Shape&, const std::function<Array<E>()>&); \
  template void WholeWriter::write(const Array<E>&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer::state
