#include <algorithm>
#include <functional>

#include "conformance.hpp"

namespace support::conformance {
namespace {

using namespace baton;
using Ints = Guarded<std::int32_t>;

/// Blocks of one rank's buffer: counts, and where each begins.
struct Layout {
  Counts counts, offsets;

  static Layout packed(const Counts& counts) {
    Layout layout{counts, {}};
    std::int64_t end = 0;
    for (const std::int64_t count : layout.counts) {
      layout.offsets.push_back(end);
      end += count;
    }
    return layout;
  }
  /// The last block first, with gaps between them.
  static Layout spread(const Counts& counts) {
    Layout layout{counts, Counts(counts.size())};
    std::int64_t end = 1;
    for (std::size_t i = layout.counts.size(); i-- > 0;) {
      layout.offsets[i] = end;
      end += layout.counts[i] + 2;
    }
    return layout;
  }
  std::int64_t count(int block) const { return counts[static_cast<std::size_t>(block)]; }
  std::int64_t offset(int block) const { return offsets[static_cast<std::size_t>(block)]; }
  std::int64_t extent() const {
    std::int64_t extent = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      extent = std::max(extent, offsets[i] + counts[i]);
    }
    return extent;
  }
  std::span<std::int32_t> block(Ints& data, int i) const {
    if (count(i) == 0) return {};
    return data.span().subspan(static_cast<std::size_t>(offset(i)),
                               static_cast<std::size_t>(count(i)));
  }
};

std::vector<Counts> uneven_counts(int size) {
  Counts mixed, last_only, rising;
  for (int i = 0; i < size; ++i) {
    mixed.push_back((i * 7 + 3) % 5);
    last_only.push_back(i == size - 1 ? 9 : 0);
    rising.push_back(3 * i);
  }
  return {mixed, last_only, rising, Counts(static_cast<std::size_t>(size), 0)};
}

/// Calls `body(call)` for each algorithm and segment with the call's choice set.
void for_calls(Communicator& c, Call call, const Layout& layout, const Scope& scope,
               const std::function<void(const Call&, const std::string&)>& body) {
  Problem problem = problem_of(c, call.collective);
  problem.root = call.root;
  problem.input_blocks = Blocks::placed(layout.counts, layout.offsets);
  for_choices(c, problem, scope, [&](const Choice& choice) {
    call.choice = choice;
    body(call, where(c, call.collective, choice, layout.extent(), "uneven"));
  });
}

void gather_or_all_gather(Communicator& c, const Layout& layout, int root, const Scope& scope) {
  const bool everywhere = root < 0;
  const bool receives = everywhere || c.rank() == root;
  std::uint64_t seed = 7;
  for (const bool in_place : {false, true}) {
    Call call;
    call.collective = everywhere ? Collective::all_gather : Collective::gather;
    call.root = everywhere ? 0 : root;
    call.recv_counts = layout.counts;
    call.recv_offsets = layout.offsets;
    for_calls(c, call, layout, scope, [&](Call each, const std::string& name) {
      ++seed;
      const Ints input = Ints::of(seed, c.rank(), layout.count(c.rank()));
      Ints output(receives ? layout.extent() : 0), expected = output;
      for (int r = 0; receives && r < c.size(); ++r) {
        for (std::int64_t i = 0; i < layout.count(r); ++i) {
          expected[layout.offset(r) + i] = value(seed, r, i);
        }
      }
      each.input = input.span();
      if (in_place && receives) {
        const auto own = layout.block(output, c.rank());
        std::copy(input.span().begin(), input.span().end(), own.begin());
        each.input = own;
      }
      each.output = output.span();
      c.run(each);
      output.check(expected.span(), [&] { return name; });
    });
  }
}

void scatter(Communicator& c, const Layout& layout, int root, const Scope& scope) {
  std::uint64_t seed = 7;
  for (const bool in_place : {false, true}) {
    Call call;
    call.collective = Collective::scatter;
    call.root = root;
    call.send_counts = layout.counts;
    call.send_offsets = layout.offsets;
    for_calls(c, call, layout, scope, [&](Call each, const std::string& name) {
      ++seed;
      const bool is_root = c.rank() == root;
      Ints input = is_root ? Ints::of(seed, root, layout.extent()) : Ints(0);
      Ints output(layout.count(c.rank())), expected = output;
      for (std::int64_t i = 0; i < expected.size(); ++i) {
        expected[i] = value(seed, root, layout.offset(c.rank()) + i);
      }
      each.input = input.span();
      each.output = in_place && is_root ? layout.block(input, root) : output.span();
      c.run(each);
      if (!in_place || !is_root) output.check(expected.span(), [&] { return name; });
      if (is_root) {
        input.check(Ints::of(seed, root, layout.extent()).span(), [&] { return name; });
      }
    });
  }
}

void reduce_scatter(Communicator& c, const Layout& layout, const Scope& scope) {
  std::uint64_t seed = 7;
  for (const bool in_place : {false, true}) {
    Call call;
    call.collective = Collective::reduce_scatter;
    call.op = sum;
    call.send_counts = layout.counts;
    call.send_offsets = layout.offsets;
    for_calls(c, call, layout, scope, [&](Call each, const std::string& name) {
      ++seed;
      Ints input = Ints::of(seed, c.rank(), layout.extent());
      Ints wanted_input = input, output(layout.count(c.rank()));
      Ints expected(output.size(), 0);
      for (int r = 0; r < c.size(); ++r) {
        for (std::int64_t i = 0; i < expected.size(); ++i) {
          expected[i] += value(seed, r, layout.offset(c.rank()) + i);
        }
      }
      const auto own = layout.block(input, c.rank());
      each.input = input.span();
      each.output = in_place ? own : output.span();
      c.run(each);
      if (in_place) {
        std::copy(expected.span().begin(), expected.span().end(),
                  layout.block(wanted_input, c.rank()).begin());
      } else {
        output.check(expected.span(), [&] { return name; });
      }
      input.check(wanted_input.span(), [&] { return name + ", input"; });
    });
  }
}

void all_to_all(Communicator& c, const std::function<std::int64_t(int, int)>& count,
                Layout (*lay)(const Counts&), bool in_place, const Scope& scope) {
  const auto row = [&](int rank, bool sends) {
    Counts counts;
    for (int peer = 0; peer < c.size(); ++peer) {
      counts.push_back(sends ? count(rank, peer) : count(peer, rank));
    }
    return lay(counts);
  };
  const Layout sends = row(c.rank(), true), receives = row(c.rank(), false);
  Call call;
  call.collective = Collective::all_to_all;
  call.send_counts = sends.counts;
  call.send_offsets = sends.offsets;
  call.recv_counts = receives.counts;
  call.recv_offsets = receives.offsets;
  std::uint64_t seed = 7;
  for_calls(c, call, sends, scope, [&](Call each, const std::string& name) {
    ++seed;
    Ints input = Ints::of(seed, c.rank(), sends.extent());
    Ints output = in_place ? input : Ints(receives.extent());
    Ints expected = output;
    for (int r = 0; r < c.size(); ++r) {
      for (std::int64_t i = 0; i < receives.count(r); ++i) {
        expected[receives.offset(r) + i] = value(seed, r, row(r, true).offset(c.rank()) + i);
      }
    }
    each.input = in_place ? ConstData(output.span()) : ConstData(input.span());
    each.output = output.span();
    c.run(each);
    output.check(expected.span(), [&] { return name; });
  });
}

/// The calls by name that take counts, each once.
void by_name(Communicator& c) {
  const int last = c.size() - 1;
  const Layout layout = Layout::packed(uneven_counts(c.size())[0]);
  const std::int64_t own = layout.count(c.rank()), all = layout.extent();
  Ints expected(all);
  for (int r = 0; r < c.size(); ++r) {
    for (std::int64_t i = 0; i < layout.count(r); ++i) {
      expected[layout.offset(r) + i] = value(3, r, i);
    }
  }
  const Ints input = Ints::of(3, c.rank(), own);
  Ints gathered(all);
  c.all_gather_v(input.span(), gathered.span(), layout.counts);
  gathered.check(expected.span(), [] { return std::string("all_gather_v"); });
  Ints at_root(c.rank() == last ? all : 0);
  c.gather_v(input.span(), at_root.span(), layout.counts, last);
  if (c.rank() == last) at_root.check(expected.span(), [] { return std::string("gather_v"); });
  Ints back(own);
  c.scatter_v(at_root.span(), back.span(), layout.counts, last);
  back.check(input.span(), [] { return std::string("scatter_v"); });
  Ints reduced(own), multiple(own);
  for (std::int64_t i = 0; i < own; ++i) multiple[i] = c.size() * input[i];
  c.reduce_scatter_v(gathered.span(), reduced.span(), layout.counts, sum);
  reduced.check(multiple.span(), [] { return std::string("reduce_scatter_v"); });
  const Counts same(static_cast<std::size_t>(c.size()), own);
  Ints from_all(all);
  Ints to_all(own * c.size());
  for (std::int64_t i = 0; i < to_all.size(); ++i) to_all[i] = input[i % own];
  c.all_to_all_v(to_all.span(), same, from_all.span(), layout.counts);
  from_all.check(expected.span(), [] { return std::string("all_to_all_v"); });
}

}  // namespace

void uneven(Communicator& c, const Scope& scope) {
  for (const Counts& counts : uneven_counts(c.size())) {
    for (const auto lay : {Layout::packed, Layout::spread}) {
      const Layout layout = lay(counts);
      for (const std::int64_t root : scope.roots) {
        gather_or_all_gather(c, layout, static_cast<int>(root), scope);
        scatter(c, layout, static_cast<int>(root), scope);
      }
      gather_or_all_gather(c, layout, -1, scope);
      reduce_scatter(c, layout, scope);
    }
  }
  for (const auto lay : {Layout::packed, Layout::spread}) {
    all_to_all(
        c, [](int from, int to) { return (3 * from + 5 * to + from * to) % 4; }, lay, false, scope);
    all_to_all(
        c, [](int from, int to) { return (from * to + from + to) % 4; }, lay, true, scope);
    all_to_all(
        c, [](int from, int to) { return from == 0 && to != 0 ? 11 : 0; }, lay, false, scope);
  }
  by_name(c);
}

}  // namespace support::conformance
