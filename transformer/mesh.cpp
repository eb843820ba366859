#include "mesh.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "baton/error.hpp"

namespace baton::transformer {

std::string_view name(Axis axis) {
  constexpr std::string_view names[] = {"dp", "tp", "sp", "pp"};
  return names[static_cast<std::size_t>(axis)];
}

Mesh::Mesh(Communicator& world, const std::vector<std::pair<Axis, int>>& axes)
    : Mesh(world, nullptr, axes) {}
Mesh::Mesh(Communicator& world, StreamCommunicator& device,
           const std::vector<std::pair<Axis, int>>& axes)
    : Mesh(world, &device, axes) {}

Mesh::Mesh(Communicator& world, StreamCommunicator* device,
           const std::vector<std::pair<Axis, int>>& axes) {
  if (device && (device->rank() != world.rank() || device->size() != world.size())) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("mesh: expected two communicators of the same ranks, found rank {} of "
                            "{} and, for the device's memory, rank {} of {}",
                            world.rank(), world.size(), device->rank(), device->size()));
  }
  std::string product;
  std::int64_t ranks = 1;
  Axes named;
  for (const auto& [axis, size] : axes) {
    product += fmt::format("{}{} {}", product.empty() ? "" : " x ", name(axis), size);
    if (size < 1 || named.has(axis)) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("mesh: expected each axis once, with at least 1 rank, found {}", product));
    }
    named = named | axis;
    ranks = std::min<std::int64_t>(ranks * size, INT32_MAX);
    size_[static_cast<std::size_t>(axis)] = size;
  }
  if (ranks != world.size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("mesh: expected axes that multiply to {} ranks, found {} = {}",
                            world.size(), product.empty() ? "none" : product, ranks));
  }
  int rest = world.rank();
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    rank_[static_cast<std::size_t>(axis->first)] = rest % axis->second;
    rest /= axis->second;
  }
  for (unsigned bits = 1; bits < 1u << axis_count; ++bits) {
    Axes set;
    int color = 0;
    for (int a = 0; a < axis_count; ++a) {
      const auto axis = static_cast<Axis>(a);
      if ((bits >> a & 1u) != 0) {
        set = set | axis;
      } else {
        color = color * size(axis) + rank(axis);
      }
    }
    if (set != without_ones(set)) continue;
    Along& along = along_[set.bits()];
    along.host = std::make_unique<Communicator>(world.split(color, world.rank()));
    along.host->set_name(group_name(set));
    if (device)
      along.device = std::make_unique<StreamCommunicator>(device->split(color, world.rank()));
  }
}

std::string Mesh::group_name(Axes axes) const {
  std::vector<std::string> along, place;
  for (int a = 0; a < axis_count; ++a) {
    const auto axis = static_cast<Axis>(a);
    if (axes.has(axis)) {
      along.emplace_back(transformer::name(axis));
    } else if (size(axis) > 1) {
      place.push_back(fmt::format("{} {}", transformer::name(axis), rank(axis)));
    }
  }
  return fmt::format("{}{}{}", fmt::join(along, " x "), place.empty() ? "" : " of ",
                     fmt::join(place, ", "));
}

int Mesh::size(Axes axes) const {
  int product = 1;
  for (int a = 0; a < axis_count; ++a)
    if (axes.has(static_cast<Axis>(a))) product *= size_[static_cast<std::size_t>(a)];
  return product;
}

Group Mesh::group(Axes axes) const {
  const auto found = along_.find(without_ones(axes).bits());
  if (found == along_.end()) return {};
  return {found->second.host.get(), found->second.device.get()};
}

Axes Mesh::without_ones(Axes axes) const {
  Axes set;
  for (int a = 0; a < axis_count; ++a) {
    const auto axis = static_cast<Axis>(a);
    if (axes.has(axis) && size(axis) > 1) set = set | axis;
  }
  return set;
}

}  // namespace baton::transformer
