/// What threads and thread blocks of the kernels of elements, rows and losses do, on the host,
/// against transformer/ops.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "samples.hpp"
#include "transformer/cuda/embedding_units.hpp"
#include "transformer/cuda/layout.hpp"
#include "transformer/cuda/loss_units.hpp"
#include "transformer/optimizer.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace samples;
using support::difference;
namespace gpu = baton::transformer::cuda;

namespace {

const std::int64_t counts[] = {1, 3, 4, 5, 8, 127, 1000};
const Shape row_shapes[] = {{1, 1}, {3, 5}, {9, 32}, {8, 33}, {65, 100}, {130, 7}, {17, 1024}};

/// f of all of `from`, by quads and by elements, from an address that takes quads and from one that
/// does not.
template <class F, class To, class... From>
void check_map(const Array<float>& expected, double tolerance, const Array<From>&... from) {
  const std::int64_t n = expected.size();
  for (const std::int64_t offset : {0, 1}) {
    std::vector<To> to(static_cast<std::size_t>(n + 9));
    To* start = to.data();
    while (!gpu::takes_quads(start)) ++start;
    start += offset;
    const bool quads = gpu::takes_quads(start) && (gpu::takes_quads(from.data()) && ...);
    CHECK(quads == (offset == 0));
    for (std::int64_t quad = 0; quad < (n + 3) / 4; ++quad)
      gpu::map_unit(F(), n, quad, quads, start, static_cast<const From*>(from.data())...);
    auto found = Array<To>::uninitialized(expected.shape());
    std::copy_n(start, n, found.data());
    CHECK(difference(widened(found), expected) <= tolerance);
    // Nothing beyond is written.
    CHECK(widened(Array<To>::copy_of({start + n, {1}})).data()[0] == 0);
  }
}

template <class T>
void check_maps(std::int64_t n) {
  auto x = numbers({n}, 1, 4);
  const auto y = numbers({n}, 2);
  x.data()[n / 2] = 0;  // where the derivative of relu jumps
  Array<float> expected({n});
  for (const auto f : activations) {
    gpu::with_activation<T>(f, [&](auto function, auto derivative) {
      activate<float>(f, x, expected.view());
      check_map<decltype(function), T>(expected, rounding<T>, as<T>(x));
      activate_backward<float>(f, y, x, expected.view());
      check_map<decltype(derivative), T>(expected, rounding<T>, as<T>(y), as<T>(x));
    });
  }
  expected = x.copy();
  add<float>(y, expected.view());
  check_map<gpu::Add, T>(expected, rounding<T>, as<T>(x), as<T>(y));
  check_map<gpu::Same, float>(x, 0, as<T>(x));
  check_map<gpu::Same, bf16>(x, 0, as<T>(x));
}

template <class T>
void check_layer_norm(const Shape& shape) {
  const std::int64_t rows = shape[0], n = shape[1];
  const auto x = numbers(shape, 1, 3), dy = numbers(shape, 2), weight = numbers({n}, 3),
             bias = numbers({n}, 4);
  Array<float> y(shape), stats({rows, 2}), dx(shape), dweight = numbers({n}, 5),
                                                      dbias = numbers({n}, 6);
  layer_norm<float>(x, weight, bias, 1e-5, y.view(), stats.view());
  const auto x_ = as<T>(x), dy_ = as<T>(dy), weight_ = as<T>(weight), bias_ = as<T>(bias);
  auto y_ = as<T>(Array<float>(shape)), dx_ = y_.copy();
  auto dweight_ = as<T>(dweight), dbias_ = as<T>(dbias);
  Array<float> stats_({rows, 2});
  gpu::HostTeam<gpu::NormState> team;
  gpu::LayerNorm<T> of{rows,         n,     x_.data(), weight_.data(),
                       bias_.data(), 1e-5f, y_.data(), stats_.data()};
  const auto same = [](const Array<T>& a, const Array<T>& b) {
    return std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(T)) == 0;
  };
  Array<T> alone;
  for (const bool quads : {false, n % 4 == 0}) {  // the same bits by quads
    of.quads = quads;
    for (std::int64_t first = 0; first < rows; first += gpu::rows_each)
      gpu::layer_norm_unit(team, of, first);
    CHECK(difference(widened(y_), y) < rounding<T>);
    CHECK(difference(stats_, stats) < rounding<float>);
    if (quads) CHECK(same(y_, alone));
    alone = y_.copy();
    std::memset(y_.data(), 0, static_cast<std::size_t>(y_.size()) * sizeof(T));
  }

