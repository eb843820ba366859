#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/line_reader.hpp"
#include "readers.hpp"

namespace baton::diagrams {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t most_ns = std::numeric_limits<std::int64_t>::max() / 2;  // of all ranks
constexpr int most_ranks = 1 << 20, most_lanes = 256;
constexpr std::size_t most_waits = 1 << 22;  // of a rank: few lines may imply many

/// A statement "send", "recv" or "calc".
struct Operation {
  StepKind kind = StepKind::compute;
  std::int64_t amount = 0;  // bytes, or ns
  int peer = -1;
  std::int64_t tag = 0;
  int line = 0;
  std::vector<std::uint32_t> after;  // operations that must be complete
  std::vector<std::uint32_t> along;  // operations that must have begun
  int lane = 0;
};
using Operations = std::vector<Operation>;

/// The text with blanks in place of comments, // to the end of the line and /* to */.
std::string without_comments(std::string_view text) {
  std::string out(text);
  for (std::size_t i = 0; i + 1 < out.size(); ++i) {
    if (out[i] != '/' || (out[i + 1] != '/' && out[i + 1] != '*')) continue;
    const bool block = out[i + 1] == '*';
    std::size_t end = out.find(block ? "*/" : "\n", i + 2);
    end = end == std::string::npos ? out.size() : end + (block ? 2 : 0);
    for (; i < end; ++i) {
      if (out[i] != '\n') out[i] = ' ';
    }
    --i;
  }
  return out;
}

class Reader : base::LineReader {
 public:
  Reader(std::string_view text, const std::string& origin) : LineReader(text, origin) {}

  std::vector<Operations> read() {
    if (!next_line()) refuse("\"num_ranks N\"", "the end of the text");
    if (const auto word = next_word(); word != "num_ranks") fail("\"num_ranks N\"", word);
    ranks_.resize(
        static_cast<std::size_t>(number("a number of ranks", next_word(), 1, most_ranks)));
    end_line();
    std::set<int> met;
    while (next_line()) {
      if (const auto word = next_word(); word != "rank") fail("\"rank R {\"", word);
      const int rank = number("a rank", next_word(), 0, size() - 1);
      if (!met.insert(rank).second) refuse("each rank once", fmt::format("rank {} twice", rank));
      if (const auto word = next_word(); word != "{") fail("\"{\"", word);
      end_line();
      read_rank(rank);
    }
    for (int r = 0; r < size(); ++r) {
      if (!met.contains(r)) refuse(fmt::format("\"rank {} {{\"", r), "the end of the text");
    }
    return std::move(ranks_);
  }

 private:
  int size() const { return static_cast<int>(ranks_.size()); }

  template <class T = int>
  T number(std::string_view what, std::string_view word, T least, T largest) const {
    T value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || value < least ||
        value > largest) {
      fail(fmt::format("{} from {} to {}", what, least, largest), word);
    }
    return value;
  }

  void read_rank(int rank) {
    labels_.clear();
    Operations& operations = ranks_[static_cast<std::size_t>(rank)];
    for (;;) {
      if (!next_line()) refuse("\"}\"", "the end of the text");
      std::string_view word = next_word();
      if (word == "}") break;
      std::string label;
      if (word.ends_with(':')) {
        label = word.substr(0, word.size() - 1);
        word = next_word();
      } else if (word != "send" && word != "recv" && word != "calc") {
        const std::string_view then = next_word();
        if (then == "requires" || then == "irequires") {
          Operation& its = operations[known(word)];
          (then == "requires" ? its.after : its.along).push_back(known(next_word()));
          end_line();
          continue;
        }
        if (then != ":") fail("\":\", \"requires\" or \"irequires\" after a label", then);
        label = word;
        word = next_word();
      }
      operations.push_back(operation(rank, word));
      end_line();
      if (label.empty()) continue;
      const auto index = static_cast<std::uint32_t>(operations.size()) - 1;
      if (!labels_.try_emplace(label, index).second) fail("labels that differ", label);
    }
    end_line();
  }

  std::uint32_t known(std::string_view label) const {
    const auto found = labels_.find(label);
    if (found == labels_.end()) fail("the label of a line above", label);
    return found->second;
  }

