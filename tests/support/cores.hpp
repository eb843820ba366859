#pragma once
/// Ranks that share a given number of cores, on any machine.

#include <functional>
#include <memory>
#include <utility>

#include "baton/forwarding.hpp"
#include "support/ranks.hpp"

namespace support {

/// Capabilities::cores is `cores`; all else is the inner transport's.
class WithCores : public baton::ForwardingTransport {
 public:
  WithCores(std::unique_ptr<baton::Transport> inner, int cores)
      : ForwardingTransport(std::move(inner)), cores_(cores) {}

  baton::Capabilities capabilities() const override {
    baton::Capabilities can = ForwardingTransport::capabilities();
    can.cores = cores_;
    return can;
  }

 protected:
  std::unique_ptr<baton::Transport> wrapped(std::unique_ptr<baton::Transport> part) override {
    return std::make_unique<WithCores>(std::move(part), cores_);
  }

 private:
  int cores_;
};

/// Runs `body` as on_ranks() does; the ranks' transport says that they share so many cores (0:
/// unknown).
inline void on_ranks_of_cores(int size, int cores,
                              const std::function<void(baton::Communicator&)>& body) {
  baton::run_threads(size, [&](std::unique_ptr<baton::Transport> transport) {
    baton::Communicator world(std::make_unique<WithCores>(std::move(transport), cores),
                              test_options());
    body(world);
  });
}

}  // namespace support
