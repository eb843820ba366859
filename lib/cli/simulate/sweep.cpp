#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/common/text.hpp"
#include "simulation.hpp"

namespace baton::cli::simulate {
namespace {

/// The quantity that is swept, and its values.
struct Axis {
  bool ranks = false;
  std::vector<std::int64_t> values;
};

std::vector<std::int64_t> rank_counts(const std::string& text) {
  constexpr std::int64_t most = 1 << 20;
  try {
    auto counts = CollectiveOptions{.bytes = text}.sizes();
    if (counts.front() >= 1 && counts.back() <= most) return counts;
  } catch (const Error&) {  // says nothing of ranks
  }
  refuse(
      fmt::format("--sweep: expected ranks=FIRST:LAST with 1 <= FIRST <= LAST <= {}, found "
                  "\"ranks={}\"",
                  most, text));
}

Axis axis_of(const std::string& text) {
  const std::string range = text.substr(text.find('=') + 1);
  if (text.starts_with("ranks=")) return {true, rank_counts(range)};
  if (text.starts_with("bytes=")) return {false, CollectiveOptions{.bytes = range}.sizes()};
  refuse(fmt::format("--sweep: expected ranks=FIRST:LAST or bytes=FIRST:LAST, found \"{}\"", text));
}

struct Cell {
  const Algorithm* algorithm = nullptr;
  std::int64_t segment = 0;
  std::int64_t ns = 0;
};

/// From a value of the axis on.
struct Winner {
  std::int64_t from = 0;
  const Algorithm* algorithm = nullptr;
};

class Sweep {
 public:
  explicit Sweep(const Setting& setting)
      : setting_(setting),
        collective_(collective_named(setting.command.data.collective)),
        axis_(axis_of(setting.command.sweep)),
        bytes_(setting.command.data.sizes().front()) {
    if (axis_.ranks && !setting.command.data.hosts.empty()) {
      refuse("--sweep: expected --per-host for several numbers of ranks, found --hosts");
    }
    if (setting_.command.data.algorithm.empty()) setting_.command.data.algorithm = "all";
  }

  void measure() {
    Progress progress(static_cast<std::int64_t>(axis_.values.size()), setting_.command.progress);
    for (const std::int64_t value : axis_.values) {
      progress.show(static_cast<std::int64_t>(points_.size()), label(value));
      const Case subject = case_at(value);
      std::vector<Cell> cells;
      for (const Algorithm* algorithm : setting_.algorithms(subject.problem)) {
        if (const Cell cell = at(subject, *algorithm); cell.algorithm) cells.push_back(cell);
      }
      points_.push_back(std::move(cells));
    }
    find_winners();
  }

  void print() const {
    const std::string what =
        axis_.ranks ? human_bytes(bytes_) : fmt::format("{} ranks", setting_.command.ranks());
    fmt::print("{} of {}, {}\n{}\n\n", name(collective_), what, name(setting_.type),
               summary(setting_.network));
    const auto columns = algorithms();
    fmt::print("{:>10}", axis_.ranks ? "ranks" : "bytes");
    for (const Algorithm* a : columns) fmt::print("  {:>{}}", a->name, width(*a));
    fmt::print("\n");
    for (std::size_t i = 0; i < points_.size(); ++i) {
      fmt::print("{:>10}", label(axis_.values[i]));
      const Cell* least = best(points_[i]);
      for (const Algorithm* a : columns) {
        const Cell* cell = find(points_[i], a);
        const std::string text =
            cell ? human_time(static_cast<double>(cell->ns) * 1e-3) + (cell == least ? "*" : " ")
                 : "- ";
        fmt::print("  {:>{}}", text, width(*a));
      }
      fmt::print("\n");
    }
    fmt::print("\n");
    for (const Winner& winner : winners_) {
      fmt::print("{} from {} on\n", winner.algorithm->name, label(winner.from));
    }
  }