  layer_norm_backward<float>(dy, x, weight, stats_, dx.view(), dweight.view(), dbias.view());
  gpu::LayerNormBackward<T> back{rows,          n,         dy_.data(), x_.data(), weight_.data(),
                                 stats_.data(), dx_.data()};
  for (const bool quads : {false, n % 4 == 0}) {
    back.quads = quads;
    for (std::int64_t first = 0; first < rows; first += gpu::rows_each)
      gpu::layer_norm_backward_unit(team, back, first);
    CHECK(difference(widened(dx_), dx) < rounding<T>);
    if (quads) CHECK(same(dx_, alone));
    alone = dx_.copy();
    std::memset(dx_.data(), 0, static_cast<std::size_t>(dx_.size()) * sizeof(T));
  }
  const gpu::Chunks chunks = gpu::chunks_of(rows, n);
  std::vector<float> partial(static_cast<std::size_t>(2 * chunks.count * n), NAN);
  for (std::int64_t chunk = 0; chunk < chunks.count; ++chunk)
    for (std::int64_t column = 0; column < n; ++column)
      gpu::norm_sum_unit(chunks, chunk, column, back, partial.data());
  for (std::int64_t column = 0; column < n; ++column) {
    gpu::add_chunks_unit(chunks, column, partial.data(), dweight_.data());
    gpu::add_chunks_unit(chunks, column, partial.data() + chunks.count * n, dbias_.data());
  }
  CHECK(difference(widened(dweight_), dweight) < rounding<T>);
  CHECK(difference(widened(dbias_), dbias) < rounding<T>);
}

template <class T>
void check_rows(const Shape& shape) {
  const std::int64_t rows = shape[0], n = shape[1];
  const auto x = numbers(shape, 1);
  auto sum = numbers({n}, 2);
  auto sum_ = as<T>(sum);
  add_rows<float>(x, sum.view());
  const auto x_ = as<T>(x);
  const gpu::Chunks chunks = gpu::chunks_of(rows, n);
  std::vector<float> partial(static_cast<std::size_t>(chunks.count * n), NAN);
  for (std::int64_t chunk = 0; chunk < chunks.count; ++chunk)
    for (std::int64_t column = 0; column < n; ++column)
      gpu::column_sum_unit(chunks, chunk, column, x_.data(), partial.data());
  for (std::int64_t column = 0; column < n; ++column)
    gpu::add_chunks_unit(chunks, column, partial.data(), sum_.data());
  CHECK(difference(widened(sum_), sum) < rounding<T>);

  const auto bias = numbers({n}, 3);
  auto y = numbers(shape, 4);
  const auto before = as<T>(y), bias_ = as<T>(bias);
  add_to_rows<float>(bias, y.view());
  for (const bool quads : {false, n % 4 == 0}) {
    auto y_ = before.copy();
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t quad = 0; quad < (n + 3) / 4; ++quad)
        gpu::add_to_rows_unit(n, row, quad, quads, static_cast<const T*>(bias_.data()), y_.data());
    CHECK(difference(widened(y_), y) < rounding<T>);
  }
}

/// Of `different` ids.
template <class T>
void check_embedding(std::int64_t count, std::uint32_t different, std::int64_t first,
                     bool backwards) {
  constexpr std::int64_t rows = 6, d = 5;
  Array<std::int32_t> ids({count});
  for (std::int64_t i = 0; i < count; ++i)
    ids.data()[i] =
        static_cast<std::int32_t>(Random{4}.word(static_cast<std::uint64_t>(i)) % different);
  const auto table = numbers({rows, d}, 1), dy = numbers({count, d}, 2);
  Array<float> y({count, d});
  auto dtable = numbers({rows, d}, 3);
  const auto table_ = as<T>(table), dy_ = as<T>(dy);
  auto y_ = as<T>(numbers({count, d}, 4)), dtable_ = as<T>(dtable);
  embedding<float>(ids, table, first, y.view());
  embedding_backward<float>(ids, dy, first, dtable.view());
  const gpu::Table<T> of{count, rows, d, first, ids.data()};
  for (std::int64_t i = 0; i < count * d; ++i)
    gpu::embedding_unit(of, i, static_cast<const T*>(table_.data()), y_.data());
  CHECK(difference(widened(y_), y) == 0);
  std::vector<std::int32_t> scratch(static_cast<std::size_t>(gpu::chains_size(count, rows)), 77);
  const gpu::Chains chains = gpu::chains_in(scratch.data(), count);
  gpu::HostTeam<gpu::ChainState> team(backwards);
  std::int32_t rows_here[gpu::threads];
  gpu::chain_unit(team, of, chains, rows_here);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t column = 0; column < d; ++column)
      gpu::embedding_backward_unit(of, i, column, chains, static_cast<const T*>(dy_.data()),
                                   dtable_.data());
  // In the order of places, as on the host.
  CHECK(difference(widened(dtable_), widened(as<T>(dtable))) == 0);
}

