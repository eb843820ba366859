// Each kind of run ends with the bits of the reference, for every algorithm.

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "baton/schedule/passes.hpp"
#include "execute/device_run.hpp"
#include "execute/progress.hpp"
#include "execute/scripted_run.hpp"
#include "support/ranks.hpp"
#include "support/sanitizer.hpp"
#include "support/schedules.hpp"
#include "support/stand_in.hpp"
#include "support/values.hpp"

using namespace baton;
using namespace baton::execute;
using namespace support;

namespace {

/// A rank's transport that offers blocking calls and, if it reads, has every other message read by
/// its receiver, in parts where it takes parts, and takes messages to every other rank in parts.
class Offering final : public Transport, public BlockingCalls, public SingleCopy, public Giving {
 public:
  /// `used`: counts blocking calls and messages taken in parts; `given`: those made in parts.
  Offering(std::shared_ptr<Transport> below, bool reads, std::atomic<int>& used,
           std::atomic<int>* given = nullptr)
      : below_(std::move(below)), reads_(reads), used_(used), given_(given) {}

  int rank() const override { return below_->rank(); }
  int size() const override { return below_->size(); }
  Capabilities capabilities() const override { return below_->capabilities(); }
  void isend(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    if (reads_) FAIL_CHECK("expected offer() and fetch()");
    below_->isend(peer, tag, data, bytes, message);
  }
  void irecv(int peer, int tag, void* data, std::size_t bytes, Message& message) override {
    if (reads_) FAIL_CHECK("expected offer() and fetch()");
    below_->irecv(peer, tag, data, bytes, message);
  }
  void send(const OutgoingMessage& out) override {
    ++used_;
    baton::send(*below_, out);
  }
  std::size_t recv(const IncomingMessage& in) override {
    ++used_;
    return baton::recv(*below_, in);
  }
  std::size_t send_recv(const OutgoingMessage& out, const IncomingMessage& in) override {
    ++used_;
    return baton::send_recv(*below_, out, in);
  }
  void offer(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    make_all_before(peer, tag, nullptr);
    below_->isend(peer, tag, data, bytes, message);
  }
  void fetch(int peer, int tag, const Destination& to, std::size_t bytes,
             Message& message) override {
    if (!to.take) return below_->irecv(peer, tag, to.data, bytes, message);
    ++used_;
    Pending& pending = pending_[&message];
    pending = {to, std::vector<std::byte>(bytes)};
    below_->irecv(peer, tag, pending.data.data(), bytes, message);
  }
  bool gives(int peer, std::size_t) const override { return (peer + rank()) % 2 == 0; }
  void give(int peer, int tag, const Source& from, std::size_t bytes, Message& message) override {
    if (given_) ++*given_;
    unsent_.push_back(&message);
    pending_[&message] = {Destination{nullptr}, std::vector<std::byte>(bytes), &from, peer, tag};
  }
  bool test(Message& message, std::size_t& bytes) override {
    const auto found = pending_.find(&message);
    if (found != pending_.end() && found->second.from) {
      make_all_before(found->second.peer, found->second.tag, &message);
      make_part(message);
      return false;
    }
    if (!below_->test(message, bytes)) return false;
    if (found == pending_.end()) return true;
    const Destination to = found->second.to;
    std::vector<std::byte>& data = found->second.data;
    if (!to.take) {
      pending_.erase(found);
      return true;
    }
    const std::size_t part = std::max(data.size() / to.unit / 3, std::size_t{1}) * to.unit;
    for (std::size_t at = 0; at < data.size(); at += part)
      to.take(to.data, data.data() + at, std::min(part, data.size() - at));
    pending_.erase(found);
    return true;
  }
  void cancel(Message& message) override { below_->cancel(message); }
  void progress() override { below_->progress(); }
  void idle(std::chrono::microseconds at_most) override { below_->idle(at_most); }
  std::unique_ptr<Transport> split(int color, int key) override {
    return below_->split(color, key);
  }
  BlockingCalls* blocking() override { return this; }
  SingleCopy* single_copy() override { return reads_ ? this : nullptr; }
  Giving* giving() override { return reads_ ? this : nullptr; }
  std::size_t least_bytes() const override { return 1; }
  bool reads(int) const override { return true; }

