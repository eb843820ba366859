#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "baton/stream.hpp"
#include "checker.hpp"
#include "crew.hpp"
#include "device_trial.hpp"

namespace baton::cli {

/// One rank's part of this library's collectives in a device's streams, an exercise at a time. All
/// functions are collective. World, card and exercise must outlive what is done with them.
class DeviceSide {
 public:
  DeviceSide(World& world, const Card& card, StreamCommunicator communicator)
      : world_(world), card_(card), communicator_(std::move(communicator)) {}

  /// Makes the buffers and checks results on exact and on random values; what was chosen.
  Choice begin(const Exercise& exercise, const Choice& choice);
  /// Seconds of the slowest rank for so many calls, back to back in one stream.
  double seconds(int calls);
  /// Checks the last result once more; what all checks have found.
  Verdict end();

  StreamCommunicator& communicator() { return communicator_; }

 private:
  World& world_;
  const Card& card_;
  StreamCommunicator communicator_;
  Choice choice_;
  std::optional<DeviceTrial> trial_;
  std::optional<Checker> checker_;
  Verdict verdict_;
};

/// The same among threads of this process, rank r on card r modulo their number: one object for
/// all.
class DeviceThreads {
 public:
  DeviceThreads(const std::vector<Card>& cards, int ranks);
  ~DeviceThreads();

  Choice begin(const Exercise& exercise, const Choice& choice);
  double seconds(int calls);
  Verdict end();

 private:
  /// What `part` returns on rank 0; all call it.
  template <class Part>
  auto on_all(const Part& part);

  Crew crew_;
  std::vector<std::unique_ptr<DeviceSide>> sides_;
};

}  // namespace baton::cli
