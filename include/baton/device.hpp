#pragma once
/// The interface of a device: memory of its own, and streams of work that goes on beside the host.
/// CUDA's is in baton/cuda.hpp.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "baton/types.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// A device's stream, a cudaStream_t for one: work that is given to it is done in order.
using Stream = void*;

/// Where an address lies.
enum class Residence : std::uint8_t {
  device,  ///< in this device's memory
  host,    ///< in the host's, whether the device can reach it or not
  other    ///< in another device's
};

/// `rows` blocks of `block` elements each. Operand k's first block is at `at[k]`, the next ones
/// `stride[k]` bytes apart. at[0] is written.
struct Rows {
  std::byte* at[3] = {};
  std::int64_t stride[3] = {};
  std::int64_t block = 0, rows = 1;
};

/// A point in a stream's work.
class Marker {
 public:
  virtual ~Marker() = default;
  /// Stands from now on for the end of all that `stream` has been given.
  virtual void set(Stream stream) = 0;
  /// Whether the stream has come there. Throws Error(device) if its work failed.
  virtual bool passed() = 0;
  /// Later work of `stream`, of the same device, waits until that point is passed. set() may then
  /// be called again. Nothing waits for a marker that was never set.
  virtual void hold(Stream stream) = 0;
};

/// Holds a stream until the host lets it go on.
class Gate {
 public:
  virtual ~Gate() = default;
  /// Later work of `stream` waits for open().
  virtual void hold(Stream stream) = 0;
  /// Releases the work that hold() held. Any thread may call it.
  virtual void open() noexcept = 0;
};

/// One device. All members may be called by several threads at once; memory, streams, markers and
/// gates belong to the device that made them. Whatever fails throws Error(device), with the
/// device's own code and text.
class Device {
 public:
  virtual ~Device() = default;

  /// "CUDA device 0 (NVIDIA H100)"
  virtual std::string name() const = 0;
  /// Where an address lies, as this device sees it.
  virtual Residence residence(const void* address) const = 0;
  /// Throws Error(invalid_argument) unless collectives may be given to this stream.
  virtual void check_stream(Stream stream) const = 0;

  /// Memory of the device, aligned to 256 bytes. Throws Error(memory) where there is not enough.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void free(std::byte* memory) noexcept = 0;  ///< of allocate()
  /// Memory of the host that the device copies to and from while both go on, likewise.
  virtual std::byte* allocate_host(std::size_t bytes) = 0;
  virtual void free_host(std::byte* memory) noexcept = 0;  ///< of allocate_host()

  /// A stream for the library's own work, which no user's stream that is held can hold up.
  virtual Stream make_stream() = 0;
  /// Waits for the work of a stream that make_stream() made, and ends it.
  virtual void end_stream(Stream stream) noexcept = 0;
  virtual std::unique_ptr<Marker> make_marker() = 0;  ///< one that was never set
  virtual std::unique_ptr<Gate> make_gate() = 0;      ///< one that holds nothing

  /// Gives work to a stream; the lists may go when the call returns. Rows of one list are done in
  /// any order: none writes what another touches. Copies also between this device, the host's
  /// memory and other devices.
  virtual void copy(std::span<const Rows> rows, std::size_t element_bytes, Stream stream) = 0;
  /// at[0] = at[1] (+) at[2], by the numerics contract of the host's folds, to the bit.
  virtual void fold(OpKind op, Datatype type, std::span<const Rows> rows, Stream stream) = 0;
  /// at[0] /= ranks
  virtual void divide(Datatype type, int ranks, std::span<const Rows> rows, Stream stream) = 0;
};

}  // namespace baton
#pragma GCC visibility pop
