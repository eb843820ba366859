#pragma once
/// A stage for one rank's run, whose messages the test completes by hand.

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "execute/scripted_run.hpp"
#include "support/schedules.hpp"

namespace support {

using namespace baton;
using namespace baton::execute;

/// A transport in the hands of the test: it notes what is posted and completes what it is told to.
class Puppet final : public Transport, public BlockingCalls, public SingleCopy, public Giving {
 public:
  struct Posted {
    bool send;
    int peer, tag;
    std::byte* data;
    std::size_t bytes;
    Message* message;
    bool complete = false, cancelled = false;
    std::size_t found = 0;
    bool read = false;  ///< in the sender's memory: offered, or fetched for
    Destination to{};
    const Source* from = nullptr;  ///< of a send that is given
  };
  int rank() const override { return 0; }
  int size() const override { return 3; }
  Capabilities capabilities() const override { return {}; }
  void isend(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    if (posted.size() == refused) throw Error(ErrorCode::transport, "refused");
    posted.push_back(
        {true, peer, tag, static_cast<std::byte*>(const_cast<void*>(data)), bytes, &message});
    if (near || peer == near_peer) complete(posted.size() - 1, bytes - lost);
  }
  void irecv(int peer, int tag, void* data, std::size_t bytes, Message& message) override {
    if (posted.size() == refused_receive) throw Error(ErrorCode::transport, "refused");
    posted.push_back({false, peer, tag, static_cast<std::byte*>(data), bytes, &message});
    if (near) complete(posted.size() - 1, bytes - lost);
  }
  void offer(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    isend(peer, tag, data, bytes, message);
    posted.back().read = true;
  }
  void fetch(int peer, int tag, const Destination& to, std::size_t bytes,
             Message& message) override {
    irecv(peer, tag, to.take ? nullptr : to.data, bytes, message);
    posted.back().read = true;
    posted.back().to = to;
  }
  bool gives(int, std::size_t) const override { return takes_parts; }
  void give(int peer, int tag, const Source& from, std::size_t bytes, Message& message) override {
    isend(peer, tag, nullptr, bytes, message);
    posted.back().from = &from;
  }
  std::size_t least_bytes() const override { return least_read; }
  bool reads(int) const override { return readable; }
  BlockingCalls* blocking() override { return this; }
  SingleCopy* single_copy() override { return this; }
  Giving* giving() override { return this; }
  std::size_t recv(const IncomingMessage& in) override {
    posted.push_back({false, in.peer, in.tag, static_cast<std::byte*>(in.data), in.bytes, nullptr});
    waited += std::to_string(posted.size() - 1) + " ";
    return in.bytes - lost;
  }
  void send(const OutgoingMessage& out) override {
    ++sent_waiting;
    Message message;
    isend(out.peer, out.tag, out.data, out.bytes, message);
    std::size_t sent = 0;
    while (!test(message, sent)) idle({});
  }
  std::size_t send_recv(const OutgoingMessage& out, const IncomingMessage& in) override {
    ++together;
    Message message;
    isend(out.peer, out.tag, out.data, out.bytes, message);
    const std::size_t received = recv(in);
    std::size_t sent = 0;
    while (!test(message, sent)) idle({});
    return received;
  }
  bool test(Message& message, std::size_t& bytes) override {
    ++tests;
    Posted& p = of(message);
    bytes = p.found;
    if (p.complete) p.message = nullptr;
    return p.complete;
  }
  void cancel(Message& message) override {
    Posted& p = of(message);  // which fails for a message that is cancelled twice
    p.cancelled = true;
    p.message = nullptr;
  }
  void progress() override {}
  void idle(std::chrono::microseconds) override {}
  std::unique_ptr<Transport> split(int, int) override { return nullptr; }

  /// Messages of so many bytes and more are read in their sender's memory.
  std::size_t least_read = std::numeric_limits<std::size_t>::max();
  bool readable = true;      ///< whether that can be done
  bool takes_parts = false;  ///< of messages that are made while they are sent
  bool near = false;         ///< every message is complete when it is posted
  int near_peer = -1;        ///< those to this one are
  std::size_t lost = 0;      ///< bytes of it that are missing
  std::size_t refused = std::numeric_limits<std::size_t>::max();  ///< the send that is
  std::size_t refused_receive = std::numeric_limits<std::size_t>::max();
  int tests = 0;
  std::string waited;    ///< which of `posted` came by recv()
  int together = 0;      ///< calls of send_recv()
  int sent_waiting = 0;  ///< calls of send()

