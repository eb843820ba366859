// Runs on a device whose stream the test moves by hand.

#include "execute/device_run.hpp"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "baton/error.hpp"
#include "stage.hpp"

using namespace baton;
using namespace baton::execute;
using namespace support;

namespace {

using Texts = std::vector<std::string>;

/// A device with one stream, that does its work at once but says so only when it is told to. Its
/// memory is the host's.
class HandDevice final : public Device {
 public:
  std::string name() const override { return "hand device"; }
  Residence residence(const void*) const override { return Residence::device; }
  void check_stream(Stream) const override {}
  std::byte* allocate(std::size_t) override { return nullptr; }
  void free(std::byte*) noexcept override {}
  std::byte* allocate_host(std::size_t) override { return nullptr; }
  void free_host(std::byte*) noexcept override {}
  Stream make_stream() override { return this; }
  void end_stream(Stream) noexcept override {}
  std::unique_ptr<Marker> make_marker() override {
    ++markers;
    return std::make_unique<HandMarker>(*this);
  }
  std::unique_ptr<Gate> make_gate() override { return nullptr; }
  void copy(std::span<const Rows> rows, std::size_t element_bytes, Stream stream) override {
    note("copy", rows, stream);
    for (const Rows& one : rows) {
      for (std::int64_t row = 0; row < one.rows; ++row)
        std::memcpy(one.at[0] + row * one.stride[0], one.at[1] + row * one.stride[1],
                    static_cast<std::size_t>(one.block) * element_bytes);
    }
  }
  void fold(OpKind op, Datatype type, std::span<const Rows> rows, Stream stream) override {
    note("fold", rows, stream);
    const FoldFunction function = host::fold(op, type);
    for (const Rows& one : rows)
      function(one.at[0], one.at[1], one.at[2], static_cast<std::size_t>(one.block));
  }
  void divide(Datatype type, int ranks, std::span<const Rows> rows, Stream stream) override {
    note("divide", rows, stream);
    for (const Rows& one : rows)
      host::divide(type)(one.at[0], static_cast<std::size_t>(one.block), ranks);
  }

  Texts given;              ///< "copy of 2": one launch of 2 rows; "marker"
  int markers = 0;          ///< that were made
  int set = 0, passed = 0;  ///< markers, in the order in which they were set
  int polls_to_pass = -1;   ///< not negative: after so many polls all markers have passed
  bool broken = false;

 private:
  class HandMarker final : public Marker {
   public:
    explicit HandMarker(HandDevice& device) : device_(device) {}
    void set(Stream stream) override {
      CHECK(stream == &device_);
      number_ = ++device_.set;
      device_.given.push_back("marker");
    }
    bool passed() override {
      if (device_.broken) throw Error(ErrorCode::device, "broken");
      if (device_.polls_to_pass >= 0 && device_.polls_to_pass-- == 0) device_.passed = device_.set;
      return number_ <= device_.passed;
    }
    void hold(Stream) override {}

   private:
    HandDevice& device_;
    int number_ = 0;
  };

  void note(const char* what, std::span<const Rows> rows, Stream stream) {
    CHECK(stream == this);
    given.push_back(fmt::format("{} of {}", what, rows.size()));
  }
};

/// A run of steps of rank 0 of 3 on such a device, on elements of 1 byte.
struct DeviceStage {
  HandDevice device;
  DeviceQueue queue{&device, &device};
  Puppet transport;
  std::vector<std::byte> input = std::vector<std::byte>(16), output = input, scratch = input,
                         slots = input;
  std::shared_ptr<const Plan> plan;
  DeviceRun run;

  explicit DeviceStage(const std::string& steps) : plan(plan_of(steps)), run(plan, 2, queue) {
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<std::byte>(i + 1);
  }
  bool start() {
    run.bases()[scratch_base] = scratch.data();
    run.bases()[slot_base] = slots.data();
    run.bases()[first_tensor_base] = input.data();
    run.bases()[first_tensor_base + 1] = output.data();
    return run.start(transport, {.op = OpKind::max, .type = Datatype::i8},
                     100);  // `fold` is the host's
  }
  Texts fresh() { return std::exchange(device.given, {}); }
  std::vector<int> outputs(std::size_t count) const {
    std::vector<int> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<int>(output[i]));
    return values;
  }

 private:
  static std::shared_ptr<const Plan> plan_of(const std::string& steps) {
    const auto schedules =
        parse("baton-schedule 1\ncollective all_reduce\nsize 3\ninput 16\noutput 16\nrank 0\n" +
              steps + "\nrank 1\nrank 2\n");
    const std::int64_t sizes[] = {16};
    return std::make_shared<const Plan>(schedules[0], 1, sizes, sizes);
  }
};

}  // namespace

TEST_CASE("a device's run: steps that are ready together are one launch of each kind") {
  DeviceStage s(
      "copy output[0:2] = input[0:2]\ncopy output[2:2] = input[8:2]\n"
      "fold output[4:2] = input[0:2] + input[4:2]\nsend 1 output[0:6]");
  CHECK(!s.start());
  CHECK(s.fresh() == Texts{"copy of 2", "fold of 1", "marker"});
  CHECK(s.outputs(6) == std::vector<int>{1, 2, 9, 10, 5, 6});
}

