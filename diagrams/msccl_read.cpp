#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "baton/error.hpp"
#include "msccl.hpp"
#include "readers.hpp"

namespace baton::diagrams {

using namespace msccl_form;

namespace {

constexpr std::size_t most_waits = 1 << 22;  // of a GPU: few lines may imply many

/// Where the chunks of a buffer of the file lie.
struct Home {
  Buffer buffer;
  std::int64_t first, count;
};

/// One GPU's thread blocks as a schedule.
class Reader {
 public:
  Reader(const Algorithm& algorithm, int rank, const std::string& origin,
         const MscclOptions& options)
      : algorithm_(algorithm),
        gpu_(algorithm.gpus[static_cast<std::size_t>(rank)]),
        rank_(rank),
        origin_(origin),
        chunk_(options.chunk),
        in_place_(options.in_place || !algorithm.out_of_place) {
    find_homes();
    check_connections();
    add_nodes();
    sort();
    number_blocks();
    for (const std::uint32_t node : order_) append(node);
  }

  Schedule schedule() {
    header_.collective = algorithm_.collective;
    header_.algorithm = algorithm_.name;
    header_.size = static_cast<int>(algorithm_.gpus.size());
    header_.rank = rank_;
    header_.root = algorithm_.root;
    for (std::int64_t* elements :
         {&header_.input, &header_.output, &header_.scratch, &header_.slots}) {
      *elements *= chunk_;
    }
    for (Region& region : regions_) {
      region.offset *= chunk_;
      region.block *= chunk_;
    }
    return Schedule(header_, std::move(steps_), std::move(regions_), std::move(dependencies_));
  }

 private:
  /// An instruction, and what it waits for.
  struct Node {
    const Instruction* its;
    std::size_t block;
    std::vector<std::uint32_t> waits;  // nodes
    std::vector<std::uint32_t> after;  // the same without those that do nothing
    std::int32_t level = 0;            // instructions on the longest path up to it
    std::int32_t round = 0;            // messages on the longest path before it
    bool idle = false;                 // does nothing but wait
    std::uint32_t last = 0;            // the last of its steps
  };

  /// Two places of a thread block for messages.
  struct Slots {
    std::int64_t first = 0, longest = 0, used = 0;
  };

  [[noreturn]] void refuse(int line, std::string_view expected, std::string_view found) const {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}:{}: expected {}, found {}", origin_, line, expected, found));
  }

  /// One buffer for input and output where they are the same memory: see Problem.
  void find_homes() {
    const Collective collective = algorithm_.collective;
    Problem problem;
    problem.collective = collective;
    problem.rank = rank_;
    problem.root = algorithm_.root;
    problem.in_place = in_place_;
    const bool shared = problem.aliased();
    header_.in_place = shared;
    header_.scratch = gpu_.scratch;
    scratch_ = {Buffer::scratch, 0, gpu_.scratch};
    if (!shared) {
      header_.input = gpu_.input;
      header_.output = gpu_.output;
      input_ = {Buffer::input, 0, gpu_.input};
      output_ = {Buffer::output, 0, gpu_.output};
    } else if (gathering(collective)) {
      header_.output = gpu_.output;
      input_ = {Buffer::output, rank_ * gpu_.input, gpu_.input};
      output_ = {Buffer::output, 0, gpu_.output};
    } else if (scattering(collective)) {
      header_.input = gpu_.input;
      input_ = {Buffer::input, 0, gpu_.input};
      output_ = {Buffer::input, rank_ * gpu_.output, gpu_.output};
    } else {
      header_.output = std::max(gpu_.input, gpu_.output);
      input_ = output_ = {Buffer::output, 0, header_.output};
    }
  }

  /// Nothing orders the messages of two thread blocks.
  void check_connections() const {
    std::map<std::tuple<bool, int, int>, std::size_t> known;
    for (std::size_t b = 0; b < gpu_.blocks.size(); ++b) {
      const ThreadBlock& block = gpu_.blocks[b];
      for (const bool sends : {true, false}) {
        const int peer = sends ? block.send : block.recv;
        if (peer < 0) continue;
        const auto [at, added] = known.try_emplace({sends, peer, block.channel}, b);
        if (added) continue;
        refuse(block.line,
               fmt::format("one thread block that {} GPU {} on channel {}",
                           sends ? "sends to" : "receives from", peer, block.channel),
               fmt::format("thread blocks {} and {}", at->second, b));
      }
    }
  }