  void complete(std::size_t i) { complete(i, posted[i].bytes); }
  void complete(std::size_t i, std::size_t found) {
    posted[i].complete = true;
    posted[i].found = found;
  }
  /// Gives these bytes to who takes the message in parts.
  void give(std::size_t i, std::vector<std::int8_t> part) {
    REQUIRE(static_cast<bool>(posted[i].to.take));
    posted[i].to.take(posted[i].to.data, reinterpret_cast<std::byte*>(part.data()), part.size());
  }
  /// The next bytes of a message that is made in parts.
  std::vector<int> made(std::size_t i, std::size_t bytes) {
    REQUIRE(posted[i].from != nullptr);
    std::vector<std::byte> part(bytes);
    posted[i].from->give(posted[i].from->data, part.data(), bytes);
    std::vector<int> numbers;
    for (const std::byte byte : part) numbers.push_back(static_cast<int>(byte));
    return numbers;
  }
  /// "send 1 of 4" and so on, of what was posted since the last call.
  std::vector<std::string> fresh() {
    std::vector<std::string> text;
    for (; told_ < posted.size(); ++told_) {
      const Posted& p = posted[told_];
      const std::string what = p.from   ? "give "
                               : p.read ? p.send      ? "offer "
                                          : p.to.take ? "take "
                                                      : "fetch "
                               : p.send ? "send "
                                        : "recv ";
      text.push_back(what + std::to_string(p.peer) + " of " + std::to_string(p.bytes));
    }
    return text;
  }
  std::deque<Posted> posted;

 private:
  Posted& of(const Message& message) {
    const auto found = std::find_if(posted.begin(), posted.end(),
                                    [&](const Posted& p) { return p.message == &message; });
    REQUIRE(found != posted.end());
    return *found;
  }
  std::size_t told_ = 0;
};

struct Stage;
/// What the next run on a stage records.
class Recorded {
 public:
  explicit Recorded(Stage& stage);
  /// That there are `steps`, each once, and each after those that it depends on.
  void check(std::size_t steps) const;

 private:
  std::shared_ptr<tracing::Recorder> recorder_ = std::make_shared<tracing::Recorder>(100);
  std::uint32_t plan_;
};

/// Writes down a run's waits inside the transport.
struct View final : BlockedView {
  void enters(Wait receive, Wait send) noexcept override {
    const auto add = [&](const char* kind, Wait wait) {
      if (wait.peer < 0) return;
      seen += kind + std::to_string(wait.peer) + " in step " + std::to_string(wait.step) + " ";
    };
    add("recv ", receive);
    add("send ", send);
  }
  void leaves() noexcept override { seen += "left "; }
  std::string seen;
};

/// A run of steps of rank 0 of 3, on i8 elements, or on longer ones of the caller's own.
struct Stage {
  Puppet transport;
  View view;
  std::vector<std::byte> input, output;
  std::vector<std::byte> scratch = std::vector<std::byte>(1 << 15),
                         slots = std::vector<std::byte>(1 << 15);
  std::unique_ptr<ScriptedRun> run;
  Op::Function fold = nullptr;  ///< instead of the sum
  void* context = nullptr;      ///< of it

  Stage(const std::string& steps, int window, std::size_t element_bytes = 1,
        std::size_t elements = 16)
      : input(elements * element_bytes), output(elements * element_bytes) {
    const std::string count = std::to_string(elements);
    const auto schedules = parse("baton-schedule 1\ncollective all_reduce\nsize 3\ninput " + count +
                                 "\noutput " + count + "\nrank 0\n" + steps + "\nrank 1\nrank 2\n");
    const std::int64_t sizes[] = {static_cast<std::int64_t>(elements)};
    run = std::make_unique<ScriptedRun>(
        std::make_shared<const Plan>(schedules[0], element_bytes, sizes, sizes), window);
  }
  void start(int tag = 100) {
    set_bases();
    run->start(transport, kernels(), tag);
  }
  void start_over(Puppet& other) {
    set_bases();
    run->start(other, kernels(), 100);
  }
  bool start_scripted(int attempts, bool may_wait = false) {
    set_bases();
    return run->start(transport, kernels(), 100, {attempts, may_wait ? &view : nullptr});
  }

 private:
  Kernels kernels() const {
    return {host::fold(OpKind::sum, Datatype::i8), fold, context, host::divide(Datatype::i8)};
  }
  void set_bases() {
    if (!run->has_scratch()) {
      run->bases()[scratch_base] = scratch.data();
      run->bases()[slot_base] = slots.data();
    }
    run->bases()[first_tensor_base] = input.data();
    run->bases()[first_tensor_base + 1] = output.data();
  }
};

inline Recorded::Recorded(Stage& stage)
    : plan_(recorder_->add_plan(
          recorder_->add_group({0, 1, 2}), {},
          std::shared_ptr<const void>(std::shared_ptr<int>(), stage.run.get()),
          [](const void* run) { return static_cast<const Run*>(run)->plan().schedule(); })) {
  stage.run->record(recorder_, plan_, 7);
}

inline void Recorded::check(std::size_t steps) const {
  const tracing::Part part = recorder_->take(0, 3);
  REQUIRE(part.records.size() == steps);
  if (steps == 0) return;
  const Schedule& schedule = part.plans.at(0).schedule;
  std::vector<const tracing::Part::Record*> of(schedule.steps().size(), nullptr);
  for (const auto& record : part.records) {
    CHECK(record.sequence == 7);
    CHECK(record.posted <= record.start);
    CHECK(record.start <= record.end);
    CHECK(of[record.step] == nullptr);
    of[record.step] = &record;
  }
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (!of[i]) continue;
    for (const std::uint32_t before : schedule.dependencies(i)) {
      REQUIRE(of[before] != nullptr);
      CHECK(of[i]->posted >= of[before]->end);
    }
  }
}

}  // namespace support
