#include "naming.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "baton/schedule/text.hpp"
#include "chunks.hpp"
#include "results.hpp"

namespace baton::timing {
namespace {

constexpr std::size_t most_named = std::size_t{4} << 20;  // steps
constexpr std::size_t most_listed = 2;                    // ranges of chunks in one name

/// A step's share of one chunk.
struct Share {
  std::int64_t id = 0;
  std::int64_t first = 0;  // least place
  std::int64_t count = 0;  // elements
  bool operator<(const Share& other) const {
    return std::tie(id, first) < std::tie(other.id, other.first);
  }
};

class Namer {
 public:
  Namer(const Steps& steps, const Flow* flow, int ranks)
      : steps_(steps), flow_(flow), ranks_(ranks), results_(steps) {
    if (flow_ == nullptr) return;
    for (const ChunkPart& part : flow_->parts()) sizes_[part.id] += part.length;
    find_pieces();
  }

  std::vector<std::uint32_t> name(std::vector<ChunkName>& names) {
    std::vector<std::uint32_t> named;
    named.reserve(steps_.count());
    std::map<std::tuple<std::string, int, bool, std::optional<ComputationKind>>, std::uint32_t>
        known;
    const std::vector<bool> reduced = find_reduced();
    for (std::uint32_t s = 0; s < steps_.count(); ++s) {
      ChunkName its = of(s);
      its.reduced = reduced[s];
      const auto [at, added] =
          known.try_emplace({its.text, its.origin, its.reduced, its.computation},
                            static_cast<std::uint32_t>(names.size()));
      if (added) names.push_back(std::move(its));
      named.push_back(at->second);
    }
    return named;
  }

 private:
  /// A step's share of each chunk, ascending; `front` is the chunk that its data begins with.
  void shares_of(std::uint32_t s, std::int64_t& front) {
    shares_.clear();
    const auto& parts = flow_->parts();
    for (const Run& run : flow_->runs(s)) {
      if (run.place == Run::unknown) continue;
      auto part = std::upper_bound(parts.begin(), parts.end(), run.place,
                                   [](std::int64_t p, const ChunkPart& c) { return p < c.place; });
      if (part != parts.begin()) --part;
      for (; part != parts.end() && part->place < run.place + run.length; ++part) {
        const std::int64_t first = std::max(part->place, run.place);
        const std::int64_t end = std::min(part->place + part->length, run.place + run.length);
        if (end <= first) continue;
        if (shares_.empty()) front = part->id;
        shares_.push_back({part->id, first, end - first});
      }
    }
    std::sort(shares_.begin(), shares_.end());
    std::size_t kept = 0;
    for (std::size_t i = 1; i < shares_.size(); ++i) {
      if (shares_[i].id == shares_[kept].id) {
        shares_[kept].count += shares_[i].count;
      } else {
        shares_[++kept] = shares_[i];
      }
    }
    if (!shares_.empty()) shares_.resize(kept + 1);
  }

  bool whole(const Share& share) const { return share.count >= sizes_.at(share.id); }

  /// Numbers the pieces of a chunk in the order of their places.
  void find_pieces() {
    std::int64_t front = 0;
    for (std::uint32_t s = 0; s < steps_.count(); ++s) {
      if (steps_.step(s).kind != StepKind::send) continue;
      shares_of(s, front);
      for (const Share& share : shares_) {
        if (!whole(share)) pieces_.emplace_back(share.id, share.first);
      }
    }
    std::sort(pieces_.begin(), pieces_.end());
    pieces_.erase(std::unique(pieces_.begin(), pieces_.end()), pieces_.end());
  }

  std::int64_t piece(const Share& share) const {
    const auto begin =
        std::lower_bound(pieces_.begin(), pieces_.end(), std::pair(share.id, INT64_MIN));
    const auto above = std::upper_bound(begin, pieces_.end(), std::pair(share.id, share.first));
    return std::max<std::int64_t>(above - begin - 1, 0);
  }