double total(const std::vector<double>& terms) {
  gpu::HostTeam<gpu::TotalState> team;
  double shared[gpu::rows_each], sum = NAN;
  gpu::total_unit(team, static_cast<std::int64_t>(terms.size()), terms.data(), shared, &sum);
  return sum;
}

template <class T>
void check_mse(std::int64_t n, bool gradient) {
  const auto y = numbers({n}, 1, 2), target = numbers({n}, 2);
  Array<float> dy({n});
  const double elements = 3.0 * static_cast<double>(n);
  const double expected = mse<float>(y, target, elements, dy.view());
  const auto y_ = as<T>(y), target_ = as<T>(target);
  auto dy_ = as<T>(Array<float>({n}));
  const gpu::Mse<T> of{n, y_.data(), target_.data(), static_cast<float>(2 / elements),
                       gradient ? dy_.data() : nullptr};
  const std::int64_t blocks = (n + gpu::mse_each - 1) / gpu::mse_each;
  std::vector<double> terms(static_cast<std::size_t>(blocks * gpu::rows_each), NAN);
  gpu::HostTeam<gpu::TotalState> team;
  for (std::int64_t block = 0; block < blocks; ++block)
    gpu::mse_unit(team, of, block, terms.data());
  CHECK(std::abs(total(terms) / elements - expected) <= 1e-12 * expected);
  if (gradient) {
    for (std::int64_t i = 0; i < n; ++i)
      CHECK(std::abs(widened(dy_).data()[i] - dy.data()[i]) <=
            rounding<T> * std::abs(dy.data()[i]));
  }
}

/// With classes cut into `parts`, of which each is computed by itself.
template <class T>
void check_cross_entropy(const Shape& shape, std::int64_t parts) {
  const std::int64_t rows = shape[0], classes = shape[1], each = classes / parts;
  const auto logits = numbers(shape, 1, 30);
  Array<std::int32_t> targets({rows});
  for (std::int64_t i = 0; i < rows; ++i)
    targets.data()[i] = static_cast<std::int32_t>((7 * i + classes - 1) % classes);
  Array<float> dlogits(shape);
  const double elements = 2;
  const double expected = cross_entropy<float>(logits, targets, elements, dlogits.view());
  gpu::HostTeam<gpu::RowState> team;
  const auto each_rows = [&](auto body) {
    for (std::int64_t first = 0; first < rows; first += gpu::rows_each) body(first);
  };
  std::vector<Array<T>> cut;
  std::vector<gpu::Logits<T>> of;
  Array<float> most({rows}), sums({2, rows});
  std::fill_n(most.data(), rows, -INFINITY);
  for (std::int64_t part = 0; part < parts; ++part) {
    cut.push_back(
        as<T>(Array<float>::copy_of(logits.view().slice(1, part * each, (part + 1) * each))));
    of.push_back({rows, each, part * each, cut.back().data(), targets.data()});
    Array<float> most_here({rows});
    each_rows([&](auto first) { gpu::row_maximum_unit(team, of.back(), first, most_here.data()); });
    for (std::int64_t i = 0; i < rows; ++i)
      most.data()[i] = std::max(most.data()[i], most_here.data()[i]);
  }
  for (const auto& part : of) {
    Array<float> sums_here({2, rows});
    each_rows([&](auto first) {
      gpu::exponential_sums_unit(team, part, first, most.data(), sums_here.data());
    });
    add<float>(sums_here, sums.view());
  }
  for (std::int64_t part = 0; part < parts; ++part)
    for (const bool gradient : {false, true}) {  // which may lie where the logits are
      const auto at = static_cast<std::size_t>(part);
      std::vector<double> terms(static_cast<std::size_t>(rows), NAN);
      each_rows([&](auto first) {
        gpu::cross_entropy_unit(team, of[at], first, most.data(), sums.data(), elements,
                                terms.data(), gradient ? cut[at].data() : nullptr);
      });
      CHECK(std::abs(total(terms) / elements - expected) <= 1e-5 * std::max(1.0, expected));
      const View<const float> wanted = gradient ? dlogits.view() : logits.view();
      CHECK(difference(widened(cut[at]), Array<float>::copy_of(wanted.slice(
                                             1, part * each, (part + 1) * each))) < rounding<T>);
    }
}

