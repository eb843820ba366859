#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "baton/device.hpp"

namespace baton::base {

/// Reusable markers of one device: making one costs more than setting it.
class MarkerPool {
 public:
  /// Makes room, so that this many can be given back without allocation.
  void reserve(std::size_t markers) { idle_.reserve(markers); }
  std::unique_ptr<Marker> take(Device& device) {
    if (idle_.empty()) return device.make_marker();
    std::unique_ptr<Marker> marker = std::move(idle_.back());
    idle_.pop_back();
    return marker;
  }
  void give(std::unique_ptr<Marker> marker) { idle_.push_back(std::move(marker)); }

 private:
  std::vector<std::unique_ptr<Marker>> idle_;
};

}  // namespace baton::base