TEST_CASE("a device's run: a message is posted once the marker before it is passed") {
  DeviceStage s("copy output[0:2] = input[0:2]\nsend 1 output[0:2]\nsend 2 input[0:3]");
  CHECK(!s.start());
  CHECK(s.transport.fresh() == Texts{"send 2 of 3"});
  CHECK(!s.run.drive());
  CHECK(s.transport.fresh().empty());
  CHECK(s.run.completed() == 0);
  s.device.passed = 1;
  CHECK(!s.run.drive());
  CHECK(s.transport.fresh() == Texts{"send 1 of 2"});
  CHECK(s.run.completed() == 1);
  s.transport.complete(0);
  s.transport.complete(1);
  CHECK(s.run.drive());
}

TEST_CASE("a device's run: what depends on the stream's work alone does not wait for the marker") {
  DeviceStage s(
      "recv 1 output[0:2]\ncopy output[2:2] = output[0:2]\n"
      "fold output[4:2] = output[2:2] + input[4:2]\nsend 2 output[4:2]");
  CHECK(!s.start());
  CHECK(s.fresh().empty());
  s.transport.posted[0].data[0] = std::byte{40};
  s.transport.complete(0);
  CHECK(!s.run.drive());
  CHECK(s.fresh() == Texts{"copy of 1", "fold of 1", "marker"});
  CHECK(s.outputs(6) == std::vector<int>{40, 0, 40, 0, 40, 6});
}

TEST_CASE("a device's run gives the stream nothing while it only waits") {
  DeviceStage s("send 1 input[0:1]\nsend 2 input[1:1]");
  CHECK(!s.start());
  CHECK(!s.run.drive());
  s.transport.complete(0);
  CHECK(!s.run.drive());
  s.transport.complete(1);
  CHECK(s.run.drive());
  CHECK(s.fresh().empty());
  CHECK(s.device.markers == 0);
}

TEST_CASE("a device's run uses its markers again") {
  DeviceStage s(
      "copy output[0:2] = input[0:2]\nrecv 1 output[2:2]\ncopy output[4:2] = output[2:2]\n"
      "divide output[0:2]");
  for (int turn = 0; turn < 3; ++turn) {
    s.device.set = s.device.passed = 0;
    CHECK(!s.start());
    CHECK(s.fresh() == Texts{"copy of 1", "divide of 1", "marker"});
    s.transport.complete(s.transport.posted.size() - 1);
    CHECK(!s.run.drive());
    CHECK(s.fresh() == Texts{"copy of 1", "marker"});
    s.device.passed = 2;
    CHECK(s.run.drive());
    CHECK(s.device.markers == 2);
    CHECK(s.outputs(2) == std::vector<int>{0, 0});  // a third of 1 and 2
  }
}

TEST_CASE("a device's run that is abandoned waits for the device") {
  DeviceStage s(
      "copy output[0:2] = input[0:2]\nrecv 1 output[2:2]\ncopy output[4:2] = output[2:2]\n"
      "recv 2 output[6:1]");
  CHECK(!s.start());
  s.transport.complete(0);
  CHECK(!s.run.drive());
  CHECK(s.device.set == 2);
  s.device.polls_to_pass = 5;
  s.run.abandon();
  CHECK(s.device.passed == 2);
  CHECK(s.transport.posted[1].cancelled);
}

TEST_CASE("a device's run that is abandoned does not wait for a broken device") {
  DeviceStage s("copy output[0:2] = input[0:2]\nrecv 1 output[2:1]");
  CHECK(!s.start());
  s.device.broken = true;
  CHECK_THROWS_AS(s.run.drive(), Error);
  s.run.abandon();
  CHECK(s.transport.posted[0].cancelled);
}

TEST_CASE("a device's run records when its steps were given and done") {
  DeviceStage s("copy output[0:2] = input[0:2]\nsend 1 output[0:2]");
  const auto recorder = std::make_shared<tracing::Recorder>(100);
  const std::uint32_t plan = recorder->add_plan(
      recorder->add_group({0, 1, 2}), {},
      std::shared_ptr<const void>(std::shared_ptr<int>(), &s.run),
      [](const void* run) { return static_cast<const Run*>(run)->plan().schedule(); });
  s.run.record(recorder, plan, 7);
  CHECK(!s.start());
  const std::int64_t given = tracing::now();
  s.device.passed = 1;
  CHECK(!s.run.drive());
  s.transport.complete(0);
  CHECK(s.run.drive());
  const tracing::Part part = recorder->take(0, 3);
  REQUIRE(part.records.size() == 2);
  const auto& copy = part.records[part.records[0].step == 0 ? 0 : 1];
  const auto& send = part.records[part.records[0].step == 0 ? 1 : 0];
  CHECK(copy.posted > 0);
  CHECK(copy.posted == copy.start);
  CHECK(copy.start <= given);
  CHECK(copy.end >= given);
  CHECK(send.posted >= copy.end);
}
