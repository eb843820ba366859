/// Attention's thread blocks on the host, against transformer/ops.

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "samples.hpp"
#include "transformer/cuda/attention_backward_units.hpp"
#include "transformer/cuda/attention_units.hpp"
#include "transformer/cuda/layout.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace samples;
using support::difference;
namespace gpu = baton::transformer::cuda;

namespace {

struct Case {
  std::int64_t samples, queries, keys, heads, key_heads, size;
  bool causal;
  double dropped = 0;
};
const Case cases[] = {{1, 1, 1, 1, 1, 1, false},        {2, 5, 5, 4, 2, 3, true},
                      {1, 64, 64, 1, 1, 64, true},      {1, 3, 130, 2, 1, 8, false},
                      {2, 65, 65, 2, 1, 12, true, 0.3}, {1, 7, 67, 2, 2, 5, false, 0.5},
                      {1, 70, 70, 3, 1, 65, true},      {1, 66, 10, 1, 1, 128, false, 0.25},
                      {1, 130, 130, 2, 2, 128, true},   {2, 130, 130, 4, 2, 72, true},
                      {1, 200, 129, 1, 1, 16, false}};

/// Of a part of a larger tensor: samples, heads and queries that others have come first.
AttentionOptions options_of(const Case& c) {
  AttentionOptions options;
  options.causal = c.causal;
  if (c.dropped > 0) {
    options.dropout = {c.dropped,
                       {0x123456789abcdef0, 0xfedcba9876543210},
                       {{c.samples + 2, c.heads + 3, c.queries + 5, c.keys + 1}, {2, 3, 5, 1}}};
  }
  return options;
}

/// [b, s, h, d] of a tensor that has other heads and more of each row, at odd places if `odd`.
template <class T>
struct Strided {
  Array<T> all;
  View<T> view;
  Strided(const Array<float>& x, bool odd) {
    const Shape& s = x.shape();
    const std::int64_t extra = odd ? 3 : gpu::chunk_elements<T>;
    all = as<T>(numbers({s[0], s[1], s[2] + 1, s[3] + extra}, 99));
    view = all.view().slice(2, 1, s[2] + 1).slice(3, odd ? 1 : 0, s[3] + (odd ? 1 : 0));
    const Array<T> values = as<T>(x);
    transformer::assign<T>(values, view);
  }
  Array<float> values() const { return widened(Array<T>::copy_of(view)); }
};

/// Every unit of a grid of tiles of `rows` positions, the last first.
template <class Unit>
void each_unit(std::int64_t samples, std::int64_t heads, std::int64_t positions, int rows,
               Unit unit) {
  for (std::int64_t begin = (positions - 1) / rows * rows; begin >= 0; begin -= rows)
    for (std::int64_t sample = 0; sample < samples; ++sample)
      for (std::int64_t head = 0; head < heads; ++head) unit(gpu::Tile{sample, head, begin});
}

/// Shared memory as it is before anything is written: NaN.
std::vector<gpu::Chunk> shared_memory(int bytes) {
  const std::uint32_t nan = 0xffffffff;  // of f32, and two of bf16
  return {static_cast<std::size_t>(bytes) / sizeof(gpu::Chunk), gpu::Chunk{{nan, nan, nan, nan}}};
}

template <class State>
using Team = gpu::HostTeam<State, gpu::attention_threads>;

template <class Kind, int width, class T>
void forward(const gpu::Attention<T>& of) {
  using Sizes = gpu::Forward<Kind, width>;
  each_unit(of.samples, of.heads, of.queries, Sizes::rows, [&](const gpu::Tile& at) {
    auto shared = shared_memory(Sizes::shared_bytes);
    Team<typename Sizes::State> team;
    gpu::attention_unit<Kind, width>(team, of, at, shared.data());
  });
}
template <class Kind, int width, class T>
void backward(const gpu::Attention<T>& of) {
  using Sizes = gpu::Backward<Kind, width>;
  each_unit(of.samples, of.heads, of.queries, Sizes::rows, [&](const gpu::Tile& at) {
    auto shared = shared_memory(Sizes::shared_bytes);
    Team<gpu::QueryGradientState<Kind, width>> team;
    gpu::query_gradient_unit<Kind, width>(team, of, at, shared.data());
  });
  each_unit(of.samples, of.key_heads, of.keys, Sizes::rows, [&](const gpu::Tile& at) {
    auto shared = shared_memory(Sizes::shared_bytes);
    Team<gpu::KeyGradientState<Kind, width>> team;
    gpu::key_gradient_unit<Kind, width>(team, of, at, shared.data());
  });
}

/// What the roundings of a kind may change, relative to the largest element; of log_sums, and of
/// the others.
template <class Kind>
constexpr double of_log_sums = Kind::parts == 1 && sizeof(typename Kind::Element) == 4 ? 4e-4
                                                                                       : 4e-6;
template <class Kind>
constexpr double of_results = std::max(of_log_sums<Kind>, rounding<typename Kind::Element>);

template <class Kind>
void check(const Case& c, bool odd) {
  using T = typename Kind::Element;
  const Shape queries{c.samples, c.queries, c.heads, c.size};
  const Shape keys{c.samples, c.keys, c.key_heads, c.size};
  const AttentionOptions options = options_of(c);
  const auto drawn = [](const Shape& shape, std::uint64_t stream, float scale = 1) {
    auto x = numbers(shape, stream, scale);
    if (Kind::parts == 2)  // with all of f32's bits, so that each part of a factor matters
      for (float& value : x.span()) value *= 1.0001234f;
    return x;
  };
  const auto q = drawn(queries, 1, 3), k = drawn(keys, 2), v = drawn(keys, 3),
             dout = drawn(queries, 4);
  Array<float> out(queries), log_sums({c.samples, c.heads, c.queries});
  attention<float>(q, k, v, options, out.view(), log_sums.view());

  const Strided<T> q_(q, odd), k_(k, odd), v_(v, odd), dout_(dout, odd);
  const Strided<T> out_(Array<float>{queries}, odd);
  Array<float> log_sums_(log_sums.shape());
  const auto of =
      gpu::attention_of<T>(q_.view, k_.view, v_.view, options, out_.view, log_sums_.view());
  CHECK(of.whole_chunks == (!odd && c.size % gpu::chunk_elements<T> == 0));
  c.size <= 64 ? forward<Kind, 64>(of) : forward<Kind, 128>(of);
  CHECK(difference(out_.values(), out) < of_results<Kind>);
  CHECK(difference(log_sums_, log_sums) < of_log_sums<Kind>);

  // Backward of what was found forward, so that only its own roundings differ.
  Array<float> dq(queries), dk(keys), dv(keys);
  const Array<float> rounded_out = out_.values();
  attention_backward<float>(dout, q, k, v, rounded_out, log_sums_, options, dq.view(), dk.view(),
                            dv.view());
  const Strided<T> dq_(Array<float>{queries}, odd), dk_(Array<float>{keys}, odd),
      dv_(Array<float>{keys}, odd);
  Array<float> dots(log_sums.shape());
  const auto back = gpu::attention_backward_of<T>(dout_.view, q_.view, k_.view, v_.view, out_.view,
                                                  View<const float>(log_sums_), options,
                                                  dots.data(), dq_.view, dk_.view, dv_.view);
  c.size <= 64 ? backward<Kind, 64>(back) : backward<Kind, 128>(back);
  CHECK(difference(dq_.values(), dq) < of_results<Kind>);
  CHECK(difference(dk_.values(), dk) < of_results<Kind>);
  CHECK(difference(dv_.values(), dv) < of_results<Kind>);
}

}  // namespace

