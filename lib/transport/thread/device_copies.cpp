#include "device_copies.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "baton/error.hpp"

namespace baton::threads {

DeviceCopies::DeviceCopies(Group& group, std::shared_ptr<Device> device)
    : group_(group), device_(std::move(device)), stream_(device_->make_stream()) {}

DeviceCopies::~DeviceCopies() {
  finish();
  device_->end_stream(stream_);
}

void DeviceCopies::start(Entry& send, Entry& recv) {
  Copy& copy = copies_.emplace_back(Copy{&send, &recv, markers_.take(*device_)});
  Rows rows;
  rows.at[0] = recv.data;
  rows.at[1] = send.data;
  rows.block = static_cast<std::int64_t>(std::min(send.bytes, recv.bytes));
  if (rows.block > 0) device_->copy({&rows, 1}, 1, stream_);
  copy.marker->set(stream_);
}

void DeviceCopies::complete() {
  while (!copies_.empty()) {
    Copy& first = copies_.front();
    const auto take = [&] {
      group_.complete(*first.send, *first.recv, nullptr);
      markers_.give(std::move(first.marker));
      copies_.erase(copies_.begin());
    };
    try {
      if (!first.marker->passed()) return;
    } catch (const Error&) {
      take();
      throw;
    }
    take();
  }
}

void DeviceCopies::finish() noexcept {
  while (any()) {
    try {
      complete();
    } catch (const Error&) {
      continue;  // the test of the message gets the device's error
    }
    if (any()) std::this_thread::yield();
  }
}

}  // namespace baton::threads