  /// A message is folded on arrival if a fold reads the memory that it was received into.
  std::vector<bool> find_reduced() const {
    std::vector<bool> reduced(steps_.count(), false);
    for (std::uint32_t s = 0; s < steps_.count(); ++s) {
      const Step& fold = steps_.step(s);
      if (fold.kind != StepKind::fold) continue;
      const Schedule& schedule = steps_.schedule(s);
      for (const std::uint32_t d : schedule.dependencies(steps_.index(s))) {
        const Step& recv = schedule.steps()[d];
        if (recv.kind != StepKind::recv) continue;
        const auto arrived = schedule.operand(recv, 0);
        const auto reads = [&](int k) {
          for (const Region& read : schedule.operand(fold, k)) {
            for (const Region& region : arrived) {
              if (overlap(region, read) != Overlap::none) return true;
            }
          }
          return false;
        };
        if (!reads(1) && !reads(2)) continue;
        const std::uint32_t own = steps_.at(steps_.rank(s), d);
        reduced[own] = true;
        if (steps_.partner(own) != Steps::none) reduced[steps_.partner(own)] = true;
      }
    }
    return reduced;
  }

  std::string text_of(std::int64_t id, const Share* piece_of) const {
    if (flow_->naming() == Naming::pair) {
      const std::string pair = fmt::format("{}>{}", id / ranks_, id % ranks_);
      return piece_of ? fmt::format("{}.{}", pair, piece(*piece_of)) : pair;
    }
    if (piece_of && sizes_.size() == 1) return fmt::format("c{}", piece(*piece_of));
    return piece_of ? fmt::format("c{}.{}", id, piece(*piece_of)) : fmt::format("c{}", id);
  }

  ChunkName of(std::uint32_t s) {
    if (const Computation* computation = results_.of(s))
      return {computation->name, 0, false, computation->kind};
    if (flow_ == nullptr) return region(s);
    if (flow_->naming() == Naming::token) {
      const Step& step = steps_.step(s);
      return {"token", step.kind == StepKind::recv ? step.peer : steps_.rank(s), false, {}};
    }
    std::int64_t front = 0;
    shares_of(s, front);
    if (shares_.empty()) return region(s);
    const bool pairs = flow_->naming() == Naming::pair;
    const bool pieces_only = !pairs && sizes_.size() == 1 && !whole(shares_[0]);
    ChunkName its;
    its.origin = static_cast<int>(pairs ? front / ranks_ : pieces_only ? piece(shares_[0]) : front);
    if (!pairs && shares_.size() == sizes_.size() &&
        std::all_of(shares_.begin(), shares_.end(), [&](const Share& c) { return whole(c); })) {
      its.text = "all";
      return its;
    }
    std::size_t listed = 0;
    for (std::size_t i = 0; i < shares_.size();) {
      std::size_t last = i;
      while (!pairs && last + 1 < shares_.size() && whole(shares_[last]) &&
             whole(shares_[last + 1]) && shares_[last + 1].id == shares_[last].id + 1) {
        ++last;
      }
      if (++listed > most_listed) {
        its.text = fmt::format("{} {}", shares_.size(), pairs ? "blocks" : "chunks");
        return its;
      }
      its.text += (its.text.empty() ? "" : ",") +
                  text_of(shares_[i].id, whole(shares_[i]) ? nullptr : &shares_[i]);
      if (last > i) its.text += "-" + text_of(shares_[last].id, nullptr);
      i = last + 1;
    }
    return its;
  }

  ChunkName region(std::uint32_t s) const {
    const Step& step = steps_.step(s);
    const auto regions = steps_.schedule(s).operand(step, 0);
    return {regions.empty() ? std::string("nothing") : print(regions.front()),
            step.kind == StepKind::recv ? step.peer : steps_.rank(s),
            false,
            {}};
  }

  const Steps& steps_;
  const Flow* flow_;
  std::int64_t ranks_;
  Results results_;
  std::map<std::int64_t, std::int64_t> sizes_;                 // of chunks
  std::vector<std::pair<std::int64_t, std::int64_t>> pieces_;  // (chunk, place)
  std::vector<Share> shares_;
};

}  // namespace

StepNames name_steps(std::span<const Schedule> schedules, std::vector<ChunkName>& names) {
  std::size_t count = 0;
  StepNames named;
  for (const Schedule& schedule : schedules) {
    named.begin.push_back(static_cast<std::uint32_t>(count));
    count += schedule.steps().size();
  }
  if (count == 0 || count > most_named) return {};
  const Steps steps(schedules);
  std::optional<Flow> flow;
  if (schedules[0].collective() != Collective::program) flow = Flow::of(steps, schedules);
  named.of = Namer(steps, flow ? &*flow : nullptr, static_cast<int>(schedules.size())).name(names);
  return named;
}

}  // namespace baton::timing
