#include "transformer/accelerator.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "accelerator_cases.hpp"
#include "stand_in_accelerator.hpp"
#include "support/ranks.hpp"
#include "support/sanitizer.hpp"
#include "transformer/exchange.hpp"
#include "transformer/optimizer.hpp"
#include "transformer/training/batch.hpp"
#include "transformer/training/compare.hpp"
#include "transformer/training/finite.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;
using namespace accelerator_cases;

namespace {

/// `seed`: not 0 if the device does its work late; `channels`: that streams share; 0: none.
TestDevice stand_in(std::uint64_t seed = 0, int channels = 0) {
  StandInOptions options;
  options.seed = seed;
  options.channels = channels;
  const auto device = std::make_shared<StandInDevice>(options);
  return {device, [device] { return std::make_unique<StandInAccelerator>(device); }};
}

StandInDevice& device_of(const Place& place) {
  return dynamic_cast<StandInDevice&>(place.accelerator->device());
}

}  // namespace

TEST_CASE("on 1, 2 and 4 ranks, every form of a block gives what the host's whole block gives") {
  for (const int ranks : {1, 2, 4}) {
    blocks<float>(ranks, stand_in());
    blocks<bf16>(ranks, stand_in());
  }
}

TEST_CASE("the same where messages come late and streams take their time") {
  blocks<float>(2, stand_in(3), 5);
}

TEST_CASE("the same where streams that compute share a queue with those that are held") {
  for (const int channels : {1, 3}) {
    if (under_sanitizer && channels == 1) continue;
    blocks<float>(2, stand_in(0, channels));
    blocks<float>(4, stand_in(3, channels), 5);
    TestDevice in_groups = stand_in(0, channels);
    in_groups.groups = true;
    blocks<float>(4, in_groups);
    training<float>(2, in_groups);
  }
}

TEST_CASE("steps of training in every form leave the host's losses and weights") {
  for (const int ranks : {1, 2, 4}) {
    training<float>(ranks, stand_in());
    training<bf16>(ranks, stand_in());
  }
}

TEST_CASE("values of bf16 follow a master") { masters(stand_in()); }

TEST_CASE("linear layers and vocabularies give what the host's give") {
  for (const int ranks : {1, 2, 4}) {
    linear_layers<float>(ranks, stand_in());
    language_model<float>(ranks, stand_in());
    sharded_language_model<float>(ranks, stand_in());
    files<float>(ranks, stand_in());
    vocabulary<float>(ranks, stand_in());
    if (under_sanitizer && ranks != 2) continue;
    linear_layers<bf16>(ranks, stand_in());
    language_model<bf16>(ranks, stand_in());
    sharded_language_model<bf16>(ranks, stand_in());
    files<bf16>(ranks, stand_in());
    vocabulary<bf16>(ranks, stand_in());
  }
}

TEST_CASE("arrays are where the thread's accelerator is, and their memory is given back") {
  const auto device = std::make_shared<StandInDevice>();
  {
    StandInAccelerator accelerator(device);
    const AcceleratorScope scope(&accelerator);
    const auto x = create_batch<float>(1, {3, 4}, {3, 4}).x;
    CHECK(device->residence(x.data()) == Residence::device);
    Array<float> zeros({5});
    const auto turned = to_host<float>(x.view().transposed(0, 1));
    {
      const AcceleratorScope host(nullptr);
      const auto expected = create_batch<float>(1, {3, 4}, {3, 4}).x;
      CHECK(device->residence(expected.data()) == Residence::host);
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 4; ++j) CHECK(turned.view()(j, i) == expected.view()(i, j));
    }
    CHECK(accelerator.device().residence(turned.data()) == Residence::host);
    const auto there = from_host<float>(turned.view().transposed(0, 1));
    const auto back = to_host<float>(there);
    const auto none = to_host<float>(zeros);
    const AcceleratorScope host(nullptr);
    CHECK(compare_tensors<float>(back, turned.view().transposed(0, 1), 0).match);
    for (const float zero : none.span()) CHECK(zero == 0);
    CHECK(device->allocated() > 0);
  }
  CHECK(device->allocated() == 0);
}

