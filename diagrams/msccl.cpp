#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "baton/error.hpp"
#include "diagrams.hpp"
#include "msccl.hpp"
#include "text.hpp"

namespace baton::diagrams {

using namespace msccl_form;

namespace {

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::unsupported, sentence);
}

std::string_view msccl_name(Collective collective) {
  if (collective == Collective::barrier) refuse("MSCCL has no barrier");
  if (collective == Collective::program)
    refuse("MSCCL has collectives only, found a program of computations");
  return std::ranges::find(collectives, collective, [](const auto& c) { return c.first; })->second;
}

/// One rank's schedule as thread blocks: one for the sends to each peer in a lane, one for the
/// receives from each, and one for what it does itself.
class Blocks {
 public:
  Blocks(const Schedule& schedule, std::int64_t chunk, bool whole)
      : schedule_(schedule), chunk_(chunk), whole_(whole) {
    const auto steps = schedule.steps();
    for (std::uint32_t i = 0; i < steps.size(); ++i) add(i);
  }

  std::string xml() const {
    const Schedule::Header& h = schedule_.header();
    std::string out;
    const auto put = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
      fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
    };
    put("  <gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"{}\">\n", h.rank,
        h.input / chunk_, h.output / chunk_, (h.scratch + h.slots + chunk_ - 1) / chunk_);
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const ThreadBlock& block = blocks_[b];
      put("    <tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"{}\">\n", b, block.send, block.recv,
          block.channel);
      for (std::size_t s = 0; s < block.steps.size(); ++s) {
        const Instruction& its = block.steps[s];
        put("      <step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" "
            "dstoff=\"{}\" cnt=\"{}\" depid=\"{}\" deps=\"{}\" hasdep=\"{}\"{}/>\n",
            s, its.type, its.from.buffer, its.from.offset, its.to.buffer, its.to.offset,
            its.from.count, its.on_block, its.on_step, its.awaited ? 1 : 0,
            its.source_left ? " left=\"src\"" : "");
      }
      out += "    </tb>\n";
    }
    return out + "  </gpu>\n";
  }

 private:
  std::vector<Piece> pieces(std::span<const Region> regions, bool whole) const {
    std::vector<Piece> out;
    for (const Region& region : regions) {
      char buffer = 's';
      std::int64_t base = 0;
      if (region.buffer == Buffer::input) buffer = 'i';
      if (region.buffer == Buffer::output) buffer = 'o';
      if (region.buffer == Buffer::slot) base = schedule_.header().scratch;
      for (std::int64_t i = 0; i < region.count; ++i) {
        const std::int64_t offset = (base + region.offset + i * region.stride) / chunk_;
        const std::int64_t count = region.block / chunk_;
        if (whole) {
          out.push_back({buffer, offset, count});
          continue;
        }
        for (std::int64_t k = 0; k < count; ++k) out.push_back({buffer, offset + k, 1});
      }
    }
    return out;
  }

  static bool contiguous(std::span<const Region> regions) {
    return regions.size() == 1 && regions[0].contiguous();
  }

  int block_of(const Step& step) {
    const auto key = step.message() ? std::tuple(step.kind, step.peer, static_cast<int>(step.lane))
                                    : std::tuple(StepKind::copy, -1, 0);
    const auto [at, added] = known_.try_emplace(key, static_cast<int>(blocks_.size()));
    if (added) {
      ThreadBlock block;
      block.channel = step.message() ? step.lane : 0;
      if (step.kind == StepKind::send) block.send = step.peer;
      if (step.kind == StepKind::recv) block.recv = step.peer;
      blocks_.push_back(block);
    }
    return at->second;
  }

  /// target = left + right, piece by piece: the target may be part of either.
  void add_fold(const Step& step, std::vector<Instruction>& body) const {
    const auto targets = schedule_.operand(step, 0), left = schedule_.operand(step, 1),
               right = schedule_.operand(step, 2);
    const bool whole = contiguous(targets) && contiguous(left) && contiguous(right);
    const auto into = pieces(targets, whole), a = pieces(left, whole), b = pieces(right, whole);
    for (std::size_t k = 0; k < into.size(); ++k) {
      if (into[k] == a[k]) {
        body.push_back({"re", b[k], into[k]});
        continue;
      }
      if (into[k] != b[k]) body.push_back({"cpy", b[k], into[k]});
      body.push_back({"re", a[k], into[k]});
      body.back().source_left = true;
    }
  }

  void add(std::uint32_t i) {
    const Step& step = schedule_.steps()[i];
    const int b = block_of(step);
    std::vector<Instruction> body;
    const auto each = [&](std::string_view type, int to, int from) {
      const auto targets = schedule_.operand(step, to), sources = schedule_.operand(step, from);
      const bool whole = step.message() ? whole_ : contiguous(targets) && contiguous(sources);
      const auto into = pieces(targets, whole), of = pieces(sources, whole);
      for (std::size_t k = 0; k < into.size(); ++k) body.push_back({type, of[k], into[k]});
    };
    switch (step.kind) {
      case StepKind::send:
        each("s", 0, 0);
        break;
      case StepKind::recv:
        each("r", 0, 0);
        break;
      case StepKind::copy:
        each("cpy", 0, 1);
        break;
      case StepKind::fold:
        add_fold(step, body);
        break;
      case StepKind::divide:
        refuse("MSCCL has no division by the number of ranks, which an average ends with");
      case StepKind::compute:
        refuse("MSCCL has collectives only, found a computation");
    }
    // Other blocks' steps that it waits for: the latest of each, one here, others by steps before.
    std::map<int, std::int64_t> waits;
    for (const std::uint32_t d : schedule_.dependencies(i)) {
      const auto [block, last] = last_[d];
      if (block != b) waits[block] = std::max(waits[block], last);
    }
    for (std::size_t k = 1; k < waits.size(); ++k) body.insert(body.begin(), Instruction{});
    std::size_t k = 0;
    for (const auto& [block, last] : waits) {
      body[k].on_block = block;
      body[k++].on_step = last;
      blocks_[static_cast<std::size_t>(block)].steps[static_cast<std::size_t>(last)].awaited = true;
    }
    auto& steps = blocks_[static_cast<std::size_t>(b)].steps;
    steps.insert(steps.end(), body.begin(), body.end());
    last_.emplace_back(b, static_cast<std::int64_t>(steps.size()) - 1);
  }

  const Schedule& schedule_;
  std::int64_t chunk_;
  bool whole_;  // whether messages are sent whole
  std::vector<ThreadBlock> blocks_;
  std::map<std::tuple<StepKind, int, int>, int> known_;
  std::vector<std::pair<int, std::int64_t>> last_;  // of each step: its block and last instruction
};

}  // namespace