/// A view of every second of each dimension, two of them exchanged.
template <class T>
View<T> odd_view(View<T> all) {
  typename View<T>::Strides strides{};
  const Shape& s = all.shape();
  for (int d = 0; d < 3; ++d) strides[static_cast<std::size_t>(d)] = 2 * all.stride(d);
  return View<T>(all.data(), {s[0] / 2, s[1] / 2, s[2] / 2}, strides).transposed(0, 2);
}

}  // namespace

TEST_CASE("maps of elements") {
  for (const std::int64_t n : counts) {
    CAPTURE(n);
    check_maps<float>(n);
    check_maps<bf16>(n);
  }
}

TEST_CASE("the normal distribution keeps the digits that bf16 has, down to -6") {
  for (float x = -14; x <= 14; x += 0.01f) {
    CAPTURE(x);
    const double wide = x, below = 0.5 * std::erfc(-wide * std::sqrt(0.5)),
                 density = std::exp(-0.5 * wide * wide) / std::sqrt(2 * std::acos(-1.0));
    const gpu::Normal found(x);
    CHECK(std::abs(found.below - below) < (x < -6 ? 1e-11 : std::min(3e-7, 0x1p-8 * below)));
    CHECK(std::abs(found.density - density) < (std::abs(x) > 6 ? 1e-11 : 1e-5 * density));
  }
}

TEST_CASE("what is not a number passes through activations") {
  CHECK(std::isnan(gpu::Relu()(NAN)));
  CHECK(std::isnan(gpu::Gelu()(NAN)));
  CHECK(std::isnan(gpu::GeluOfBf16()(NAN)));
  CHECK(std::isnan(gpu::GeluTanh()(NAN)));
}

TEST_CASE("layer norm and sums of columns") {
  for (const Shape& shape : row_shapes) {
    CAPTURE(shape.text());
    check_layer_norm<float>(shape);
    check_layer_norm<bf16>(shape);
    check_rows<float>(shape);
    check_rows<bf16>(shape);
  }
}

TEST_CASE("chunks of many rows are few, and have all rows") {
  for (const std::int64_t rows : {1, 64, 65, 16384, 16385, 1000003}) {
    const gpu::Chunks chunks = gpu::chunks_of(rows, 3);
    CHECK(chunks.count <= 256);
    CHECK(chunks.end(chunks.count - 1) == rows);
    CHECK(chunks.begin(chunks.count - 1) < rows);
  }
}

TEST_CASE("embeddings, with ids that come often, and those of other ranks") {
  for (const std::int64_t count : {0, 1, 2, 40, 255, 256, 257, 3000})
    for (const std::uint32_t different : {1, 11, 2000})
      for (const std::int64_t first : {0, 4}) {
        CAPTURE(count);
        CAPTURE(different);
        for (const bool backwards : {false, true}) {
          check_embedding<float>(count, different, first, backwards);
          check_embedding<bf16>(count, different, first, backwards);
        }
      }
}

TEST_CASE("losses and their gradients") {
  for (const std::int64_t n : {1, 300, 4096, 9000})
    for (const bool gradient : {false, true}) {
      check_mse<float>(n, gradient);
      check_mse<bf16>(n, gradient);
    }
  for (const Shape& shape : row_shapes) {
    CAPTURE(shape.text());
    for (const std::int64_t parts : {1, 5}) {
      if (shape[1] % parts != 0) continue;
      check_cross_entropy<float>(shape, parts);
      check_cross_entropy<bf16>(shape, parts);
    }
  }
}

