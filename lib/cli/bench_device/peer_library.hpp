#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "baton/device.hpp"
#include "baton/fused_transport.hpp"
#include "cli/common/case.hpp"

namespace baton::cli::bench_device {

/// A device with streams as its users make them, beside the library's.
struct Gpu {
  std::shared_ptr<Device> device;
  std::function<Stream()> make_stream;
  std::function<void(Stream)> end_stream;
};

/// A collective of a peer library's, with its buffers.
struct PeerCall {
  std::string name;  ///< as its library calls it
  std::function<void(Stream)> give;
};

/// A library that has collectives and messages between devices of its own, one rank's part of it.
class PeerLibrary {
 public:
  virtual ~PeerLibrary() = default;
  virtual std::string name() const = 0;  ///< "NCCL 2.28.9"
  /// Its messages, among the ranks of `host`. Collective.
  virtual std::unique_ptr<FusedTransport> groups(Transport& host) = 0;
  /// The case by its own collective, out of place, on a device's memory; nothing where it has
  /// none.
  virtual std::optional<PeerCall> call(const Case& subject, const void* input, void* output) = 0;
};

/// NCCL among the ranks of `host`, of which each has a CUDA device. Collective. Throws
/// Error(unsupported) on all ranks, with one sentence, in a build without NCCL and where NCCL
/// cannot serve these ranks and devices.
std::unique_ptr<PeerLibrary> nccl_library(Transport& host, const Gpu& gpu);

}  // namespace baton::cli::bench_device