  Region region(const Piece& piece, int line) const {
    const Home& home = piece.buffer == 'i' ? input_ : (piece.buffer == 'o' ? output_ : scratch_);
    if (piece.offset < 0 || piece.offset + piece.count > home.count) {
      refuse(line, fmt::format("chunks of \"{}\" from 0 to {}", piece.buffer, home.count - 1),
             piece.count == 1
                 ? fmt::format("{}", piece.offset)
                 : fmt::format("{} to {}", piece.offset, piece.offset + piece.count - 1));
    }
    return contiguous(home.buffer, home.first + piece.offset, piece.count);
  }

  void add_nodes() {
    std::vector<std::uint32_t> first;
    for (const ThreadBlock& block : gpu_.blocks) {
      first.push_back(static_cast<std::uint32_t>(nodes_.size()));
      for (const Instruction& its : block.steps) {
        Node node{&its, first.size() - 1, {}, {}};
        node.idle = its.type == "nop" ||
                    (its.type == "cpy" && region(its.from, its.line) == region(its.to, its.line));
        nodes_.push_back(std::move(node));
      }
    }
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      Node& node = nodes_[n];
      if (n > first[node.block]) node.waits.push_back(n - 1);
      if (node.its->on_block >= 0) {
        node.waits.push_back(first[static_cast<std::size_t>(node.its->on_block)] +
                             static_cast<std::uint32_t>(node.its->on_step));
      }
    }
  }

