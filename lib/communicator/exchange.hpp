#pragma once
/// Exchanges among all ranks that no schedule describes: of the transport's own, and of recordings.

#include <chrono>
#include <cstdint>
#include <map>

#include "baton/error.hpp"
#include "launcher.hpp"

namespace baton::communicator {

/// Remembers since when ranks have been gone.
class Absence {
 public:
  /// Whether the rank, which is gone now or not, has been for so long that no message of it comes
  /// any more.
  bool lasts(int rank, bool gone);

 private:
  std::map<int, std::chrono::steady_clock::time_point> since_;
};

/// One that others see as an operation, with the communicator's next number.
class Exchange {
 public:
  /// `limit`: for all of it; 0: none.
  Exchange(Launcher& launcher, const Context& context, const char* name,
           std::chrono::milliseconds limit);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// For loops that wait: throws if others have given it up, the peer that this rank waits for is
  /// gone, or time is up. Without a peer: if the process of any rank has ended. Ranks that need
  /// nobody any more may leave.
  void check(int peer = -1);
  /// Throws the sentence of all ranks about this one's wait for `peer`. Tells them.
  [[noreturn]] void give_up(ErrorCode code, int peer);
  /// A failure as all ranks tell it. Tells them.
  Error told(const Error& error) const;

 private:
  Error retold(const Watch::Verdict& verdict) const;
  bool alone(int peer);

  Launcher& launcher_;
  const Context& context_;
  const char* const name_;
  const std::chrono::milliseconds limit_;
  std::uint64_t number_, place_;
  const std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point look_at_;
  Absence absence_;
};

}  // namespace baton::communicator
