#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "baton/fused_transport.hpp"
#include "card.hpp"
#include "exercise.hpp"

namespace baton::cli {

/// A collective of a rival's, with its buffers.
struct RivalCall {
  std::string name;  ///< as its library calls it
  std::function<void(Stream)> give;
};

/// A library that has collectives and messages between devices of its own, one rank's part of it.
class Rival {
 public:
  virtual ~Rival() = default;
  virtual std::string name() const = 0;  ///< "NCCL 2.28.9"
  /// Its messages, among the ranks of `host`. Collective.
  virtual std::unique_ptr<FusedTransport> groups(Transport& host) = 0;
  /// The exercise by its own collective, out of place, on a device's memory; nothing where it has
  /// none.
  virtual std::optional<RivalCall> call(const Exercise& exercise, const void* input,
                                        void* output) = 0;
};

/// NCCL among the ranks of `host`, of which each has a CUDA device. Collective. Throws
/// Error(unsupported) on all ranks, with one sentence, in a build without NCCL and where NCCL
/// cannot serve these ranks and devices.
std::unique_ptr<Rival> nccl_rival(Transport& host, const Card& card);

}  // namespace baton::cli
