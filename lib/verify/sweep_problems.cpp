#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "sweep.hpp"

namespace baton::proving {
namespace {

/// Up to this many ranks the grid is the full product of its axes.
constexpr int full_product = 12;
/// Up to this many, hierarchical algorithms get every host grouping with every problem.
constexpr int full_groupings = 8;

/// Values without repetition, in order of first appearance.
std::vector<std::int64_t> distinct(std::initializer_list<std::int64_t> values) {
  std::vector<std::int64_t> out;
  for (const std::int64_t value : values) {
    if (value >= 0 && std::find(out.begin(), out.end(), value) == out.end()) out.push_back(value);
  }
  return out;
}

bool cuts_a_vector(Collective collective) {
  switch (collective) {
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::all_reduce:
    case Collective::scan:
    case Collective::exscan:
      return true;
    default:
      return false;
  }
}

/// A set of problems with even counts.
std::vector<Problem> at_all_ranks(const Problem& problem) {
  std::vector<Problem> problems;
  for (int r = 0; r < problem.size; ++r) problems.push_back(problem.at(r));
  return problems;
}

/// Collects the grid.
class Grid {
 public:
  Grid(const Algorithm& algorithm, int size) : algorithm_(algorithm) {
    base_.collective = algorithm.collective;
    base_.size = size;
    set_axes();
    if (algorithm.hierarchical) set_groupings();
  }

  std::vector<std::vector<Problem>> problems() {
    if (base_.collective == Collective::barrier) {
      Problem p = base_;
      p.count = 1;
      add(p);
    } else {
      add_even();
      if (algorithm_.pipelined) add_pipelined();
      if (base_.collective == Collective::all_gather ||
          base_.collective == Collective::all_to_all) {
        add_rows();
      }
      if (algorithm_.uneven) add_uneven();
    }
    return std::move(sets_);
  }

 private:
  struct Variant {
    bool commutative, average;
  };

  void set_axes() {
    const int size = base_.size;
    counts_ = cuts_a_vector(base_.collective)
                  ? distinct({2 * size + 3, 0, 1, size - 1, size, size + 1})
                  : distinct({3, 0, 1});
    roots_ = rooted(base_.collective) ? distinct({0, size - 1, size / 2}) : distinct({0});
    places_ = base_.collective == Collective::broadcast ? std::vector<bool>{true}
                                                        : std::vector<bool>{false, true};
    variants_ = {{true, false}};
    if (reducing(base_.collective)) {
      variants_.push_back({true, true});
      if (algorithm_.ordered) variants_.push_back({false, false});
    }
  }

  void add(const Problem& p) {
    if (!algorithm_.hierarchical) return add_set(p);
    // Few ranks: each problem with all host groupings. More ranks: with one, in turn.
    const bool all = p.size <= full_groupings || p.collective == Collective::barrier;
    for (std::size_t k = 0; k < groupings_.size(); ++k) {
      if (!all && k != grouping_turn_ % groupings_.size()) continue;
      Problem q = p;
      q.hosts = groupings_[k];
      add_set(q);
    }
    ++grouping_turn_;
  }
  void add_set(const Problem& p) {
    if (refusal(algorithm_, p).empty()) sets_.push_back(at_all_ranks(p));
  }
  /// Hosts with equal numbers of ranks, consecutive and interleaved, and with unequal numbers.
  void set_groupings() {
    const int size = base_.size;
    const auto group = [&](const std::function<int(int)>& host) {
      Problem p = base_;
      std::vector<int> hosts;
      for (int r = 0; r < size; ++r) hosts.push_back(host(r));
      p.hosts = host_grouping(hosts);
      if (refusal(algorithm_, p).empty()) groupings_.push_back(p.hosts);
    };
    group([&](int r) { return r == 0 ? 0 : 1; });
    group([&](int r) { return r < size / 2 ? 0 : r; });
    group([](int r) { return (r * r + r / 3) % 4; });
    for (int each = 2; each < size; ++each) {
      if (size % each != 0) continue;
      group([&](int r) { return r / each; });
      group([&](int r) { return r % (size / each); });
    }
  }
  Problem with(const Problem& p, std::int64_t root, bool in_place, const Variant& variant) const {
    Problem q = p;
    q.root = static_cast<int>(root);
    q.in_place = in_place;
    q.commutative = variant.commutative;
    q.average = variant.average;
    return q;
  }
  /// Every root, place and variant. All combinations for few ranks or if `thorough`; else each
  /// place once, with the others in turn.
  void vary(const Problem& p, bool thorough, const std::function<void(const Problem&)>& add_one) {
    if (thorough || p.size <= full_product) {
      for (const std::int64_t root : roots_) {
        for (const bool in_place : places_) {
          for (const Variant& variant : variants_) add_one(with(p, root, in_place, variant));
        }
      }
      return;
    }
    for (std::size_t k = 0; k < places_.size(); ++k) {
      const std::size_t root = (turn_ + k) % roots_.size();
      const std::size_t variant = (turn_ + k + turn_ / roots_.size()) % variants_.size();
      add_one(with(p, roots_[root], places_[k], variants_[variant]));
    }
    ++turn_;
  }

