#include "chunks.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>

namespace baton::timing {
namespace {

constexpr std::size_t most_runs = std::size_t{1} << 24;      // of all steps
constexpr std::int64_t most_blocks = std::int64_t{1} << 16;  // of one region

}  // namespace

class Tracer {
 public:
  Tracer(const Steps& steps, std::span<const Schedule> schedules, Flow& flow)
      : steps_(steps), schedules_(schedules), flow_(flow), held_(schedules.size()) {}

  bool trace() {
    flow_.begin_.assign(steps_.count(), 0);
    flow_.end_.assign(steps_.count(), 0);
    place_inputs();
    for (const std::uint32_t s : steps_.order()) {
      if (!run(s)) return false;
    }
    cut();
    return true;
  }

 private:
  using Buffers = std::array<Places, 5>;  // by Buffer

  Places& held(std::size_t rank, Buffer buffer) {
    return held_[rank][static_cast<std::size_t>(buffer)];
  }
  const Schedule::Header& header(std::size_t rank) const { return schedules_[rank].header(); }
  Collective collective() const { return header(0).collective; }

  void place_inputs() {
    const std::size_t ranks = schedules_.size();
    const Collective what = collective();
    base_.assign(ranks + 1, 0);
    if (gathering(what)) {
      place_contributions();
    } else if (what == Collective::all_to_all) {
      for (std::size_t r = 0; r < ranks; ++r) {
        const bool aliased = header(r).in_place;
        const std::int64_t extent = aliased ? header(r).output : header(r).input;
        held(r, aliased ? Buffer::output : Buffer::input).write(0, {base_[r], extent});
        base_[r + 1] = base_[r] + extent;
      }
    } else {
      for (std::size_t r = 0; r < ranks; ++r) {
        held(r, Buffer::input).write(0, {0, header(r).input});
        if (!scattering(what)) held(r, Buffer::output).write(0, {0, header(r).output});
        extent_ = std::max({extent_, header(r).input, header(r).output});
      }
    }
  }

  /// Rank r contributes [base_[r], base_[r + 1]). A rank in place has no input: such ranks share
  /// the remaining output in equal parts.
  void place_contributions() {
    const std::size_t ranks = schedules_.size();
    std::int64_t given = 0, without = 0, output = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
      const bool aliased = header(r).input == 0 && header(r).in_place && header(r).output > 0;
      given += header(r).input;
      without += aliased ? 1 : 0;
      output = std::max(output, header(r).output);
    }
    const std::int64_t share = without > 0 ? (output - given) / without : 0;
    for (std::size_t r = 0; r < ranks; ++r) {
      const bool aliased = header(r).input == 0 && header(r).in_place && header(r).output > 0;
      const std::int64_t count = aliased ? share : header(r).input;
      held(r, Buffer::input).write(0, {base_[r], header(r).input});
      if (aliased) held(r, Buffer::output).write(base_[r], {base_[r], count});
      base_[r + 1] = base_[r] + count;
    }
    if (without > 0 && share * without != output - given) {  // blocks that the headers do not tell
      base_.clear();
      extent_ = output;
      for (std::size_t r = 0; r < ranks; ++r) {
        held(r, Buffer::output).write(0, {0, header(r).output});
      }
    }
  }

  bool read(std::size_t rank, std::span<const Region> regions, Runs& out) {
    for (const Region& region : regions) {
      if (region.count > most_blocks) return false;
      for (std::int64_t i = 0; i < region.count; ++i) {
        held(rank, region.buffer).read(region.offset + i * region.stride, region.block, out);
      }
    }
    return true;
  }

  bool write(std::size_t rank, std::span<const Region> regions, const Runs& runs) {
    std::size_t at = 0;
    std::int64_t done = 0;  // of runs[at]
    for (const Region& region : regions) {
      if (region.count > most_blocks) return false;
      for (std::int64_t i = 0; i < region.count; ++i) {
        std::int64_t offset = region.offset + i * region.stride;
        for (std::int64_t left = region.block; left > 0 && at < runs.size();) {
          const std::int64_t length = std::min(left, runs[at].length - done);
          const bool known = runs[at].place != Run::unknown;
          held(rank, region.buffer)
              .write(offset, {known ? runs[at].place + done : Run::unknown, length});
          offset += length;
          left -= length;
          if ((done += length) == runs[at].length) ++at, done = 0;
        }
      }
    }
    return true;
  }