  /// Finds levels, from those that wait for nothing onward, and what each node waits for.
  void sort() {
    std::vector<std::vector<std::uint32_t>> followers(nodes_.size());
    std::vector<std::size_t> open(nodes_.size());
    std::vector<std::uint32_t> ready;
    std::size_t waiting = 0;
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      for (const std::uint32_t wait : nodes_[n].waits) followers[wait].push_back(n);
      open[n] = nodes_[n].waits.size();
      if (open[n] == 0) ready.push_back(n);
    }
    for (std::size_t i = 0; i < ready.size(); ++i) {
      Node& node = nodes_[ready[i]];
      for (const std::uint32_t wait : node.waits) {
        const Node& before = nodes_[wait];
        node.level = std::max(node.level, before.level);
        node.round = std::max(node.round, before.round + receives(before) + sends(before));
        if (before.idle) {
          node.after.insert(node.after.end(), before.after.begin(), before.after.end());
        } else {
          node.after.push_back(wait);
        }
      }
      std::ranges::sort(node.after);
      node.after.erase(std::unique(node.after.begin(), node.after.end()), node.after.end());
      waiting += node.after.size();
      if (waiting > most_waits)
        refuse(node.its->line,
               fmt::format("steps of a GPU that wait for at most {} in all", most_waits), "more");
      if (!node.idle) {
        ++node.level;
        order_.push_back(ready[i]);
      }
      for (const std::uint32_t next : followers[ready[i]]) {
        if (--open[next] == 0) ready.push_back(next);
      }
    }
    if (ready.size() == nodes_.size()) return;
    const auto stuck = std::ranges::find_if(open, [](std::size_t n) { return n > 0; });
    refuse(nodes_[static_cast<std::size_t>(stuck - open.begin())].its->line,
           "steps that do not wait for themselves", "a circle of depid and deps");
  }

  /// Steps stand by level, then by thread block; blocks in the order in which they begin. So what
  /// msccl() writes is read back as the same schedule.
  void number_blocks() {
    constexpr std::int32_t never = INT32_MAX;
    std::vector<std::pair<std::int32_t, std::size_t>> begins;
    for (std::size_t b = 0; b < gpu_.blocks.size(); ++b) begins.push_back({never, b});
    for (const std::uint32_t n : order_) {
      auto& begin = begins[nodes_[n].block].first;
      begin = std::min(begin, nodes_[n].level);
    }
    std::ranges::sort(begins);
    std::vector<std::size_t> place(begins.size());
    for (std::size_t i = 0; i < begins.size(); ++i) place[begins[i].second] = i;
    slots_.resize(gpu_.blocks.size());
    std::ranges::sort(order_, {}, [&](std::uint32_t n) {
      return std::tuple(nodes_[n].level, place[nodes_[n].block], n);
    });
  }

  static const Type& type_of(const Node& node) {
    return *std::ranges::find(types, node.its->type, &Type::name);
  }
  static bool receives(const Node& node) { return type_of(node).receives; }
  static bool sends(const Node& node) { return type_of(node).sends; }

  /// Room for a message of a thread block that is not stored as it comes: one of two places in
  /// turn, so that the next may come while this one is sent.
  Region slot(const Node& node) {
    Slots& its = slots_[node.block];
    if (its.longest == 0) {
      its.first = header_.slots;
      for (const Instruction& other : gpu_.blocks[node.block].steps) {
        its.longest = std::max(its.longest, other.to.count);
      }
      header_.slots += 2 * its.longest;
    }
    const std::int64_t place = its.first + its.longest * (its.used++ % 2);
    return contiguous(Buffer::slot, place, node.its->to.count);
  }

  void append(std::uint32_t n) {
    Node& node = nodes_[n];
    const Instruction& its = *node.its;
    const Type& type = type_of(node);
    const ThreadBlock& block = gpu_.blocks[node.block];
    const auto from = [&] { return region(its.from, its.line); };
    const auto to = [&] { return region(its.to, its.line); };
    const bool through_slot = type.receives && type.reduces;
    first_ = true;
    const Region message = through_slot ? slot(node) : Region{};
    // What a send of the same instruction passes on.
    const Region result = type.stores ? to() : (through_slot ? message : from());
    if (type.receives) add(node, StepKind::recv, block.recv, {through_slot ? message : result});
    if (through_slot) {
      const Region own = from();
      const bool left = block.recv < rank_;
      add(node, StepKind::fold, -1, {result, left ? message : own, left ? own : message});
    } else if (type.reduces) {
      const Region own = from();
      add(node, StepKind::fold, -1,
          {result, its.source_left ? own : result, its.source_left ? result : own});
    } else if (type.stores && !type.receives) {
      add(node, StepKind::copy, -1, {result, from()});
    }
    if (type.sends) add(node, StepKind::send, block.send, {result});
    node.last = static_cast<std::uint32_t>(steps_.size()) - 1;
  }

  void add(const Node& node, StepKind kind, int peer, const Regions& operands) {
    Step step;
    step.kind = kind;
    step.peer = peer;
    step.round = node.round + (!first_ && kind == StepKind::send && receives(node) ? 1 : 0);
    step.lane = kind == StepKind::send || kind == StepKind::recv
                    ? static_cast<std::uint8_t>(gpu_.blocks[node.block].channel)
                    : std::uint8_t{0};
    step.first = static_cast<std::uint32_t>(regions_.size());
    for (std::size_t k = 0; k < operands.size(); ++k) step.parts[k] = 1;
    regions_.insert(regions_.end(), operands.begin(), operands.end());
    if (first_) {
      std::vector<std::uint32_t> after;
      for (const std::uint32_t wait : node.after) after.push_back(nodes_[wait].last);
      std::ranges::sort(after);
      dependencies_.list.insert(dependencies_.list.end(), after.begin(), after.end());
    } else {
      dependencies_.list.push_back(static_cast<std::uint32_t>(steps_.size()) - 1);
    }
    dependencies_.end_step();
    steps_.push_back(step);
    first_ = false;
  }

  const Algorithm& algorithm_;
  const Gpu& gpu_;
  int rank_;
  const std::string& origin_;
  std::int64_t chunk_;
  bool in_place_;
  Home input_{}, output_{}, scratch_{};
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> order_;  // of the nodes that do something
  std::vector<Slots> slots_;          // of each thread block
  bool first_ = true;                 // step of its instruction

  Schedule::Header header_;
  std::vector<Step> steps_;
  std::vector<Region> regions_;
  Dependencies dependencies_;
};

}  // namespace

std::vector<Schedule> parse_msccl(std::string_view text, const std::string& origin,
                                  const MscclOptions& options) {
  const Algorithm algorithm = read(text, origin);
  if (options.in_place && !algorithm.in_place) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: expected an algorithm that runs in place, found inplace=\"0\"", origin));
  }
  std::vector<Schedule> schedules;
  for (int r = 0; r < static_cast<int>(algorithm.gpus.size()); ++r) {
    schedules.push_back(Reader(algorithm, r, origin, options).schedule());
  }
  return schedules;
}

}  // namespace baton::diagrams
