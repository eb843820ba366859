#pragma once
/// Messages of a device's memory by way of the host's.

#include <cstddef>
#include <memory>

#include "baton/device.hpp"
#include "baton/transport.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// A transport of the same ranks as `host`, which need know nothing of devices, whose messages may
/// lie in `device`'s memory as well as in the host's. Messages travel in segments of `segment`
/// bytes, the last of which is shorter (if need be, empty); those of the device go through two
/// segments of the host's memory each, so that one is copied while the other is under way. Every
/// rank gives the same `segment`. Throws Error(invalid_argument) where it is 0 or a pointer null.
///
/// Only one segment from a rank, of a tag, is received at a time: where `host` takes a handshake
/// for a message, a segment costs one.
std::unique_ptr<Transport> staged_transport(std::unique_ptr<Transport> host,
                                            std::shared_ptr<Device> device,
                                            std::size_t segment = (std::size_t{1} << 20) + 64);

/// `transport` itself where on every rank its messages may lie in a device's memory
/// (Capabilities::device_memory), else a staged_transport() of it. Collective; ranks tell each
/// other by tag 0, which must not be in use. Throws as staged_transport().
std::unique_ptr<Transport> device_transport(std::unique_ptr<Transport> transport,
                                            std::shared_ptr<Device> device);

}  // namespace baton
#pragma GCC visibility pop