  /// "send 8b to 1 tag 0 cpu 0 nic 0", "recv 8b from 0 tag 0 cpu 0 nic 0" or "calc 100 cpu 0"
  Operation operation(int rank, std::string_view word) {
    Operation its;
    its.line = line();
    if (word == "calc") {
      its.amount = number<std::int64_t>("a time in ns", next_word(), 0, most_ns);
      if (its.amount > most_ns - computed_) {
        refuse(fmt::format("computations of all ranks that take at most {} ns together", most_ns),
               "more");
      }
      computed_ += its.amount;
    } else if (word == "send" || word == "recv") {
      its.kind = word == "send" ? StepKind::send : StepKind::recv;
      std::string_view bytes = next_word();
      if (bytes.ends_with('b')) {
        bytes.remove_suffix(1);
      } else if (const auto unit = next_word(); unit != "b") {
        fail("bytes such as 8b", unit);
      }
      its.amount = number<std::int64_t>("bytes", bytes, 0, most);
      const std::string_view way = its.kind == StepKind::send ? "to" : "from";
      if (const auto found = next_word(); found != way) fail(fmt::format("\"{}\"", way), found);
      its.peer = number("a rank", next_word(), 0, size() - 1);
      if (its.peer == rank) refuse("another rank as peer", fmt::format("rank {} itself", rank));
    } else {
      fail("send, recv or calc", word);
    }
    for (auto name = next_word(); !name.empty(); name = next_word()) {
      if (name == "tag" && its.kind != StepKind::compute) {
        its.tag = number<std::int64_t>("a tag", next_word(), 0, UINT32_MAX);
      } else if (name == "cpu" || name == "nic") {
        if (const auto which = next_word(); which != "0") {
          refuse(fmt::format("{} 0, as a rank has one processor and one network card", name),
                 fmt::format("{} {}", name, which));
        }
      } else {
        fail("tag, cpu, nic or the end of the line", name);
      }
    }
    return its;
  }

  std::vector<Operations> ranks_;
  std::int64_t computed_ = 0;  // ns of all ranks
  std::map<std::string, std::uint32_t, std::less<>> labels_;
};

[[noreturn]] void refuse(const std::string& origin, int line, std::string_view expected,
                         std::string_view found) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}:{}: expected {}, found {}", origin, line, expected, found));
}

/// One rank's operations in an order in which each stands behind those that it waits for, and
/// otherwise as in the file.
Operations sorted(const Operations& operations, const std::string& origin) {
  std::size_t waiting = 0;
  const std::size_t count = operations.size();
  std::vector<std::vector<std::uint32_t>> followers(count);
  std::vector<std::size_t> open(count);
  // To begin along with an operation is to wait for all that it waits for.
  std::vector<std::set<std::uint32_t>> waits(count);
  std::set<std::uint32_t> ready;
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < count; ++i) {
    for (const auto* list : {&operations[i].after, &operations[i].along}) {
      for (const std::uint32_t other : *list) followers[other].push_back(i);
      open[i] += list->size();
    }
    waits[i].insert(operations[i].after.begin(), operations[i].after.end());
    if (open[i] == 0) ready.insert(i);
  }
  while (!ready.empty()) {
    const std::uint32_t i = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(i);
    for (const std::uint32_t other : operations[i].along) {
      waits[i].insert(waits[other].begin(), waits[other].end());
    }
    waiting += waits[i].size();
    if (waiting > most_waits) {
      refuse(origin, operations[i].line,
             fmt::format("operations of a rank that wait for at most {} in all", most_waits),
             "more");
    }
    for (const std::uint32_t next : followers[i]) {
      if (--open[next] == 0) ready.insert(next);
    }
  }
  if (order.size() < count) {
    const auto stuck = std::ranges::find_if(open, [](std::size_t n) { return n > 0; });
    refuse(origin, operations[static_cast<std::size_t>(stuck - open.begin())].line,
           "operations that do not wait for themselves", "a circle of requires");
  }
  std::vector<std::uint32_t> place(count);
  for (std::uint32_t k = 0; k < count; ++k) place[order[k]] = k;
  Operations out;
  for (const std::uint32_t i : order) {
    out.push_back(operations[i]);
    out.back().after.clear();
    for (const std::uint32_t other : waits[i]) out.back().after.push_back(place[other]);
    std::ranges::sort(out.back().after);
  }
  return out;
}

