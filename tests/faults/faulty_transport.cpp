#include "faulty_transport.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <random>
#include <thread>
#include <utility>

#include "baton/error.hpp"

namespace faults {

using namespace baton;
using namespace std::chrono_literals;

namespace {

constexpr const char* names[kinds] = {"none",      "reordered", "shortened", "lengthened",
                                      "corrupted", "refused",   "failed",    "stopped",
                                      "dead",      "no memory"};

/// A message under way.
struct Transfer {
  Message message{};
  std::vector<std::byte> changed{};  ///< what is sent instead
  std::size_t bytes = 0;             ///< of a changed one, as its sender believes
  int held = 0;                      ///< tests that do not find it complete
  bool fails = false;
  bool handed = true;  ///< to the transport below
};

class FaultyTransport final : public ForwardingTransport {
 public:
  FaultyTransport(std::unique_ptr<Transport> inner, const Plan& plan, Course& course)
      : ForwardingTransport(std::move(inner)),
        plan_(plan),
        course_(course),
        random_(static_cast<std::minstd_rand::result_type>(plan.seed * 31 + 1) +
                static_cast<std::minstd_rand::result_type>(rank())) {}

  void isend(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    auto transfer = std::make_unique<Transfer>();
    if (due(true)) {
      meet(peer, *transfer);
      if (changes()) {
        change(*transfer, data, bytes);
        data = transfer->changed.data();
        bytes = transfer->changed.size();
      }
    }
    hold(*transfer);
    if (!breaks(*transfer, {true, peer, tag}))
      inner().isend(peer, tag, data, bytes, transfer->message);
    new (message.state) Transfer*(transfer.release());
  }

  void irecv(int peer, int tag, void* data, std::size_t bytes, Message& message) override {
    auto transfer = std::make_unique<Transfer>();
    if (due(false)) meet(peer, *transfer);
    hold(*transfer);
    if (!breaks(*transfer, {false, peer, tag}))
      inner().irecv(peer, tag, data, bytes, transfer->message);
    new (message.state) Transfer*(transfer.release());
  }

  bool test(Message& message, std::size_t& bytes) override {
    Transfer& transfer = *transfer_in(message);
    if (transfer.held > 0) {
      --transfer.held;
      return false;
    }
    if (transfer.fails) {
      cancel(message);
      throw Error(ErrorCode::transport, "the connection broke");
    }
    if (!inner().test(transfer.message, bytes)) return false;
    if (!transfer.changed.empty()) bytes = transfer.bytes;
    delete std::exchange(transfer_in(message), nullptr);
    return true;
  }

  void cancel(Message& message) override {
    Transfer* const transfer = std::exchange(transfer_in(message), nullptr);
    if (!transfer) return;
    if (transfer->handed) inner().cancel(transfer->message);
    delete transfer;
  }

  void idle(std::chrono::microseconds at_most) override {
    // A held message rings no bell.
    inner().idle(plan_.kind == Kind::reordered ? std::min(at_most, 5us) : at_most);
  }

 private:
  /// The messages whose order counts.
  struct Stream {
    bool sends = false;
    int peer = -1, tag = -1;
    bool operator==(const Stream&) const = default;
  };

  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override { return part; }

  static Transfer*& transfer_in(Message& message) {
    return *std::launder(reinterpret_cast<Transfer**>(message.state));
  }

  bool changes() const {
    return plan_.kind == Kind::shortened || plan_.kind == Kind::lengthened ||
           plan_.kind == Kind::corrupted;
  }
  /// Whether the fault's turn has come. Only sends count where the fault changes a message.
  bool due(bool sends) {
    if (!course_.armed || plan_.kind < Kind::shortened || plan_.kind == Kind::no_memory ||
        rank() != plan_.rank || (changes() && !sends))
      return false;
    return count_++ == plan_.at;
  }

  void meet(int peer, Transfer& transfer) {
    course_.happened = true;
    if (plan_.kind == Kind::refused) {
      Error error(ErrorCode::transport, "no way to rank " + std::to_string(peer));
      error.peer = peer;
      throw error;
    }
    if (plan_.kind == Kind::failed) transfer.fails = true;
    if (plan_.kind == Kind::dead) throw Ended();
    if (plan_.kind == Kind::stopped) {
      while (!course_.over) std::this_thread::sleep_for(1ms);
      throw Ended();
    }
  }

  /// Behind a message that fails, none of its stream comes. True: the transport must not see it.
  bool breaks(Transfer& transfer, const Stream& stream) {
    if (stream == broken_) {
      transfer.fails = true;
      transfer.handed = false;
    } else if (transfer.fails) {
      broken_ = stream;
    }
    return !transfer.handed;
  }

  void change(Transfer& transfer, const void* data, std::size_t bytes) const {
    const auto* const begin = static_cast<const std::byte*>(data);
    transfer.changed.assign(begin, begin + bytes);
    transfer.bytes = bytes;
    if (plan_.kind == Kind::shortened && bytes > 0) transfer.changed.pop_back();
    if (plan_.kind == Kind::corrupted && bytes > 0)
      transfer.changed[static_cast<std::size_t>(plan_.at) % bytes] ^= std::byte(4);
    // An empty message cannot lose anything.
    if (plan_.kind == Kind::lengthened || bytes == 0) transfer.changed.push_back(std::byte(77));
  }

  void hold(Transfer& transfer) {
    if (plan_.kind == Kind::reordered && random_() % 2 == 0)
      transfer.held = static_cast<int>(random_() % 64);
  }

  const Plan plan_;
  Course& course_;
  std::minstd_rand random_;
  int count_ = 0;
  Stream broken_;
};

}  // namespace

const char* name(Kind kind) { return names[static_cast<int>(kind)]; }

std::string describe(const Plan& plan) {
  std::string text = name(plan.kind);
  if (plan.kind >= Kind::shortened)
    text = "rank " + std::to_string(plan.rank) + ": " +
           (plan.kind == Kind::no_memory ? "allocation " : "message ") + std::to_string(plan.at) +
           " " + text;
  if (plan.seed != 0) text += ", seed " + std::to_string(plan.seed);
  return text;
}

std::unique_ptr<Transport> faulty_transport(std::unique_ptr<Transport> inner, const Plan& plan,
                                            Course& course) {
  return std::make_unique<FaultyTransport>(std::move(inner), plan, course);
}

}  // namespace faults