TEST_CASE("tiles of attention give what attention on the host gives, and its gradients") {
  for (const Case& c : cases) {
    CAPTURE((Shape{c.samples, c.queries, c.keys, c.heads, c.key_heads, c.size}.text()));
    for (const bool odd : {false, true}) {
      CAPTURE(odd);
      check<gpu::F32>(c, odd);
      check<gpu::Tf32>(c, odd);
      check<gpu::Bf16>(c, odd);
      check<gpu::WarpgroupBf16>(c, odd);
      if (!odd && c.size % gpu::chunk_elements<bf16> == 0 && c.dropped == 0)
        check<gpu::TmaBf16>(c, odd);
    }
  }
}

/// Scores that rise by more than most_growth from tile to tile, of one query by less.
template <class Kind>
void check_rising() {
  using T = typename Kind::Element;
  const Shape shape{1, 200, 1, 8};
  auto q = numbers(shape, 1), k = numbers(shape, 2), v = numbers(shape, 3);
  for (std::int64_t i = 0; i < 200; ++i) {
    for (std::int64_t d = 0; d < 8; ++d) {
      q.view()(0, i, 0, d) = d == 0 ? (i == 5 ? 0.5f : 8.f) : 0.125f * q.view()(0, i, 0, d);
      if (d == 0) k.view()(0, i, 0, d) = static_cast<float>(i / 64 * 16);
    }
  }
  Array<float> out(shape), log_sums({1, 1, 200});
  attention<float>(q, k, v, {}, out.view(), log_sums.view());
  const auto q_ = as<T>(q), k_ = as<T>(k), v_ = as<T>(v);
  auto out_ = as<T>(Array<float>(shape));
  Array<float> log_sums_(log_sums.shape());
  forward<Kind, 64>(
      gpu::attention_of<T>(q_.view(), k_.view(), v_.view(), {}, out_.view(), log_sums_.view()));
  CHECK(difference(widened(out_), out) < 4 * of_results<Kind>);
  CHECK(difference(log_sums_, log_sums) < rounding<T>);
}

TEST_CASE("scores that rise far from tile to tile") {
  check_rising<gpu::F32>();
  check_rising<gpu::Tf32>();
  check_rising<gpu::Bf16>();
  check_rising<gpu::WarpgroupBf16>();
  check_rising<gpu::TmaBf16>();
}

/// Chunks that eight threads access at once lie in different banks: at different places modulo 8.
template <int row_chunks>
void check_banks() {
  const auto differ = [](auto place) {
    std::set<int> banks;
    for (int thread = 0; thread < 8; ++thread) banks.insert(place(thread) % 8);
    CHECK(banks.size() == 8);
  };
  for (int chunk = 0; chunk < row_chunks; ++chunk) {
    differ([&](int thread) { return gpu::slot<row_chunks>(8, thread, chunk); });  // load_matrices()
    for (const int odd : {0, 1}) {  // accumulate(): two chunks of every other row
      differ([&](int thread) {
        return gpu::slot<row_chunks>(0, thread % 4 * 2 + odd, chunk / 2 * 2 + thread / 4);
      });
    }
  }
}

TEST_CASE("threads that access tiles at once meet no bank twice") {
  check_banks<8>();
  check_banks<16>();
  check_banks<32>();
}

TEST_CASE("what is not a number stays so") {
  const Shape shape{1, 70, 1, 8};
  auto q = numbers(shape, 1), k = numbers(shape, 2), v = numbers(shape, 3);
  q.view()(0, 66, 0, 3) = NAN;
  Array<float> out(shape), log_sums({1, 1, 70});
  forward<gpu::F32, 64>(
      gpu::attention_of<float>(q.view(), k.view(), v.view(), {}, out.view(), log_sums.view()));
  for (std::int64_t i = 0; i < 70; ++i) CHECK(std::isnan(out.view()(0, i, 0, 0)) == (i == 66));
}
