#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "baton/schedule.hpp"
#include "communicators.hpp"
#include "support/ops.hpp"
#include "support/values.hpp"

using namespace baton;
using namespace support;

namespace {

void works(Communicator& c) {
  std::vector<std::int32_t> one{1};
  c.all_reduce(one, sum);
  CHECK(one[0] == c.size());
}

}  // namespace

TEST_CASE("several under way, completed in another order on every rank") {
  Communicator c = world();
  const int size = c.size();
  for (const std::size_t n : {std::size_t{3}, std::size_t{30'000}}) {
    constexpr std::size_t many = 12;
    std::vector<std::vector<std::int64_t>> sums(many), parts(many), gathered(many);
    std::vector<Request> requests;
    for (std::size_t k = 0; k < many; ++k) {
      sums[k].assign(n, c.rank() + static_cast<std::int64_t>(k));
      requests.push_back(c.start_all_reduce(sums[k], sum));
      parts[k].assign(2, 10 * c.rank() + static_cast<std::int64_t>(k));
      gathered[k].resize(2 * static_cast<std::size_t>(size));
      requests.push_back(c.start_all_gather(parts[k], gathered[k]));
    }
    std::shuffle(requests.begin(), requests.end(), std::mt19937(static_cast<unsigned>(c.rank())));
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (i % 2 == 0) {
        requests[i].wait();
      } else {
        while (!requests[i].test()) std::this_thread::yield();
      }
    }
    for (std::size_t k = 0; k < many; ++k) {
      CHECK(sums[k] == std::vector<std::int64_t>(
                           n, size * (size - 1) / 2 + size * static_cast<std::int64_t>(k)));
      for (int r = 0; r < size; ++r) {
        CHECK(gathered[k][2 * static_cast<std::size_t>(r)] ==
              10 * r + static_cast<std::int64_t>(k));
      }
    }
  }
}

TEST_CASE("parts of the group beside the whole") {
  Communicator c = world();
  Communicator half = c.split(c.rank() % 2, -c.rank()), other = c.split(c.rank() / 2);
  std::vector<std::int32_t> a(500, 1), b(500, 1), d(500, 1);
  Request first = c.start_all_reduce(a, sum), second = half.start_all_reduce(b, sum),
          third = other.start_all_reduce(d, sum);
  if (c.rank() % 2 == 0) {
    first.wait();
    second.wait();
    third.wait();
  } else {
    third.wait();
    second.wait();
    first.wait();
  }
  CHECK(a[499] == c.size());
  CHECK(b[499] == half.size());
  CHECK(d[499] == other.size());
  CHECK(half.rank() == half.size() - 1 - c.rank() / 2);
  const Communicator none = c.split(c.rank() == 0 ? 0 : -1);
  CHECK(none.valid() == (c.rank() == 0));
}

TEST_CASE("messages, lists and persistent calls") {
  Communicator c = world();
  if (c.size() > 1) {
    const int next = (c.rank() + 1) % c.size(), prev = (c.rank() + c.size() - 1) % c.size();
    for (const std::size_t n : {std::size_t{0}, std::size_t{5}, std::size_t{100'000}}) {
      std::vector<std::int32_t> mine(n, c.rank()), theirs(n, -1);
      Request sent = c.start_send(mine, next, 9);
      c.recv(theirs, prev, 9);
      sent.wait();
      CHECK(theirs == std::vector<std::int32_t>(n, prev));
    }
  }
  std::vector<float> a(7, 1), b(1'000, 2), none;
  const Data list[] = {a, none, b};
  c.all_reduce(list, sum);
  CHECK(a[6] == static_cast<float>(c.size()));
  CHECK(b[999] == 2 * static_cast<float>(c.size()));
  PersistentCall call = c.plan(calls::broadcast(a, c.size() - 1));
  for (int turn = 0; turn < 3; ++turn) {
    a.assign(7, static_cast<float>(turn + c.rank()));
    call.run();
    CHECK(a[0] == static_cast<float>(turn + c.size() - 1));
  }
}

TEST_CASE("random floats: the same bits on all ranks") {
  Communicator c = world();
  std::mt19937_64 generator(static_cast<std::uint64_t>(c.rank()) + 1);
  std::vector<float> mine(10'007);
  for (float& x : mine) {
    const auto bits = static_cast<std::uint32_t>(generator());
    std::memcpy(&x, &bits, sizeof x);  // NaNs, infinities and subnormals among them
  }
  const int levels = host::simd_level_count();
  AtLevel at(OpKind::sum, Datatype::f32, c.rank() % levels);
  for (const Algorithm* algorithm : c.registry().of(Collective::all_reduce)) {
    if (algorithm->hierarchical) continue;  // the test's ranks share one host
    std::vector<std::uint32_t> ours(mine.size()), again(mine.size());
    std::vector<float> out(mine.size());
    c.all_reduce(mine, out, sum, {algorithm->name, 4096});
    std::memcpy(ours.data(), out.data(), 4 * out.size());
    c.all_reduce(mine, out, at.op(), {algorithm->name, 4096});
    std::memcpy(again.data(), out.data(), 4 * out.size());
    CHECK_MESSAGE(ours == again, algorithm->name);
    std::vector<std::uint32_t> first = ours;
    c.broadcast(first, 0);
    CHECK_MESSAGE(first == ours, algorithm->name);
  }
}

TEST_CASE("errors: wrong everywhere, and differing with checking on") {
  Options options = test_options();
  options.check = true;
  for (const bool check : {false, true}) {
    options.check = check;
    Communicator c = world(options);
    std::vector<float> x(4);
    CHECK(holds(error_of([&] { c.broadcast(x, c.size()); }).what(), {"broadcast", "root"}));
    works(c);
    if (!check || c.size() == 1) continue;
    std::vector<float> y(c.rank() == c.size() - 1 ? 5 : 4);
    const Error error = error_of([&] { c.all_reduce(y, sum); });
    CHECK(error.code == ErrorCode::mismatch);
    CHECK(holds(error.what(), {"of 4 f32 ", "of 5 f32"}) == false);
    CHECK(holds(error.what(),
                {"of 4 f32", "rank 0", "of 5 f32", "rank " + std::to_string(c.size() - 1)}));
    std::vector<std::uint8_t> text(512), root(512);
    std::copy_n(error.what(), std::min<std::size_t>(511, std::string(error.what()).size()),
                text.begin());
    root = text;
    c.broadcast(root, 0);
    CHECK(root == text);  // the same sentence
    const Error again =
        error_of([&] { c.start_broadcast(x, c.rank() == 0 ? 0 : c.size() - 1).wait(); });
    CHECK(again.code == ErrorCode::mismatch);
    works(c);
  }
}

TEST_CASE("timeout: who waits for whom") {
  Communicator whole = world();
  if (whole.size() > 1) {
    Options impatient = test_options();
    impatient.timeout = std::chrono::milliseconds(150);
    Communicator c = world(impatient);
    std::vector<float> x(10);
    if (c.rank() != c.size() - 1) {
      const Error error = error_of([&] { c.all_reduce(x, sum, {"gather_broadcast", 0}); });
      CHECK(error.code == ErrorCode::timeout);
      CHECK(error.peer == (c.rank() == 0 ? c.size() - 1 : 0));
      CHECK(holds(error.what(), {"all_reduce #", "waits for rank"}));
    }
    works(whole);  // the last rank stays until all have given up
  }
}
