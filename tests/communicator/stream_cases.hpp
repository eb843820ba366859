#pragma once
/// Collectives in a device's streams, whatever the device: checks that stand-ins and GPUs share.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "baton/stream.hpp"
#include "support/ranks.hpp"
#include "support/sanitizer.hpp"
#include "support/stand_in_fused.hpp"
#include "support/values.hpp"

namespace stream_cases {

/// A device, with what its user does beside the library.
struct TestDevice {
  std::shared_ptr<baton::Device> device;
  std::function<baton::Stream()> make_stream;
  /// These return when it is done.
  std::function<void(std::byte* to, const void* from, std::size_t bytes)> write;
  std::function<void(void* to, const std::byte* from, std::size_t bytes)> read;
  std::function<void(baton::Stream)> synchronize;
  /// If messages go in groups: for so many ranks, what makes each rank's transport. Otherwise
  /// empty.
  using MakeGroups = std::function<std::unique_ptr<baton::FusedTransport>(baton::Transport& host)>;
  std::function<MakeGroups(int size)> groups = {};
  /// Runs ranks that are not threads: those of them that are in this process. Empty: all are
  /// threads.
  std::function<void(const std::function<void(std::unique_ptr<baton::Transport>)>&)> launch = {};
  baton::Returns returns = baton::Returns::at_once;  ///< where messages do not go in groups
};

/// One rank on a device: its communicator, and a stream as its user has.
struct Seat {
  baton::StreamCommunicator& communicator;
  const TestDevice& test_device;
  baton::Stream stream;
  int rank, size;

  /// Elements in the device's memory, and back.
  template <class T>
  T* put(const std::vector<T>& values) const {
    std::byte* const at = test_device.device->allocate(values.size() * sizeof(T) + 1);
    test_device.write(at, values.data(), values.size() * sizeof(T));
    return reinterpret_cast<T*>(at);
  }
  template <class T>
  std::vector<T> got(const T* at, std::size_t count) const {
    std::vector<T> values(count);
    test_device.read(values.data(), reinterpret_cast<const std::byte*>(at), count * sizeof(T));
    return values;
  }
  template <class T>
  void free(T* at) const {
    test_device.device->free(reinterpret_cast<std::byte*>(at));
  }
  void synchronize() const { test_device.synchronize(stream); }
  /// Returns when every rank has come here, and is done with all it called.
  void meet() const {
    communicator.barrier(stream);
    communicator.synchronize();
  }
};

/// Runs `body` on ranks that share one device. `segment`: not 0 if messages are staged.
void on_one_device(int size, const TestDevice& test_device, const std::function<void(Seat&)>& body,
                   const baton::Options& options = support::test_options(), std::uint64_t seed = 0,
                   std::size_t segment = 0);

/// A stand-in for a device, and one whose messages go in groups; and which it is.
TestDevice stand_in(const support::StandInOptions& options = {});
TestDevice in_groups(const support::StandInOptions& options = {},
                     const support::StandInFusedOptions& groups = {});
support::StandInDevice& stand_in_of(const Seat& seat);

std::vector<std::int32_t> numbers(int rank, std::int64_t count, std::uint64_t seed = 1);

/// Numbers of ranks for every_collective().
inline const auto sizes =
    support::under_sanitizer ? std::vector{1, 2, 5} : std::vector{1, 2, 3, 5, 8};

/// Every collective by every algorithm gives the host's bits.
void every_collective(int size, const TestDevice& test_device, std::uint64_t seed = 0,
                      std::size_t segment = 0);
/// On stand-ins: a call comes after the work that its stream was given before, and before the rest.
void in_order(int size, const TestDevice& test_device);
/// Many ranks sum what their streams were given work on just before, three times.
void many_ranks(int size, const TestDevice& test_device);
/// all_to_all of dimensions inside, on communicators that were split.
void tensors(const TestDevice& test_device);
/// An all_reduce of this is refused, in a sentence that has these parts.
void refused(const Seat& seat, baton::Data data, baton::Stream stream,
             const std::vector<std::string>& parts);

}  // namespace stream_cases