TEST_CASE("a logit that is not a number makes its row so, and no other") {
  for (const std::int64_t place : {0, 31, 40}) {
    CAPTURE(place);
    auto logits = numbers({3, 50}, 1);
    logits.view()(1, place) = NAN;
    const std::int32_t targets[] = {1, 2, 3};
    const gpu::Logits<float> of{3, 50, 0, logits.data(), targets};
    gpu::HostTeam<gpu::RowState> team;
    float most[3], sums[6];
    double terms[3];
    gpu::row_maximum_unit(team, of, 0, most);
    gpu::exponential_sums_unit(team, of, 0, most, sums);
    gpu::cross_entropy_unit(team, of, 0, most, sums, 3, terms, static_cast<float*>(nullptr));
    for (std::size_t row = 0; row < 3; ++row) {
      CHECK(std::isnan(most[row]) == (row == 1));
      CHECK(std::isnan(terms[row]) == (row == 1));
    }
  }
}

TEST_CASE("strided views are assigned, converted and added") {
  const auto x = numbers({8, 6, 10}, 1), y = numbers({10, 6, 8}, 2);
  const auto x_ = as<bf16>(x);
  auto y_ = y.copy(), found = y.copy();
  const View<const bf16> from = odd_view(x_.view());               // [5, 3, 4]
  const View<float> to = odd_view(found.view()).transposed(0, 2);  // likewise
  const auto strides = gpu::strides_of(to.shape(), Operand(to).strides, ConstOperand(from).strides);
  CHECK(strides.count == 60);
  for (std::int64_t i = 0; i < 60; ++i) gpu::assign_unit(strides, i, to.data(), from.data());
  assign<float>(odd_view(x.view()), odd_view(y_.view()).transposed(0, 2));
  CHECK(difference(found, y_) == 0);

  const View<const float> more = odd_view(x.view());
  auto sum = found.copy(), expected = found.copy();
  for (std::int64_t i = 0; i < 60; ++i)
    gpu::add_unit(strides, i, odd_view(sum.view()).data(), more.data());
  const View<float> into = odd_view(expected.view()).transposed(0, 2);
  for (std::int64_t i = 0; i < 5; ++i)
    for (std::int64_t j = 0; j < 3; ++j)
      for (std::int64_t k = 0; k < 4; ++k) into(i, j, k) += more(i, j, k);
  CHECK(difference(sum, expected) == 0);
}

TEST_CASE("steps of optimizers, with masters and without") {
  constexpr std::int64_t n = 9;
  const auto start = numbers({n}, 1);
  Param<float> param("p", start.copy());
  param.decays = true;
  const SgdOptions sgd_options{0.1, 0.9, 0.2};
  Sgd<float> sgd({&param}, sgd_options);
  const gpu::SgdFactors factors = gpu::sgd_factors({0.1, 0.9, 0.2});
  Array<float> velocities[] = {Array<float>({n}), Array<float>({n})};
  const AdamWOptions options{0.05, 0.8, 0.9, 1e-6, 0.3};
  AdamW<float> adamw({&param}, options);
  auto alone = start.copy(), master = start.copy();
  auto value = as<bf16>(start);
  Array<float> means[] = {Array<float>({n}), Array<float>({n})};
  Array<float> squares[] = {Array<float>({n}), Array<float>({n})};
  for (std::uint64_t step = 1; step <= 3; ++step) {
    CAPTURE(step);
    const auto grad = numbers({n}, 10 + step);
    const auto narrow = as<bf16>(grad);
    std::copy_n(grad.data(), n, param.grad.data());
    sgd.step();
    for (std::int64_t i = 0; i < n; ++i) {
      gpu::sgd_unit(factors, i, grad.data(), alone.data(), nullptr, velocities[0].data());
      gpu::sgd_unit(factors, i, narrow.data(), value.data(), master.data(), velocities[1].data());
    }
    CHECK(difference(alone, param.value) < 1e-6);
    CHECK(difference(master, param.value) < 1e-6);
    const auto count = static_cast<double>(step);
    const gpu::AdamStep by = gpu::adam_step(
        {options.beta1, options.beta2, options.learning_rate / (1 - std::pow(options.beta1, count)),
         1 / std::sqrt(1 - std::pow(options.beta2, count)), options.epsilon,
         1 - options.learning_rate * options.weight_decay});
    adamw.step();
    for (std::int64_t i = 0; i < n; ++i) {
      gpu::adamw_unit(by, i, grad.data(), alone.data(), nullptr, means[0].data(),
                      squares[0].data());
      gpu::adamw_unit(by, i, narrow.data(), value.data(), master.data(), means[1].data(),
                      squares[1].data());
    }
    CHECK(difference(alone, param.value) < 1e-6);
    CHECK(difference(master, param.value) < 1e-6);
    CHECK(std::equal(value.data(), value.data() + n, as<bf16>(master).data()));
  }
}