 private:
  struct Pending {
    Destination to;
    std::vector<std::byte> data;
    const Source* from = nullptr;  // of a message that is made; null when it has been
    int peer = 0, tag = 0;
    std::size_t made = 0;
  };
  /// In each test a third of the message, as late as may be.
  void make_part(Message& message) {
    auto& [to, data, from, peer, tag, made] = pending_.at(&message);
    const std::size_t third = std::max(data.size() / from->unit / 3, std::size_t{1}) * from->unit;
    const std::size_t part = std::min(third, data.size() - made);
    from->give(from->data, data.data() + made, part);
    made += part;
    if (made < data.size()) return;
    from = nullptr;
    std::erase(unsent_, &message);
    below_->isend(peer, tag, data.data(), data.size(), message);
  }
  /// Messages arrive in the order in which they were posted.
  void make_all_before(int peer, int tag, const Message* message) {
    const std::vector<Message*> unsent = unsent_;
    for (Message* const earlier : unsent) {
      if (earlier == message) return;
      const Pending& pending = pending_.at(earlier);
      if (pending.peer != peer || pending.tag != tag) continue;
      while (pending.from) make_part(*earlier);
    }
  }
  std::shared_ptr<Transport> below_;
  const bool reads_;
  std::atomic<int>& used_;
  std::atomic<int>* const given_;
  std::map<const Message*, Pending> pending_;
  std::vector<Message*> unsent_;  // that are made, in the order of their posts
};

/// One collective as all ranks' schedules.
struct Case {
  std::string name;
  std::vector<Schedule> schedules;
};

std::vector<Case> cases(int size) {
  std::vector<Case> all;
  const Registry registry = Registry::builtin();
  for (const Algorithm& algorithm : registry.all()) {
    for (const auto& [segment, rows] : {std::pair{0, 1}, {3, 1}, {0, 2}, {3, 2}}) {
      const bool tensors = algorithm.collective == Collective::all_to_all ||
                           algorithm.collective == Collective::all_gather;
      if (rows > 1 && !tensors) continue;
      Problem p = problem(algorithm.collective, size, 0, rows > 1 ? 12 : 2 * size + 3, false);
      if (rows > 1) p.output_rows = 2;
      if (rows > 1 && algorithm.collective == Collective::all_to_all) p.input_rows = 6;
      if (algorithm.collective == Collective::barrier) p.count = 1;
      if (algorithm.pipelined) p.blocks = 3;
      p.root = rooted(p.collective) ? size / 2 : 0;
      p.average = reducing(p.collective) && segment == 0;
      p.hosts = hosts_for(algorithm, size);
      if (!refusal(algorithm, p).empty()) continue;
      Case one{std::string(name(p.collective)) + " " + algorithm.name + ", " +
                   std::to_string(size) + " ranks, segment " + std::to_string(segment) + ", rows " +
                   std::to_string(rows),
               {}};
      for (const Schedule& s : schedules(algorithm, problems(p)))
        one.schedules.push_back(segmented(s, segment));
      all.push_back(std::move(one));
    }
  }
  return all;
}

/// Numbers whose sum depends on the order in which they are added.
std::vector<float> numbers(int rank, std::int64_t count) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < count; ++i)
    out.push_back(static_cast<float>(value(1, rank, i)) * (i % 3 == 0 ? 1e6F : 0.37F));
  return out;
}

Kernels sums() {
  Kernels kernels;
  kernels.fold = host::fold(OpKind::sum, Datatype::f32);
  kernels.divide = host::divide(Datatype::f32);
  kernels.type = Datatype::f32;
  return kernels;
}

struct Unwatched final : BlockedView {
  void enters(Wait, Wait) noexcept override {}
  void leaves() noexcept override {}
} unwatched;

/// A rank's run of a plan on f32, on the host's memory or on a device's.
class RankData {
 public:
  explicit RankData(StandInDevice* device = nullptr) : device_(device) {}
  ~RankData() { clear(); }
  RankData(const RankData&) = delete;
  RankData& operator=(const RankData&) = delete;

  /// The output's bits, then the input's, which an algorithm may have folded into.
  std::vector<float> execute(Run& run, Transport& transport, const Patience& patience = {}) {
    const Schedule::Header& header = run.plan().header();
    std::vector<float> input = numbers(transport.rank(), header.input);
    std::vector<float> output(static_cast<std::size_t>(header.output), -1.0F);
    const auto bases = run.bases();
    if (!run.has_scratch()) {
      bases[scratch_base] = room(run.plan().scratch_bytes());
      bases[slot_base] = room(run.plan().slot_bytes());
    }
    bases[first_tensor_base] = copied(input);
    bases[first_tensor_base + 1] = copied(output);
    bool done = run.start(transport, sums(), 0, patience);
    for (Waiting waiting(transport, std::chrono::seconds(60), 256); !done; done = run.drive())
      if (!waiting.again()) FAIL("no end: " << run.waiting());
    read(output, bases[first_tensor_base + 1]);
    read(input, bases[first_tensor_base]);
    output.insert(output.end(), input.begin(), input.end());
    clear();
    return output;
  }

