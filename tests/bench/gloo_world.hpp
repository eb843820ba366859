#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/common/world.hpp"

namespace gloo {
class Context;
}

namespace baton::cli {

/// Ranks that gloo joins over TCP. Its collectives are the built-ins: f32 sums.
class GlooWorld final : public World {
 public:
  /// Meets the other ranks in `folder`, which all share and which holds nothing of other runs, over
  /// a network interface. Throws Error(transport).
  GlooWorld(int rank, int size, const std::string& folder, const std::string& interface);

  /// There is none: nothing here is this library's.
  std::unique_ptr<Transport> transport() override { return nullptr; }
  void gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  std::vector<BuiltIn> built_ins(const Case& subject, const void* input, void* output,
                                 Entry entry) override;

 private:
  std::shared_ptr<gloo::Context> context_;
};

}  // namespace baton::cli