TEST_CASE("products by columns are those of linear layers by rows") {
  constexpr std::int64_t rows = 3, in = 4, out = 5;
  const auto x = numbers({rows, in}, 1), weight = numbers({out, in}, 2),
             dy = numbers({rows, out}, 3);
  Array<float> y({rows, out}), dx({rows, in}), dweight({out, in});
  linear<float>(x, weight, {}, y.view());
  linear_backward_input<float>(dy, weight, dx.view());
  linear_backward_weight<float>(x, dy, dweight.view(), {});
  const auto product = [](const gpu::Product& p, const Array<float>& a, const Array<float>& b,
                          const Shape& shape) {
    Array<float> c(shape);
    const auto element = [](const Array<float>& of, std::int64_t leading, bool transposed,
                            std::int64_t i, std::int64_t j) {
      return of.data()[transposed ? i * leading + j : j * leading + i];
    };
    for (std::int64_t i = 0; i < p.n; ++i)
      for (std::int64_t j = 0; j < p.m; ++j)
        for (std::int64_t l = 0; l < p.k; ++l)
          c.data()[j * p.c_leading + i] += element(a, p.a_leading, p.a_transposed, i, l) *
                                           element(b, p.b_leading, p.b_transposed, l, j);
    return c;
  };
  CHECK(difference(product(gpu::linear_product(rows, in, out), weight, x, y.shape()), y) < 1e-6);
  CHECK(difference(product(gpu::input_product(rows, in, out), weight, dy, dx.shape()), dx) < 1e-6);
  CHECK(difference(product(gpu::weight_product(rows, in, out), x, dy, dweight.shape()), dweight) <
        1e-6);
}

TEST_CASE("dimensions that lie one behind the other are one") {
  const Shape shape{2, 3, 1, 4};
  Array<float> x({2, 3, 1, 4}), wide({2, 3, 5, 8});
  const auto all = gpu::strides_of(shape, Operand(x.view()).strides, Operand(x.view()).strides);
  CHECK(all.rank == 1);
  CHECK(all.count == 24);
  CHECK(gpu::contiguous(all));
  const auto part = wide.view().slice(2, 0, 1).slice(3, 0, 4);
  const auto two = gpu::strides_of(shape, Operand(x.view()).strides, Operand(part).strides);
  CHECK(two.rank == 2);
  CHECK(two.extent[0] == 6);
  CHECK_FALSE(gpu::contiguous(two));
}

TEST_CASE("dropout drops what the host drops, of pieces and of strided views") {
  const Random random{0x123456789abcdef0, 0xfedcba9876543210};
  for (std::uint64_t position : {0ull, 1ull, 2ull, 7ull, 1ull << 40, 0xffffffffull * 4 + 3}) {
    const gpu::Words words =
        gpu::philox({{0x9abcdef0, 0x12345678}, {0x76543210, 0xfedcba98}}, position / 4);
    CHECK(words.word[position % 4] == random.word(position));
  }
  const Dropout dropout{0.4, random, {{20, 9, 31}, {3, 1, 7}}};
  const auto x = numbers({8, 6, 10}, 1);
  auto found = x.copy(), expected = x.copy();
  for (std::int64_t i = 0; i < x.size(); i += 3) found.data()[i] = expected.data()[i] = INFINITY;
  dropout.apply(odd_view(expected.view()));
  const auto of = gpu::dropped(dropout, odd_view(found.view()));
  for (std::int64_t i = 0; i < of.strides.count; ++i)
    gpu::dropout_unit(of.strides, i, of.mask, of.first, found.data());
  CHECK(std::equal(found.data(), found.data() + found.size(), expected.data()));
  for (std::uint64_t first = 0; first < 9; ++first) {
    float factors[4];
    of.mask.quad(first, factors);
    for (std::uint64_t i = 0; i < 4; ++i) {
      CHECK(factors[i] == of.mask.at(first + i));
      CHECK((factors[i] == 0) == (random.word(first + i) < of.mask.limit));
    }
  }
}