/// Lanes of the messages between two ranks, as few as are needed: messages of a lane are expected
/// in the order in which they are sent. The k-th send of a tag meets its k-th receive.
class Lanes {
 public:
  Lanes(std::vector<Operations>& ranks, const std::string& origin) : origin_(origin) {
    std::map<std::pair<int, int>, std::pair<Side, Side>> pairs;  // by sender and receiver
    for (int r = 0; r < static_cast<int>(ranks.size()); ++r) {
      auto& operations = ranks[static_cast<std::size_t>(r)];
      for (Operation& its : operations) {
        if (its.kind == StepKind::send) pairs[{r, its.peer}].first.push_back(&its);
        if (its.kind == StepKind::recv) pairs[{its.peer, r}].second.push_back(&its);
      }
    }
    for (auto& [ends, sides] : pairs) assign(sides.first, sides.second);
  }

 private:
  using Side = std::vector<Operation*>;

  void assign(const Side& sends, const Side& receives) const {
    std::map<std::int64_t, std::vector<std::size_t>> expected;  // places of receives, by tag
    for (std::size_t i = 0; i < receives.size(); ++i) expected[receives[i]->tag].push_back(i);
    std::map<std::int64_t, std::size_t> met;
    std::vector<std::size_t> last;  // of each lane: the place of its last receive
    for (Operation* send : sends) {
      const auto& places = expected[send->tag];
      const std::size_t k = met[send->tag]++;
      if (k >= places.size()) continue;  // nobody receives it: for verify() to say
      const std::size_t place = places[k];
      const auto lane =
          std::ranges::find_if(last, [&](std::size_t before) { return before < place; });
      if (lane == last.end() && last.size() == most_lanes) {
        refuse(origin_, send->line,
               fmt::format("messages to rank {} of which at most {} overtake one another",
                           send->peer, most_lanes),
               "more");
      }
      send->lane = receives[place]->lane = static_cast<int>(lane - last.begin());
      if (lane == last.end()) {
        last.push_back(place);
      } else {
        *lane = place;
      }
    }
  }

  const std::string& origin_;
};

/// A schedule has no empty messages.
std::int64_t bytes_of(const Operation& its) { return std::max<std::int64_t>(its.amount, 1); }

Schedule schedule_of(const Operations& operations, int rank, int size) {
  Schedule::Header header;
  header.collective = Collective::program;
  header.algorithm = "goal";
  header.size = size;
  header.rank = rank;
  std::vector<Step> steps;
  std::vector<Region> regions;
  std::vector<Computation> computations;
  Dependencies after;
  std::optional<std::uint32_t> computed;  // the last computation
  for (const Operation& its : operations) {
    if (its.kind == StepKind::send) header.scratch = std::max(header.scratch, bytes_of(its));
  }
  for (const Operation& its : operations) {
    Step step;
    step.kind = its.kind;
    step.lane = static_cast<std::uint8_t>(its.lane);
    step.first = static_cast<std::uint32_t>(regions.size());
    std::set<std::uint32_t> waits(its.after.begin(), its.after.end());
    if (its.kind == StepKind::compute) {
      if (computed) waits.insert(*computed);
      computed = static_cast<std::uint32_t>(steps.size());
      step.peer = static_cast<std::int32_t>(computations.size());
      computations.push_back({"calc", ComputationKind::other, its.amount});
    } else {
      step.peer = its.peer;
      step.parts[0] = 1;
      const bool sends = its.kind == StepKind::send;
      regions.push_back(contiguous(Buffer::scratch, sends ? 0 : header.scratch, bytes_of(its)));
      if (!sends) header.scratch += bytes_of(its);
    }
    for (const std::uint32_t other : waits) {
      step.round = std::max(step.round, steps[other].round + steps[other].message());
    }
    after.list.insert(after.list.end(), waits.begin(), waits.end());
    after.end_step();
    steps.push_back(step);
  }
  return Schedule(header, std::move(steps), std::move(regions), std::move(after),
                  std::move(computations));
}

}  // namespace

std::vector<Schedule> parse_goal(std::string_view text, const std::string& origin) {
  const std::string plain = without_comments(text);
  std::vector<Operations> ranks = Reader(plain, origin).read();
  for (Operations& operations : ranks) operations = sorted(operations, origin);
  const Lanes lanes(ranks, origin);
  std::vector<Schedule> schedules;
  for (int r = 0; r < static_cast<int>(ranks.size()); ++r) {
    schedules.push_back(
        schedule_of(ranks[static_cast<std::size_t>(r)], r, static_cast<int>(ranks.size())));
  }
  return schedules;
}

}  // namespace baton::diagrams
