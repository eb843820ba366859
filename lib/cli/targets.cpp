#include "targets.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "baton/options.hpp"

namespace baton::cli {
namespace {

/// One line of a file of targets.
class Line {
 public:
  Line(const std::string& text, std::string place) : place_(std::move(place)) {
    std::istringstream words(text.substr(0, text.find('#')));
    for (std::string word; words >> word;) words_.push_back(word);
  }

  [[noreturn]] void refuse(const std::string& expected, const std::string& found) const {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: expected {}, found \"{}\"", place_, expected, found));
  }
  bool empty() const { return words_.empty(); }
  std::string word(const char* expected) {
    if (next_ == words_.size()) refuse(expected, "");
    return words_[next_++];
  }
  std::string rest() {
    std::string text;
    for (; next_ < words_.size(); ++next_) text += (text.empty() ? "" : " ") + words_[next_];
    return text;
  }
  std::vector<int> numbers() {
    std::vector<int> numbers;
    while (numbers.empty() || next_ < words_.size()) {
      const double n = number("a number of them", 1);
      if (n > 1e6 || n != std::floor(n)) refuse("a whole number", words_[next_ - 1]);
      numbers.push_back(static_cast<int>(n));
    }
    return numbers;
  }
  /// "0.8", "92%"
  double number(const char* expected, double least) {
    const std::string text = word(expected);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    if (error != std::errc() || !(value >= least) || (unit != "" && unit != "%")) {
      refuse(expected, text);
    }
    return unit == "%" ? value / 100 : value;
  }
  std::int64_t bytes(const std::string& text) {
    try {
      return parse_bytes(text);
    } catch (const Error&) {
      refuse("a size such as 4K", text);
    }
  }
  Target target(const std::string& sizes) {
    Target target;
    target.sizes = sizes;
    std::istringstream ranges(sizes);
    for (std::string range; std::getline(ranges, range, ',');) {
      const auto colon = range.find(':');
      const std::int64_t first = bytes(range.substr(0, colon));
      const std::int64_t last = colon == std::string::npos ? first : bytes(range.substr(colon + 1));
      if (last < first) refuse("sizes FIRST:LAST with FIRST <= LAST", range);
      target.ranges.emplace_back(first, last);
    }
    const std::string collective = word("a collective, or all");
    if (collective != "all") target.collective = collective_named(collective);
    const std::string measure = word("ratio, share or geometric_mean");
    if (measure == "share") {
      target.measure = Target::Measure::share;
    } else if (measure == "geometric_mean") {
      target.measure = Target::Measure::geometric_mean;
    } else if (measure != "ratio") {
      refuse("ratio, share or geometric_mean", measure);
    }
    if (next_ < words_.size() && words_[next_].starts_with("MPI_"))
      target.against = words_[next_++];
    target.least = number("the number required", 0);
    if (next_ < words_.size()) refuse("the end of the line", rest());
    return target;
  }

 private:
  std::string place_;
  std::vector<std::string> words_;
  std::size_t next_ = 0;
};

bool speaks_of(const Target& target, const Result& result) {
  return (!target.collective || *target.collective == result.collective) &&
         std::any_of(target.ranges.begin(), target.ranges.end(),
                     [&](const auto& range) {
                       return result.bytes >= range.first && result.bytes <= range.second;
                     }) &&
         (target.against.empty() ? result.first : target.against == result.against);
}

std::string joined(const std::vector<int>& numbers) {
  std::string text;
  for (const int n : numbers) text += (text.empty() ? "" : " or ") + std::to_string(n);
  return text;
}

Judgement judge_one(const Target& target, const std::vector<const Result*>& results) {
  Judgement judgement;
  judgement.ours = results[0]->ours;
  judgement.sizes = static_cast<int>(results.size());
  if (target.measure == Target::Measure::geometric_mean) {
    std::vector<double> medians, lows, highs;
    for (const Result* result : results) {
      medians.push_back(result->ratio.median);
      lows.push_back(result->ratio.low);
      highs.push_back(result->ratio.high);
    }
    judgement.found = {geometric_mean(medians), geometric_mean(lows), geometric_mean(highs), 0};
  } else {
    const auto measured = [&](const Result* result) {
      return target.measure == Target::Measure::share ? result->share : result->ratio;
    };
    const Result* worst = *std::min_element(results.begin(), results.end(), [&](auto* a, auto* b) {
      return measured(a).low < measured(b).low;
    });
    judgement.worst = worst->bytes;
    judgement.found = measured(worst);
  }
  judgement.reached = judgement.found.low >= target.least - allowance;
  return judgement;
}

}  // namespace

Targets parse_targets(const std::string& text, const std::string& file) {
  Targets targets;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    Line words(line, fmt::format("{}:{}", file, number));
    if (words.empty()) continue;
    const std::string first = words.word("");
    if (first == "where") {
      targets.where = words.rest();
    } else if (first == "ranks") {
      targets.ranks = words.numbers();
    } else if (first == "hosts") {
      targets.hosts = words.numbers();
    } else {
      targets.rows.push_back(words.target(first));
    }
  }
  if (targets.rows.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: expected lines that require something, found none", file));
  }
  return targets;
}

std::string mismatch(const Targets& targets, int ranks, int hosts) {
  const auto fits = [](const std::vector<int>& numbers, int n) {
    return numbers.empty() || std::find(numbers.begin(), numbers.end(), n) != numbers.end();
  };
  if (!fits(targets.ranks, ranks)) {
    return fmt::format("expected {} ranks, found {}", joined(targets.ranks), ranks);
  }
  if (!fits(targets.hosts, hosts)) {
    return fmt::format("expected {} hosts, found {}", joined(targets.hosts), hosts);
  }
  return {};
}

std::vector<Judgement> judge(const Target& target, const std::vector<Result>& results) {
  std::vector<std::vector<const Result*>> ways;  // of each way to our collectives
  for (const Result& result : results) {
    if (!speaks_of(target, result)) continue;
    const auto way = std::find_if(ways.begin(), ways.end(),
                                  [&](const auto& w) { return w[0]->ours == result.ours; });
    if (way == ways.end()) {
      ways.push_back({&result});
    } else {
      way->push_back(&result);
    }
  }
  std::vector<Judgement> judgements;
  for (const auto& way : ways) judgements.push_back(judge_one(target, way));
  if (judgements.empty()) judgements.emplace_back();
  return judgements;
}

}  // namespace baton::cli
