#include "transformer/vocab.hpp"

#include <doctest/doctest.h>

#include "transformer/ops/ops.hpp"
#include "worlds.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

namespace {

Array<std::int32_t> ids_below(std::int64_t vocabulary, const Shape& shape) {
  Array<std::int32_t> ids(shape);
  for (std::int64_t i = 0; i < ids.size(); ++i)
    ids.data()[i] = static_cast<std::int32_t>(Random{4}.word(static_cast<std::uint64_t>(i)) %
                                              static_cast<std::uint32_t>(vocabulary));
  return ids;
}

}  // namespace

TEST_CASE("an embedding that is cut gives what the whole one gives") {
  const std::int64_t vocabulary = 24, d = 6;
  const auto ids = ids_below(vocabulary, {2, 8});
  Array<double> dy({2, 8, d});
  fill_normal(dy.view(), Random{2}, 1);
  VocabParallelEmbedding<double> whole(vocabulary, d, Mesh(), {7});
  const Array<double> y = whole.forward(ids);
  whole.backward(ids, dy);
  for (const bool sequence : {false, true}) {
    on_worlds([&](Communicator& world) {
      const int ranks = world.size();
      if (8 % ranks != 0 && sequence) return;
      CAPTURE(sequence);
      const Mesh mesh(world, {{Axis::tp, ranks}});
      VocabParallelEmbedding<double> part(vocabulary, d, mesh, {7}, sequence);
      CHECK(equal(whole_value(part.table, mesh), whole.table.value));
      const auto own = [&](const Array<double>& a) {
        return sequence ? part_along<double>(a, 1, world.rank(), ranks) : a.copy();
      };
      CHECK(equal(part.forward(ids), own(y)));
      part.backward(ids, own(dy));
      CHECK(equal(whole_grad(part.table, mesh), whole.table.grad));
    });
  }
}

TEST_CASE("a cross-entropy whose classes are cut is the whole one") {
  const std::int64_t n = 7, classes = 24;
  Array<double> logits({n, classes}), gradient({n, classes});
  fill_normal(logits.view(), Random{3}, 30);  // exponentials would overflow
  for (std::int64_t i = 0; i < logits.size(); ++i) logits.data()[i] *= 30;
  const auto targets = ids_below(classes, {n});
  const double elements = 10;
  const double expected = cross_entropy<double>(logits, targets, elements, gradient.view());
  on_worlds([&](Communicator& world) {
    const int ranks = world.size();
    const auto part = part_along<double>(logits, 1, world.rank(), ranks);
    Array<double> found(part.shape());
    const double loss =
        vocab_parallel_cross_entropy<double>(part, targets, elements, &world, found.view());
    CHECK(loss == doctest::Approx(expected).epsilon(1e-13));
    CHECK(equal(found, part_along<double>(gradient, 1, world.rank(), ranks)));
    CHECK(loss == vocab_parallel_cross_entropy<double>(part, targets, elements, &world, {}));
  });
}

TEST_CASE("what rounding makes of a large vocabulary in f32") {
  const std::int64_t classes = 50257;
  Array<double> logits({3, classes});
  fill_normal(logits.view(), Random{8}, 2);
  auto rounded = Array<float>::uninitialized(logits.shape());
  for (std::int64_t i = 0; i < logits.size(); ++i)
    rounded.data()[i] = static_cast<float>(logits.data()[i]);
  const auto targets = ids_below(classes, {3});
  Array<double> expected(logits.shape());
  Array<float> found(logits.shape());
  const double loss = cross_entropy<double>(logits, targets, 3, expected.view());
  CHECK(vocab_parallel_cross_entropy<float>(rounded, targets, 3, nullptr, found.view()) ==
        doctest::Approx(loss).epsilon(1e-6));
  double most = 0, largest = 0;
  for (std::int64_t i = 0; i < found.size(); ++i) {
    most = std::max(most, std::abs(double(found.data()[i]) - expected.data()[i]));
    largest = std::max(largest, std::abs(expected.data()[i]));
  }
  CHECK(most <= 1e-6 * largest);
}

TEST_CASE("ids and vocabularies that do not fit are refused") {
  on_worlds([](Communicator& world) {
    if (world.size() != 2) return;
    const Mesh mesh(world, {{Axis::tp, 2}});
    CHECK(holds(error_of([&] { VocabParallelEmbedding<float>(5, 4, mesh, {}); }).what(),
                {"embedding: vocabulary", "multiple of 2", "found 5"}));
    VocabParallelEmbedding<float> embedding(6, 4, mesh, {});
    Array<std::int32_t> ids({1, 3});
    ids.data()[2] = 6;
    CHECK(holds(error_of([&] { embedding.forward(ids); }).what(),
                {"embedding", "from 0 to 5", "found 6 at position 2"}));
    ids.data()[2] = -1;
    const auto targets = ids.reshaped({3});
    Array<float> logits({3, 3});
    CHECK(holds(error_of([&] {
                  vocab_parallel_cross_entropy<float>(logits, targets, 3, &world, {});
                }).what(),
                {"cross-entropy", "from 0 to 5", "found -1"}));
    Array<std::int32_t> table({3, 2});
    CHECK(holds(error_of([&] {
                  vocab_parallel_cross_entropy<float>(logits, table.view().select(1, 0), 3, &world,
                                                      {});
                }).what(),
                {"contiguous ids", "[3]"}));
    CHECK(holds(error_of([&] { embedding.forward(table.view().transposed(0, 1)); }).what(),
                {"contiguous ids", "[2, 3]"}));
    Array<std::int32_t> good({2, 3});
    CHECK(holds(error_of([&] {
                  embedding.backward(good, Array<float>({2, 2, 4}));
                }).what(),
                {"gradient of the output", "[2, 3, 4]", "[2, 2, 4]"}));
  });
}