std::string msccl(std::span<const Schedule> schedules) {
  if (schedules.empty()) refuse("MSCCL expects the schedules of all ranks, found none");
  const Schedule::Header& first = schedules[0].header();
  const std::string_view collective = msccl_name(first.collective);
  std::int64_t chunk = 0, most = 0;
  bool whole = true, in_place = false;
  int channels = 1;
  for (const Schedule& schedule : schedules) {
    const Schedule::Header& h = schedule.header();
    chunk = std::gcd(chunk, std::gcd(h.input, h.output));
    // Slots lie behind scratch.
    chunk = std::gcd(chunk, h.scratch);
    most = std::max({most, h.input, h.output});
    channels = std::max(channels, schedule.lanes());
    in_place = in_place || h.in_place;  // rooted: on the root's alone
    for (const Region& region : schedule.regions()) {
      chunk = std::gcd(chunk, std::gcd(region.offset, region.block));
      if (!region.contiguous()) chunk = std::gcd(chunk, region.stride);
    }
    for (const Step& step : schedule.steps()) {
      if (step.message()) {
        const auto regions = schedule.operand(step, 0);
        whole = whole && regions.size() == 1 && regions[0].contiguous();
      }
    }
  }
  if (chunk <= 0) refuse("MSCCL expects data, found none");
  constexpr std::int64_t most_chunks = 4096;
  if (most / chunk > most_chunks) {
    refuse(
        fmt::format("MSCCL expects at most {} chunks, found that regions have only every {} "
                    "elements in common, {} chunks: choose a count that divides",
                    most_chunks, chunk, most / chunk));
  }
  std::string out = fmt::format(
      "<algo name=\"{}\" proto=\"Simple\" nchannels=\"{}\" nchunksperloop=\"{}\" ngpus=\"{}\" "
      "coll=\"{}\" inplace=\"{}\" outofplace=\"{}\"{}>\n",
      escaped(first.algorithm.empty() ? "baton" : first.algorithm), channels, most / chunk,
      schedules.size(), collective, in_place ? 1 : 0, in_place ? 0 : 1,
      first.root > 0 ? fmt::format(" root=\"{}\"", first.root) : "");
  for (const Schedule& schedule : schedules) out += Blocks(schedule, chunk, whole).xml();
  return out + "</algo>\n";
}

}  // namespace baton::diagrams