  void print_json() const {
    std::vector<Json> rows;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      for (const Cell& cell : points_[i]) {
        rows.push_back(
            Json::object({{"collective", name(collective_)},
                          {"ranks", axis_.ranks ? axis_.values[i] : setting_.command.ranks()},
                          {"asked_bytes", axis_.ranks ? bytes_ : axis_.values[i]},
                          {"algorithm", cell.algorithm->name},
                          {"segment_bytes", cell.segment},
                          {"time_us", static_cast<double>(cell.ns) * 1e-3}}));
      }
    }
    const auto json_of_winner = [](const Winner& winner) {
      return Json::object({{"from", winner.from}, {"algorithm", winner.algorithm->name}});
    };
    cli::print(Json::object({{"sweep", axis_.ranks ? "ranks" : "bytes"},
                             {"collective", name(collective_)},
                             {"type", name(setting_.type)},
                             {"network", setting_.network.name},
                             {"parameters", summary(setting_.network)},
                             {"best", mapped(winners_, json_of_winner)},
                             {"rows", rows}}));
  }

 private:
  std::string label(std::int64_t value) const {
    return axis_.ranks ? fmt::format("{}", value) : human_bytes(value);
  }
  static int width(const Algorithm& algorithm) {
    return std::max(10, static_cast<int>(algorithm.name.size()) + 1);
  }
  Case case_at(std::int64_t value) const {
    return axis_.ranks ? setting_.subject(collective_, static_cast<int>(value), bytes_)
                       : setting_.subject(collective_, setting_.command.ranks(), value);
  }
  /// Without an algorithm where it takes more memory than there is.
  Cell at(const Case& subject, const Algorithm& algorithm) const {
    const Forecast found = forecast(setting_, subject, algorithm);
    if (!found.refused.empty()) return {};
    return {&algorithm, found.segment, found.prediction.total};
  }
  static const Cell* find(const std::vector<Cell>& cells, const Algorithm* algorithm) {
    const auto found = std::ranges::find(cells, algorithm, &Cell::algorithm);
    return found == cells.end() ? nullptr : &*found;
  }
  static const Cell* best(const std::vector<Cell>& cells) {
    const auto least = std::ranges::min_element(cells, {}, &Cell::ns);
    return least == cells.end() ? nullptr : &*least;
  }
  /// In the registry's order.
  std::vector<const Algorithm*> algorithms() const {
    auto all = setting_.registry.of(collective_);
    std::erase_if(all, [&](const Algorithm* a) {
      return std::ranges::none_of(points_, [&](const auto& cells) { return find(cells, a); });
    });
    return all;
  }

  void find_winners() {
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const Cell* least = best(points_[i]);
      if (!least) continue;
      if (winners_.empty()) {
        winners_.push_back({axis_.values[i], least->algorithm});
      } else if (const Algorithm* before = winners_.back().algorithm; before != least->algorithm) {
        winners_.push_back(
            {crossover(axis_.values[i - 1], axis_.values[i], *before, *least->algorithm),
             least->algorithm});
      }
    }
  }

  /// About where `after` becomes faster than `before`, which it is at `high` and not at `low`.
  std::int64_t crossover(std::int64_t low, std::int64_t high, const Algorithm& before,
                         const Algorithm& after) const {
    constexpr int halvings = 4;
    for (int i = 0; i < halvings && high > low + 1; ++i) {
      const std::int64_t middle = low + (high - low) / 2;
      const Case subject = case_at(middle);
      const bool serves = refusal(before, subject.problem).empty();
      if (!refusal(after, subject.problem).empty() ||
          (serves && at(subject, before).ns <= at(subject, after).ns)) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return high;
  }

  Setting setting_;
  Collective collective_;
  Axis axis_;
  std::int64_t bytes_;
  std::vector<std::vector<Cell>> points_;  ///< of each value
  std::vector<Winner> winners_;
};

}  // namespace

int sweep(const Setting& setting) {
  Sweep sweep(setting);
  sweep.measure();
  setting.command.json ? sweep.print_json() : sweep.print();
  return 0;
}

}  // namespace baton::cli::simulate