  void add_even() {
    for (const std::int64_t count : counts_) {
      Problem p = base_;
      p.count = count;
      vary(p, count == counts_[0], [&](const Problem& q) { add(q); });
    }
  }

  void add_pipelined() {
    for (const std::int64_t blocks : distinct({2, 3, base_.size / 2 + 1, 2 * base_.size + 1})) {
      for (const std::int64_t count : {2 * blocks + 1, blocks - 1}) {
        Problem p = base_;
        p.blocks = static_cast<int>(blocks);
        p.count = count;
        vary(p, false, [&](const Problem& q) { add(q); });
      }
    }
  }

  void add_rows() {
    const bool pairs = base_.collective == Collective::all_to_all;
    const auto add_rows = [&](std::int64_t input_rows, std::int64_t output_rows) {
      for (const bool in_place : {false, true}) {
        Problem p = base_;
        p.count = std::max<std::int64_t>(6, std::lcm(input_rows, output_rows));
        p.input_rows = input_rows;
        p.output_rows = output_rows;
        p.in_place = in_place;
        add(p);
      }
    };
    add_rows(1, 2);
    if (!pairs) return;
    add_rows(2, 1);
    add_rows(3, 3);
    add_rows(2, 3);
    add_rows(2, 64);
  }

  void add_uneven() {
    const auto n = static_cast<std::size_t>(base_.size);
    if (base_.collective == Collective::all_to_all) {
      add_uneven_pairs([](int i, int j) { return (3 * i + 5 * j + 1) % 4; }, 0, false);
      add_uneven_pairs([](int i, int j) { return (i + 2 * j) % 3; }, 1, false);
      add_uneven_pairs([](int i, int j) { return (i + j) % 3; }, 0, true);
      return;
    }
    std::vector<std::int64_t> mixed(n), lonely(n, 0), positive(n);
    for (std::size_t i = 0; i < n; ++i) {
      mixed[i] = static_cast<std::int64_t>((3 * i + 2) % 5);
      positive[i] = 1 + static_cast<std::int64_t>(i % 3);
    }
    lonely[n / 2] = base_.size + 1;
    add_uneven(Blocks::packed(mixed));
    add_uneven(Blocks::packed(lonely));
    // Blocks in reverse, with a gap before each.
    std::vector<std::int64_t> offsets(n);
    std::int64_t end = 0;
    for (std::size_t i = n; i-- > 0;) {
      offsets[i] = end + 1;
      end = offsets[i] + positive[i];
    }
    // A reduction's vector has no gaps; its blocks stay in rank order.
    add_uneven(base_.collective == Collective::reduce_scatter ? Blocks::packed(positive)
                                                              : Blocks::placed(positive, offsets));
  }
  void add_uneven(const std::shared_ptr<const Blocks>& blocks) {
    Problem p = base_;
    p.input_blocks = p.output_blocks = blocks;
    vary(p, false, [&](const Problem& q) { add(q.at(0)); });
  }
  /// elements(i, j) go from rank i to rank j; there are `gap` elements between blocks.
  void add_uneven_pairs(const std::function<int(int, int)>& elements, std::int64_t gap,
                        bool in_place) {
    std::vector<Problem> set;
    for (int r = 0; r < base_.size; ++r) {
      std::vector<std::int64_t> sent, received, from, to;
      std::int64_t sent_end = 0, received_end = 0;
      for (int i = 0; i < base_.size; ++i) {
        sent.push_back(elements(r, i));
        received.push_back(elements(i, r));
        from.push_back(sent_end);
        to.push_back(received_end);
        sent_end += sent.back() + gap;
        received_end += received.back() + gap;
      }
      Problem p = base_;
      p.rank = r;
      p.in_place = in_place;
      p.input_blocks = Blocks::placed(sent, from);
      p.output_blocks = Blocks::placed(received, to);
      if (!refusal(algorithm_, p).empty()) return;
      set.push_back(p);
    }
    sets_.push_back(std::move(set));
  }

  const Algorithm& algorithm_;
  Problem base_;
  std::vector<std::int64_t> counts_, roots_;
  std::vector<bool> places_;
  std::vector<Variant> variants_;
  std::size_t turn_ = 0, grouping_turn_ = 0;
  std::vector<std::shared_ptr<const Hosts>> groupings_;
  std::vector<std::vector<Problem>> sets_;
};

}  // namespace

std::vector<std::vector<Problem>> sweep_problems(const Algorithm& algorithm, int size) {
  return Grid(algorithm, size).problems();
}

}  // namespace baton::proving
