#include "collectives.hpp"

#include <algorithm>
#include <memory>
#include <numeric>

#include "support.hpp"

namespace c_support {
namespace {

using Vector = std::vector<std::int64_t>;
using Start = std::function<int(baton_request**)>;
using Plan = std::function<int(baton_plan**)>;

constexpr std::int64_t untouched = -77;

/// Checks that all forms fill `output` as expected. Each begins with `prepare`, as input and output
/// may be one.
struct Forms {
  std::string name;
  std::function<int()> run;
  Start start;
  Plan plan;

  void check(const std::function<void()>& prepare, const Vector& output,
             const Vector& expected) const {
    const auto same = [&](const char* form) {
      CHECK_MESSAGE(output == expected, name << ", " << form << ", " << expected.size());
    };
    prepare();
    OK(run());
    same("blocking");

    prepare();
    baton_request* request = nullptr;
    OK(start(&request));
    OK(baton_wait(&request));
    CHECK(request == nullptr);
    same("nonblocking");

    baton_plan* planned = nullptr;
    OK(plan(&planned));
    for (int i = 0; i < 2; ++i) {
      prepare();
      OK(baton_plan_run(planned));
      same("persistent");
    }
    prepare();
    OK(baton_plan_start(planned, &request));
    int done = 0, status = BATON_OK;
    while (status == BATON_OK && !done) status = baton_test(&request, &done);
    OK(status);
    CHECK(request == nullptr);
    same("persistent, nonblocking");
    CHECK(!text_of([&](auto... room) { return baton_plan_choice(planned, room...); }).empty());
    baton_plan_destroy(planned);
  }
};

// The arguments are evaluated for each form, so lists that they make are gone when it returns.
#define FORMS(name, choice, ...)                                                            \
  Forms {                                                                                   \
#name, [&] { return baton_##name(__VA_ARGS__, choice); },                                 \
        [&](baton_request** r) { return baton_start_##name(__VA_ARGS__, choice, r); },        \
        [&](baton_plan** p) { return baton_plan_##name(__VA_ARGS__, choice, p); } \
  }

Vector copy(const Vector& list) { return list; }
const std::int64_t* list(const Vector& temporary) { return temporary.data(); }

/// Element i of rank r's input.
std::int64_t element(int r, std::int64_t i) { return 1000 * r + i % 977; }
Vector input_of(int r, std::int64_t count) {
  Vector input(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) input[static_cast<std::size_t>(i)] = element(r, i);
  return input;
}
Vector slice(const Vector& all, std::int64_t begin, std::int64_t count) {
  return {all.begin() + begin, all.begin() + begin + count};
}
void append(Vector& to, const Vector& more) { to.insert(to.end(), more.begin(), more.end()); }
/// Sum of the inputs of ranks first … last - 1.
Vector summed(int first, int last, std::int64_t count) {
  Vector sum(static_cast<std::size_t>(count));
  for (int r = first; r < last; ++r)
    for (std::int64_t i = 0; i < count; ++i) sum[static_cast<std::size_t>(i)] += element(r, i);
  return sum;
}

class Cases {
 public:
  Cases(baton_communicator* world, std::int64_t count, const char* ring)
      : world_(world),
        rank_(baton_rank(world)),
        size_(baton_size(world)),
        root_(size_ - 1),
        n_(count),
        ring_(ring) {
    for (int r = 0; r < size_; ++r) counts_.push_back(r == 1 ? 0 : n_ + r);
    for (int r = 0; r < size_; ++r) total_ += counts_[static_cast<std::size_t>(r)];
    own_count_ = counts_[static_cast<std::size_t>(rank_)];
    own_offset_ = std::accumulate(counts_.begin(), counts_.begin() + rank_, std::int64_t{0});
  }

  void one_buffer() {
    Vector x;
    const Vector own = input_of(rank_, n_), of_root = input_of(root_, n_);
    const auto prepare = [&] { x = own; };
    FORMS(broadcast, nullptr, world_, x.data(), n_, BATON_I64, root_).check(prepare, x, of_root);
    FORMS(all_reduce, ring_, world_, x.data(), x.data(), n_, BATON_I64, BATON_SUM)
        .check(prepare, x, summed(0, size_, n_));
    FORMS(scan, nullptr, world_, x.data(), x.data(), n_, BATON_I64, BATON_SUM)
        .check(prepare, x, summed(0, rank_ + 1, n_));
    FORMS(broadcast_list, nullptr, world_, std::vector<void*>{x.data(), x.data() + n_ / 3}.data(),
          list({n_ / 3, n_ - n_ / 3}), 2, BATON_I64, root_)
        .check(prepare, x, of_root);
    FORMS(all_reduce_list, nullptr, world_, std::vector<void*>{x.data(), x.data() + n_ / 3}.data(),
          list({n_ / 3, n_ - n_ / 3}), 2, BATON_I64, BATON_SUM)
        .check(prepare, x, summed(0, size_, n_));
  }

  void reductions() {
    Vector x = input_of(rank_, n_), y;
    const auto prepare = [&] { y.assign(static_cast<std::size_t>(n_), untouched); };
    prepare();
    const Vector none = y;
    FORMS(all_reduce, ring_, world_, x.data(), y.data(), n_, BATON_I64, BATON_SUM)
        .check(prepare, y, summed(0, size_, n_));
    FORMS(all_reduce, nullptr, world_, x.data(), y.data(), n_, BATON_I64, BATON_MAX)
        .check(prepare, y, input_of(size_ - 1, n_));
    FORMS(reduce, nullptr, world_, x.data(), rank_ == root_ ? y.data() : nullptr, n_, BATON_I64,
          BATON_SUM, root_)
        .check(prepare, y, rank_ == root_ ? summed(0, size_, n_) : none);
    FORMS(scan, nullptr, world_, x.data(), y.data(), n_, BATON_I64, BATON_SUM)
        .check(prepare, y, summed(0, rank_ + 1, n_));
    FORMS(exscan, nullptr, world_, x.data(), y.data(), n_, BATON_I64, BATON_SUM)
        .check(prepare, y, rank_ == 0 ? none : summed(0, rank_, n_));
    const Vector whole = input_of(rank_, size_ * n_);
    FORMS(reduce_scatter, ring_, world_, whole.data(), y.data(), n_, BATON_I64, BATON_SUM)
        .check(prepare, y, slice(summed(0, size_, size_ * n_), rank_ * n_, n_));
    const Vector uneven = input_of(rank_, total_);
    FORMS(reduce_scatter_v, nullptr, world_, uneven.data(), y.data(), list(copy(counts_)),
          BATON_I64, BATON_SUM)
        .check([&] { y.assign(static_cast<std::size_t>(own_count_), untouched); }, y,
               slice(summed(0, size_, total_), own_offset_, own_count_));
  }

  void movement() {
    const Vector x = input_of(rank_, n_), whole = input_of(rank_, size_ * n_);
    Vector y, gathered, exchanged;
    for (int r = 0; r < size_; ++r) {
      append(gathered, input_of(r, n_));
      append(exchanged, slice(input_of(r, size_ * n_), rank_ * n_, n_));
    }
    const auto large = [&] { y.assign(static_cast<std::size_t>(size_ * n_), untouched); };
    large();
    const Vector none = y;
    FORMS(all_gather, ring_, world_, x.data(), y.data(), n_, BATON_I64).check(large, y, gathered);
    FORMS(gather, nullptr, world_, x.data(), rank_ == root_ ? y.data() : nullptr, n_, BATON_I64,
          root_)
        .check(large, y, rank_ == root_ ? gathered : none);
    FORMS(all_to_all, nullptr, world_, whole.data(), y.data(), n_, BATON_I64)
        .check(large, y, exchanged);
    FORMS(scatter, nullptr, world_, rank_ == root_ ? whole.data() : nullptr, y.data(), n_,
          BATON_I64, root_)
        .check([&] { y.assign(static_cast<std::size_t>(n_), untouched); }, y,
               slice(input_of(root_, size_ * n_), rank_ * n_, n_));
    FORMS(barrier, nullptr, world_).check([] {}, y, y);
  }

  void uneven() {
    const Vector x = input_of(rank_, own_count_);
    Vector y, gathered, apart, offsets;
    for (int r = 0; r < size_; ++r) {
      offsets.push_back(static_cast<std::int64_t>(apart.size()) + 2);
      append(apart, {untouched, untouched});
      append(apart, input_of(r, counts_[static_cast<std::size_t>(r)]));
      append(gathered, input_of(r, counts_[static_cast<std::size_t>(r)]));
    }
    const auto prepare = [&](std::int64_t count) {
      return [&y, count] { y.assign(static_cast<std::size_t>(count), untouched); };
    };
    FORMS(all_gather_v, nullptr, world_, x.data(), y.data(), list(copy(counts_)), nullptr,
          BATON_I64)
        .check(prepare(total_), y, gathered);
    FORMS(all_gather_v, nullptr, world_, x.data(), y.data(), list(copy(counts_)),
          list(copy(offsets)), BATON_I64)
        .check(prepare(total_ + 2 * size_), y, apart);
    FORMS(gather_v, nullptr, world_, x.data(), rank_ == root_ ? y.data() : nullptr,
          list(copy(counts_)), BATON_I64, root_)
        .check(prepare(total_), y,
               rank_ == root_ ? gathered : Vector(static_cast<std::size_t>(total_), untouched));
    const Vector all = input_of(rank_, total_);
    FORMS(scatter_v, nullptr, world_, rank_ == root_ ? all.data() : nullptr, y.data(),
          list(copy(counts_)), BATON_I64, root_)
        .check(prepare(own_count_), y, slice(input_of(root_, total_), own_offset_, own_count_));
  }

  /// Rank r sends counts_[i] + r elements to rank i; with offsets, a gap of one before each block.
  void uneven_exchange() {
    for (const bool gaps : {false, true}) {
      const auto sent = [&](int r, int to) { return counts_[static_cast<std::size_t>(to)] + r; };
      const auto value = [&](int r, int to, std::int64_t i) { return element(r, 31 * to + i); };
      Vector x, y, expected, counts, offsets, from_counts, from_offsets;
      for (int other = 0; other < size_; ++other) {
        if (gaps) x.push_back(0), expected.push_back(untouched);
        counts.push_back(sent(rank_, other)), from_counts.push_back(sent(other, rank_));
        offsets.push_back(static_cast<std::int64_t>(x.size()));
        from_offsets.push_back(static_cast<std::int64_t>(expected.size()));
        for (std::int64_t i = 0; i < counts.back(); ++i) x.push_back(value(rank_, other, i));
        for (std::int64_t i = 0; i < from_counts.back(); ++i)
          expected.push_back(value(other, rank_, i));
      }
      const auto prepare = [&] { y.assign(expected.size(), untouched); };
      prepare();
      if (gaps) {
        FORMS(all_to_all_v, nullptr, world_, x.data(), list(copy(counts)), list(copy(offsets)),
              y.data(), list(copy(from_counts)), list(copy(from_offsets)), BATON_I64)
            .check(prepare, y, expected);
      } else {
        FORMS(all_to_all_v, nullptr, world_, x.data(), list(copy(counts)), nullptr, y.data(),
              list(copy(from_counts)), nullptr, BATON_I64)
            .check(prepare, y, expected);
      }
    }
  }

  /// [2, n, 3] joined along the middle; [2, n, 2 P] cut along the last and joined along the middle.
  void tensors() {
    const Vector x = input_of(rank_, 6 * n_);
    Vector y, joined, exchanged;
    for (std::int64_t plane = 0; plane < 2; ++plane)
      for (int r = 0; r < size_; ++r)
        append(joined, slice(input_of(r, 6 * n_), plane * 3 * n_, 3 * n_));
    const auto prepare = [&](std::int64_t count) {
      return [&y, count] { y.assign(static_cast<std::size_t>(count), untouched); };
    };
    FORMS(all_gather_tensor, nullptr, world_, x.data(), list({2, n_, 3}), 3, y.data(), BATON_I64, 1)
        .check(prepare(6 * n_ * size_), y, joined);
    FORMS(all_gather_tensor, nullptr, world_, x.data(), list({2, n_, 3}), 3, y.data(), BATON_I64,
          -2)
        .check(prepare(6 * n_ * size_), y, joined);
    const std::int64_t columns = 2 * size_;
    const Vector wide = input_of(rank_, 2 * n_ * columns);
    for (std::int64_t plane = 0; plane < 2; ++plane)
      for (int r = 0; r < size_; ++r) {
        const Vector from = input_of(r, 2 * n_ * columns);
        for (std::int64_t row = 0; row < n_; ++row)
          append(exchanged, slice(from, (plane * n_ + row) * columns + 2 * rank_, 2));
      }
    FORMS(all_to_all_tensor, nullptr, world_, wide.data(), list({2, n_, columns}), 3, y.data(),
          BATON_I64, -1, 1)
        .check(prepare(2 * n_ * columns), y, exchanged);
  }

  void in_place() {
    Vector x, whole = input_of(rank_, size_ * n_), gathered, exchanged;
    for (int r = 0; r < size_; ++r) {
      append(gathered, input_of(r, n_));
      append(exchanged, slice(input_of(r, size_ * n_), rank_ * n_, n_));
    }
    const auto own_block = [&] {
      x.assign(static_cast<std::size_t>(size_ * n_), untouched);
      std::ranges::copy(input_of(rank_, n_), x.begin() + rank_ * n_);
    };
    FORMS(all_gather, nullptr, world_, x.data() + rank_ * n_, x.data(), n_, BATON_I64)
        .check(own_block, x, gathered);
    FORMS(all_to_all, nullptr, world_, x.data(), x.data(), n_, BATON_I64)
        .check([&] { x = whole; }, x, exchanged);
  }

 private:
  baton_communicator* world_;
  int rank_, size_, root_;
  std::int64_t n_;
  const char* ring_;
  Vector counts_;
  std::int64_t total_ = 0, own_count_ = 0, own_offset_ = 0;
};

}  // namespace

void every_collective(baton_communicator* world, long long count, const char* ring) {
  Cases cases(world, count, ring);
  cases.one_buffer();
  cases.reductions();
  cases.movement();
  cases.uneven();
  cases.uneven_exchange();
  cases.tensors();
  cases.in_place();
}

}  // namespace c_support