  bool run(std::uint32_t s) {
    const Step& step = steps_.step(s);
    const Schedule& schedule = steps_.schedule(s);
    const auto rank = static_cast<std::size_t>(steps_.rank(s));
    Runs runs;
    bool followed = true;
    switch (step.kind) {
      case StepKind::send:
      case StepKind::divide:
        followed = read(rank, schedule.operand(step, 0), runs);
        break;
      case StepKind::recv: {
        const auto arrived = flow_.runs(steps_.partner(s));
        runs.assign(arrived.begin(), arrived.end());
        break;
      }
      case StepKind::copy:
        followed = read(rank, schedule.operand(step, 1), runs);
        break;
      case StepKind::fold: {
        Runs right;
        followed = read(rank, schedule.operand(step, 1), runs) &&
                   read(rank, schedule.operand(step, 2), right);
        runs = either(runs, right);
        break;
      }
      case StepKind::compute:  // writes data of its own
        return true;
    }
    if (followed && step.kind != StepKind::send && step.kind != StepKind::divide) {
      followed = write(rank, schedule.operand(step, 0), runs);
    }
    flow_.begin_[s] = flow_.runs_.size();
    flow_.runs_.insert(flow_.runs_.end(), runs.begin(), runs.end());
    flow_.end_[s] = flow_.runs_.size();
    return followed && flow_.runs_.size() <= most_runs;
  }

  void cut() {
    const Collective what = collective();
    if (what == Collective::barrier) {
      flow_.naming_ = Naming::token;
    } else if (what == Collective::all_to_all) {
      flow_.naming_ = Naming::pair;
      cut_by_owner();
    } else if (gathering(what) && !base_.empty()) {
      for (std::size_t r = 0; r + 1 < base_.size(); ++r) {
        if (base_[r + 1] > base_[r]) {
          add({base_[r], base_[r + 1] - base_[r], static_cast<std::int64_t>(r)});
        }
      }
    } else {
      if (scattering(what)) cut_by_owner();
      if (flow_.parts_.empty()) cut_by_borders();
    }
    auto& parts = flow_.parts_;
    std::sort(parts.begin(), parts.end(), [](const ChunkPart& a, const ChunkPart& b) {
      return std::tuple(a.place, a.length, a.id) < std::tuple(b.place, b.length, b.id);
    });
    // Overlapping parts mean that the schedule is no such collective: then they name nothing.
    for (std::size_t i = 1; i < parts.size(); ++i) {
      if (parts[i - 1].place + parts[i - 1].length > parts[i].place) {
        parts.clear();
        break;
      }
    }
  }

  void add(ChunkPart part) { flow_.parts_.push_back(part); }

  /// By the rank whose output finally holds it and, for an all_to_all, by the rank that it comes
  /// from.
  void cut_by_owner() {
    const auto ranks = static_cast<std::int64_t>(schedules_.size());
    for (std::int64_t to = 0; to < ranks; ++to) {
      for (const auto& [offset, run] : held(static_cast<std::size_t>(to), Buffer::output).runs()) {
        if (flow_.naming_ != Naming::pair) {
          add({run.place, run.length, to});
          continue;
        }
        for (std::int64_t place = run.place; place < run.place + run.length;) {
          const auto above = std::upper_bound(base_.begin(), base_.end(), place);
          const std::int64_t from = std::distance(base_.begin(), above) - 1;
          const std::int64_t end = std::min(*above, run.place + run.length);
          add({place, end - place, from * ranks + to});
          place = end;
        }
      }
    }
  }

  void cut_by_borders() {
    std::vector<std::int64_t> borders{0, extent_};
    struct Sent {
      std::int32_t peer, round;
      std::uint8_t lane;
      std::int64_t place, end;
      auto message() const { return std::tuple(peer, round, lane); }
    };
    std::vector<Sent> sent;
    std::uint32_t s = 0;
    for (const Schedule& schedule : schedules_) {
      sent.clear();
      for (const Step& step : schedule.steps()) {
        const std::uint32_t own = s++;
        if (step.kind != StepKind::send) continue;
        for (const Run& run : flow_.runs(own)) {
          if (run.place == Run::unknown) continue;
          sent.push_back({step.peer, step.round, step.lane, run.place, run.place + run.length});
        }
      }
      std::sort(sent.begin(), sent.end(), [](const Sent& a, const Sent& b) {
        return std::tuple(a.message(), a.place, a.end) < std::tuple(b.message(), b.place, b.end);
      });
      for (std::size_t i = 0; i < sent.size();) {
        std::int64_t end = sent[i].end;
        borders.push_back(sent[i].place);
        std::size_t j = i + 1;
        for (; j < sent.size() && sent[j].message() == sent[i].message() && sent[j].place <= end;
             ++j) {
          end = std::max(end, sent[j].end);
        }
        borders.push_back(end);
        i = j;
      }
    }
    std::sort(borders.begin(), borders.end());
    borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
    for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
      add({borders[i], borders[i + 1] - borders[i], static_cast<std::int64_t>(i)});
    }
  }

  const Steps& steps_;
  std::span<const Schedule> schedules_;
  Flow& flow_;
  std::vector<Buffers> held_;
  std::vector<std::int64_t> base_;  // start of each rank's input in the whole, and the end
  std::int64_t extent_ = 0;
};

std::optional<Flow> Flow::of(const Steps& steps, std::span<const Schedule> schedules) {
  Flow flow;
  if (!Tracer(steps, schedules, flow).trace()) return std::nullopt;
  return flow;
}

}  // namespace baton::timing