TEST_CASE("what may be gone when an accelerator works is not called") {
  StandInAccelerator accelerator(std::make_shared<StandInDevice>());
  const AcceleratorScope scope(&accelerator);
  Array<float> q({1, 3, 2, 4}), log_sums({1, 2, 3}), gradient({2, 4}), dweight({4, 4});
  std::atomic<int> calls = 0;
  AttentionOptions options;
  options.meanwhile = [&] { ++calls; };
  attention<float>(q, q, q, options, q.view(), log_sums.view());
  attention_backward<float>(q, q, q, q, q, log_sums.view(), options, q.view(), q.view(), q.view());
  linear_backward_weight<float>(gradient, gradient, dweight.view(), {}, options.meanwhile);
  accelerator.synchronize();
  CHECK(calls == 0);
}

TEST_CASE("what is computed after an exchange was started does not wait for it") {
  std::atomic<bool> computed = false, in_time = false;
  on_one_device(2, stand_in(), [&](Communicator& world, const Place& place) {
    const Mesh mesh = mesh_of(world, place, {{Axis::tp, 2}});
    const AcceleratorScope scope(place.accelerator);
    const Array<float> one = create_batch<float>(1, {3, 4}, {3, 4}).x;
    Array<float> other = one.copy();
    // One rank's stream does not come to the exchange before the other rank has computed.
    if (world.rank() == 1) {
      device_of(place).run(place.accelerator->stream(), [&] {
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (!computed && std::chrono::steady_clock::now() < until) std::this_thread::yield();
        in_time = computed.load();
      });
    }
    auto pending = Exchange::reduce_parallel(mesh.group(Axis::tp)).start_forward(one.copy());
    add<float>(one, other.view());
    const auto twice = to_host<float>(other);
    if (world.rank() == 0) computed = true;
    const Array<float> reduced = pending.wait();
    const auto sum = to_host<float>(reduced);
    const auto expected = to_host<float>(one);
    const AcceleratorScope host(nullptr);
    for (std::int64_t i = 0; i < sum.size(); ++i) {
      CHECK(twice.data()[i] == 2 * expected.data()[i]);
      CHECK(sum.data()[i] == 2 * expected.data()[i]);
    }
  });
  CHECK(in_time);
}

TEST_CASE("an exchange that nobody waits for keeps its memory until it is done") {
  on_one_device(2, stand_in(), [&](Communicator& world, const Place& place) {
    const Mesh mesh = mesh_of(world, place, {{Axis::tp, 2}});
    const AcceleratorScope scope(place.accelerator);
    const Array<float> one = create_batch<float>(1, {3, 4}, {3, 4}).x;
    if (world.rank() == 0) {
      device_of(place).run(place.accelerator->stream(),
                           [] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); });
    }
    const auto reduce = Exchange::reduce_parallel(mesh.group(Axis::tp));
    if (world.rank() == 1) {
      reduce.start_forward(one.copy());  // and let go at once
      return;
    }
    const Array<float> reduced = reduce.start_forward(one.copy()).wait();
    const auto sum = to_host<float>(reduced);
    const auto expected = to_host<float>(one);
    const AcceleratorScope host(nullptr);
    for (std::int64_t i = 0; i < sum.size(); ++i) CHECK(sum.data()[i] == 2 * expected.data()[i]);
  });
}

TEST_CASE("an accelerator's mesh without a communicator for its memory is refused") {
  const TestDevice test_device = stand_in();
  on_one_device(2, test_device, [&](Communicator& world, const Place& place) {
    const Mesh mesh(world, {{Axis::tp, 2}});
    const AcceleratorScope scope(place.accelerator);
    const auto sentence = [&](const auto& call) { return std::string(error_of(call).what()); };
    CHECK(holds(sentence([&] {
                  Exchange::reduce_parallel(mesh.group(Axis::tp)).forward(Array<float>({3}));
                }),
                {"all_reduce", "expected a mesh with a StreamCommunicator", "stand-in device"}));
    StreamCommunicator alone = place.communicator->split(world.rank());
    CHECK(holds(sentence([&] {
                  Mesh(world, alone, {{Axis::tp, 2}});
                }),
                {"mesh", "the same ranks", "of 2", "rank 0 of 1"}));
  });
}

TEST_CASE("what is not finite on an accelerator is named") {
  on_one_device(2, stand_in(), [&](Communicator& world, const Place& place) {
    const AcceleratorScope scope(place.accelerator);
    SimpleMLP<float> model(2, 4, 1, {3});
    auto x = Array<float>({5, 2});
    CHECK(first_not_finite(model, x, {}, world) == "the loss");
    Sgd<float>(model.params(), HUGE_VAL).step();  // infinite times 0
    CHECK(first_not_finite(model, x, {}, world) == "the weights fc1.weight");
  });
}