 private:
  std::byte* room(std::size_t bytes) {
    if (device_) return blocks_.emplace_back(device_->allocate(std::max<std::size_t>(bytes, 4)));
    return host_blocks_.emplace_back(std::max<std::size_t>(bytes, 4)).data();
  }
  std::byte* copied(const std::vector<float>& data) {
    std::byte* const at = room(data.size() * sizeof(float));
    std::ranges::copy(std::as_bytes(std::span(data)), device_ ? device_->host_view(at) : at);
    return at;
  }
  void read(std::vector<float>& data, const std::byte* from) const {
    const auto bytes = std::as_writable_bytes(std::span(data));
    std::copy_n(device_ ? device_->host_view(from) : from, bytes.size(), bytes.begin());
  }
  void clear() {
    for (std::byte* const block : blocks_) device_->free(block);
    blocks_.clear();
    host_blocks_.clear();
  }

  StandInDevice* device_;
  std::vector<std::byte*> blocks_;
  std::vector<std::vector<std::byte>> host_blocks_;
};

/// One rank's execution of a plan, with a window; its output and input afterwards.
using Execute = std::function<std::vector<float>(const std::shared_ptr<const Plan>&, int window)>;

/// Compares a kind of run with the reference: every algorithm, on 1 to 6 ranks. `kind` gives a
/// rank's execution over a transport.
void compare(const std::function<Execute(std::shared_ptr<Transport>)>& kind,
             const ThreadOptions& options = {}) {
  for (const int size : {1, 2, 3, 4, 6}) {
    const std::vector<Case> all = cases(size);
    REQUIRE(all.size() > 50);
    Watchdog watchdog(size, std::chrono::seconds(240));
    run_threads(
        size,
        [&](std::unique_ptr<Transport> transport) {
          const int rank = transport->rank();
          const auto reference = transport->split(0, rank);
          const Execute execute = kind(std::move(transport));
          for (const Case& c : all) {
            const Schedule& schedule = c.schedules[static_cast<std::size_t>(rank)];
            const std::int64_t input[] = {schedule.header().input},
                               output[] = {schedule.header().output};
            const auto plan = std::make_shared<const Plan>(schedule, sizeof(float), input, output);
            Run run(plan, 2);
            const std::vector<float> expected = RankData().execute(run, *reference);
            if (!same_bits(execute(plan, 2), expected))
              FAIL_CHECK(c.name << ": rank " << rank << " differs from the reference");
          }
          watchdog.returned(rank);
        },
        options);
  }
}

}  // namespace

TEST_CASE("a scripted run, left at any message or never, ends with the bits of the reference") {
  ThreadOptions options;
  options.seed = 7;         // messages are late at random
  options.eager_bytes = 0;  // and wait for their receivers
  for (const Patience patience :
       {Patience{1}, Patience{3}, Patience{1 << 20}, Patience{9, &unwatched}}) {
    if (under_sanitizer && patience.attempts == 3) continue;
    std::atomic<int> waited = 0;
    compare(
        [&](std::shared_ptr<Transport> below) -> Execute {
          const auto transport = std::make_shared<Offering>(std::move(below), false, waited);
          return [=](const std::shared_ptr<const Plan>& plan, int window) {
            ScriptedRun run(plan, window);
            return RankData().execute(run, *transport, patience);
          };
        },
        options);
    CHECK((waited > 50) == (patience.view != nullptr));
  }
}

TEST_CASE("a run whose messages are read in their senders' memory does so, too") {
  std::atomic<int> taken = 0, given = 0;
  compare([&](std::shared_ptr<Transport> below) -> Execute {
    const auto transport = std::make_shared<Offering>(std::move(below), true, taken, &given);
    return [=](const std::shared_ptr<const Plan>& plan, int window) {
      SingleCopyRun run(plan, window);
      std::vector<float> bits = RankData().execute(run, *transport);
      ScriptedRun scripted(plan, window);
      CHECK(same_bits(RankData().execute(scripted, *transport, {5, &unwatched}), bits));
      return bits;
    };
  });
  CHECK(taken > 1000);
  CHECK(given > 100);
}

TEST_CASE("a run on a device's memory does so, too") {
  const auto device = std::make_shared<StandInDevice>(StandInOptions{.seed = 5});
  ThreadOptions options;
  options.devices = {device};
  compare(
      [&](const std::shared_ptr<Transport>& transport) -> Execute {
        const auto queue = std::shared_ptr<DeviceQueue>(
            new DeviceQueue{device.get(), device->make_stream()}, [](DeviceQueue* queue) {
              queue->device->end_stream(queue->stream);
              delete queue;
            });
        return [=, &device](const std::shared_ptr<const Plan>& plan, int window) {
          DeviceRun run(plan, window, *queue);
          return RankData(device.get()).execute(run, *transport);
        };
      },
      options);
  CHECK(device->allocated() == 0);
}
