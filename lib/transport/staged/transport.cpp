#include "baton/staged.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "../../base/raise.hpp"
#include "../gathered.hpp"
#include "message.hpp"

namespace baton {
namespace {

using namespace staged;

class StagedTransport final : public Transport {
 public:
  StagedTransport(std::unique_ptr<Transport> host, std::shared_ptr<Device> device,
                  std::shared_ptr<Abandoned> abandoned, std::size_t segment)
      : device_(std::move(device)),
        abandoned_(std::move(abandoned)),
        pool_(base::BlockPool::Memory::staging, device_.get()),
        host_(std::move(host)),
        route_{.host = *host_,
               .cancels = host_->capabilities().cancels,
               .device = *device_,
               .pool = pool_,
               .abandoned = *abandoned_,
               .to_host = device_->make_stream(),
               .to_device = device_->make_stream(),
               .segment = segment} {}

  ~StagedTransport() override {
    for (Transfer* t = first_; t;) std::exchange(t, t->next)->cancel();
    device_->end_stream(route_.to_host);
    device_->end_stream(route_.to_device);
  }

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  Capabilities capabilities() const override {
    Capabilities can = host_->capabilities();
    can.name = "staged over " + can.name;
    can.device_memory = true;
    can.cancels = false;  // segments already sent cannot be taken back
    return can;
  }
  bool alive() const override { return host_->alive(); }

  void isend(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    start(true, peer, tag, const_cast<void*>(data), bytes, message);
  }
  void irecv(int peer, int tag, void* data, std::size_t bytes, Message& message) override {
    start(false, peer, tag, data, bytes, message);
  }

  bool test(Message& message, std::size_t& bytes) override {
    Transfer& transfer = *transfer_in(message);
    released_if_thrown(message, [&] { advance(transfer); });
    if (!transfer.done()) return false;
    bytes = transfer.bytes();
    forget(message);
    return true;
  }
  void cancel(Message& message) override {
    Transfer* const transfer = transfer_in(message);
    if (!transfer) return;  // isend(), irecv() or test() has thrown
    transfer->cancel();
    forget(message);
  }
  void progress() override {
    host_->progress();
    advance_all();
  }
  int probe(int tag) override {
    advance_all();
    const int source = host_->probe(tag);
    // This may be a later segment of a message that a receive has taken.
    for (const Transfer* t = first_; t; t = t->next)
      if (t->takes(source, tag)) return -1;
    return source;
  }
  void idle(std::chrono::microseconds at_most) override {
    advance_all();
    bool copying = false;
    for (const Transfer* t = first_; t; t = t->next) {
      if (t->done() || t->failed()) return;
      copying = copying || t->copying();
    }
    if (copying) {
      std::this_thread::yield();
    } else {
      host_->idle(at_most);
    }
  }

  std::unique_ptr<Transport> split(int color, int key) override {
    auto part = host_->split(color, key);
    if (!part) return nullptr;
    return std::make_unique<StagedTransport>(std::move(part), device_, abandoned_, route_.segment);
  }
  std::unique_ptr<Transport> subgroup(const std::vector<int>& ranks, int number) override {
    return std::make_unique<StagedTransport>(host_->subgroup(ranks, number), device_, abandoned_,
                                             route_.segment);
  }
  void expect_strays() override { host_->expect_strays(); }

 private:
  static Transfer*& transfer_in(Message& message) {
    return *std::launder(reinterpret_cast<Transfer**>(message.state));
  }
  void start(bool sends, int peer, int tag, void* data, std::size_t bytes, Message& message) {
    Transfer*& started = *new (message.state) Transfer*(nullptr);
    if (idle_.empty()) {
      all_.push_back(std::make_unique<Transfer>(route_));
      idle_.reserve(all_.size());
      idle_.push_back(all_.back().get());
    }
    Transfer* const transfer = idle_.back();
    transfer->begin(sends, peer, tag, static_cast<std::byte*>(data), bytes);
    idle_.pop_back();
    started = transfer;
    transfer->next = nullptr;
    (last_ ? last_->next : first_) = transfer;
    last_ = transfer;
    released_if_thrown(message, [&] { advance(*transfer); });
  }
  void advance(Transfer& transfer) {
    bool first = true;
    for (const Transfer* t = first_; t != &transfer && first; t = t->next)
      first = t->posted() || !t->same_order(transfer);
    transfer.advance(first);
  }
  /// Advances all messages. If one fails, only its own test() throws.
  void advance_all() {
    for (Transfer* t = first_; t; t = t->next) {
      if (t->failed()) continue;
      try {
        advance(*t);
      } catch (...) {
        t->fail(std::current_exception());
      }
    }
  }
  template <class Body>
  void released_if_thrown(Message& message, const Body& body) {
    try {
      body();
    } catch (...) {
      cancel(message);
      throw;
    }
  }
  /// Removes it from the list of messages under way.
  void forget(Message& message) {
    Transfer& transfer = *std::exchange(transfer_in(message), nullptr);
    Transfer* before = nullptr;
    for (Transfer* t = first_; t != &transfer; t = t->next) before = t;
    (before ? before->next : first_) = transfer.next;
    if (last_ == &transfer) last_ = before;
    idle_.push_back(&transfer);
  }

  std::shared_ptr<Device> device_;
  std::shared_ptr<Abandoned> abandoned_;
  base::BlockPool pool_;
  std::unique_ptr<Transport> host_;  // destroyed before the buffers that it may use
  Route route_;
  std::vector<std::unique_ptr<Transfer>> all_;
  std::vector<Transfer*> idle_;
  Transfer* first_ = nullptr;  // under way, in order of posting
  Transfer* last_ = nullptr;
};

}  // namespace

std::unique_ptr<Transport> staged_transport(std::unique_ptr<Transport> host,
                                            std::shared_ptr<Device> device, std::size_t segment) {
  if (!host || !device) base::refuse("expected a transport and a device, found null");
  if (segment == 0) base::refuse("expected segments of at least 1 byte, found 0");
  auto abandoned = std::make_shared<Abandoned>(device);
  return std::make_unique<StagedTransport>(std::move(host), std::move(device), std::move(abandoned),
                                           segment);
}

std::unique_ptr<Transport> device_transport(std::unique_ptr<Transport> transport,
                                            std::shared_ptr<Device> device) {
  if (!transport || !device) return staged_transport(std::move(transport), std::move(device));
  const auto able =
      transport::gathered(*transport, transport->capabilities().device_memory ? 1 : 0);
  if (std::ranges::find(able, 0) == able.end()) return transport;
  return staged_transport(std::move(transport), std::move(device));
}

}  // namespace baton
