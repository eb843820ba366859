#include "workload.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "base/line_reader.hpp"
#include "cli/common/machine.hpp"
#include "cli/common/text.hpp"

namespace baton::cli::run {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_elements = std::int64_t{1} << 48;

/// The words of a line; brackets and what is in them are one word.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  bool inside = false, open = false;
  for (const char c : line) {
    const bool blank = c == ' ' || c == '\t' || c == '\r';
    if (blank && !inside) {
      open = false;
      continue;
    }
    if (c == '[') inside = true;
    if (c == ']') inside = false;
    if (blank) continue;
    if (!open) words.emplace_back();
    open = true;
    words.back() += c;
  }
  return words;
}

/// Reads one workload.
class Reader : base::LineReader {
 public:
  Reader(std::string_view text, const std::string& origin, int ranks,
         const WorkloadOverrides& overrides)
      : LineReader(text, origin),
        stem_(fs::path(origin).stem().string()),
        ranks_(ranks),
        overrides_(overrides) {}

  std::vector<Job> read() {
    bool opened = false;
    while (next_line()) {
      words_ = words_of(rest());
      at_ = 1;
      if (!opened) {
        if (words_.size() != 2 || words_[0] != "baton-workload" || words_[1] != "1") {
          refuse("\"baton-workload 1\"", fmt::format("{}", fmt::join(words_, " ")));
        }
        opened = true;
      } else if (words_[0] == "group") {
        group_ = next("a name of the group");
        last();
      } else {
        at_ = 0;
        data();
      }
    }
    if (!opened) refuse("\"baton-workload 1\"", "nothing");
    for (Job& job : jobs_) {
      for (Case& subject : job.cases) subject.times = std::max<std::int64_t>(subject.times, 1);
    }
    return std::move(jobs_);
  }

 private:
  const std::string& next(std::string_view expected) {
    if (at_ == words_.size()) refuse(expected, "the end of the line");
    return words_[at_++];
  }
  void last() const {
    if (at_ < words_.size()) refuse("the end of the line", words_[at_]);
  }
  std::int64_t number(std::string_view word, std::string_view expected) const {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) refuse(expected, word);
    return value;
  }
  int small(std::string_view expected, std::int64_t least, std::int64_t most) {
    const std::string& word = next(expected);
    const std::int64_t value = number(word, expected);
    if (value < least || value > most) refuse(expected, word);
    return static_cast<int>(value);
  }

  /// "2048", "2048/P" or "2048*P"
  std::int64_t extent(std::string_view word) const {
    constexpr auto expected = "an extent like 2048, 2048/P or 2048*P";
    const auto letter = word.find('P');
    const std::string_view digits =
        letter == std::string_view::npos || letter == 0 ? word : word.substr(0, letter - 1);
    const std::int64_t value = number(digits, expected);
    if (value < 0 || (letter != std::string_view::npos && letter + 1 != word.size())) {
      refuse(expected, word);
    }
    if (letter == std::string_view::npos) return value;
    if (word[letter - 1] == '*' && value <= most_elements / ranks_) return value * ranks_;
    if (word[letter - 1] == '*') refuse_large();
    if (word[letter - 1] != '/') refuse(expected, word);
    if (value % ranks_ != 0) {
      refuse(fmt::format("an extent that divides by {} ranks", ranks_), word);
    }
    return value / ranks_;
  }
  Shape shape(std::string_view word) const {
    if (word.size() < 3 || word.front() != '[' || word.back() != ']') {
      refuse("a shape like [768, 2304]", word);
    }
    word = word.substr(1, word.size() - 2);
    std::vector<std::int64_t> extents;
    for (;;) {
      const auto comma = word.find(',');
      extents.push_back(extent(word.substr(0, comma)));
      if (comma == std::string_view::npos) break;
      word.remove_prefix(comma + 1);
    }
    std::int64_t elements = ranks_;  // all ranks together may have so many times the shape
    for (const std::int64_t extent : extents) {
      if (extent > most_elements / elements) refuse_large();
      elements *= std::max<std::int64_t>(extent, 1);
    }
    return here([&] { return Shape(std::span<const std::int64_t>(extents)); });
  }
  [[noreturn]] void refuse_large() const {
    refuse(fmt::format("at most {} elements on all ranks", most_elements), "more");
  }

  /// NAME COLLECTIVE SHAPE TYPE [OP] [root R] [scatter D] [gather D] [times N]
  void data() {
    const std::string name = next("a name");
    const Collective own = here([&] { return collective_named(next("a collective")); });
    const Shape shape = this->shape(next("a shape like [768, 2304]"));
    const Datatype written = here([&] { return datatype_named(next("a datatype")); });
    const Datatype type = overrides_.type.value_or(written);
    OpKind op = OpKind::sum;
    int root = 0, scatter = 0, gather = 0;
    std::int64_t times = 1;
    bool dims = false;
    while (at_ < words_.size()) {
      const std::string& word = words_[at_++];
      if (word == "times") {
        times = small("a number of times of at least 1", 1, 1'000'000'000);
      } else if (word == "root") {
        root = small("a rank", 0, 1'000'000'000);
      } else if (word == "scatter") {
        scatter = small("a dimension", -Shape::max_rank, Shape::max_rank - 1);
        dims = true;
      } else if (word == "gather") {
        gather = small("a dimension", -Shape::max_rank, Shape::max_rank - 1);
        dims = true;
      } else {
        op = here([&] { return op_named(word); });
      }
    }
    op = overrides_.op.value_or(op);
    root = overrides_.root.value_or(root);
    if (dims && own != Collective::all_to_all && own != Collective::all_gather) {
      refuse("dimensions for an all_to_all or all_gather only", baton::name(own));
    }
    if (dims) {
      if (!overrides_.collectives.empty() &&
          std::ranges::find(overrides_.collectives, own) == overrides_.collectives.end()) {
        return;
      }
      return add(name, times,
                 here([&] { return tensor_case(own, ranks_, shape, type, scatter, gather); }));
    }
    const std::vector<Collective> just_own{own};
    for (const Collective c : overrides_.collectives.empty() ? just_own : overrides_.collectives) {
      // To a barrier, the size of another collective's data means nothing.
      const bool counts = c != Collective::barrier || own == Collective::barrier;
      add(name, counts ? times : 0,
          here([&] { return flat_case(c, ranks_, shape.elements(), type, op, root); }));
    }
  }

  /// Data of one size is run once, and counts as often as it occurs.
  void add(const std::string& name, std::int64_t times, Case subject) {
    const std::string job = group_.empty() ? stem_ : fmt::format("{} {}", stem_, group_);
    auto place = std::ranges::find_if(jobs_, [&](const Job& j) {
      const Case& first = j.cases[0];
      return j.name == job && first.collective() == subject.collective() &&
             first.type == subject.type && first.op == subject.op &&
             first.problem.root == subject.problem.root;
    });
    if (place == jobs_.end()) {
      jobs_.push_back({job, {}});
      place = jobs_.end() - 1;
    }
    subject.name = name;
    subject.times = times;
    for (Case& known : place->cases) {
      const bool same =
          !known.tensor && !subject.tensor && known.problem.count == subject.problem.count;
      if (!same) continue;
      known.times += times;
      known.name = fmt::format("{} and others", known.name.substr(0, known.name.find(' ')));
      return;
    }
    place->cases.push_back(std::move(subject));
  }

  std::string stem_;
  int ranks_;
  const WorkloadOverrides& overrides_;
  std::vector<std::string> words_;
  std::size_t at_ = 0;
  std::string group_;
  std::vector<Job> jobs_;
};

/// Where the program's own workloads are: as built, and as installed.
std::vector<fs::path> workload_folders() {
  const fs::path folder = program_folder();
  return {folder / "lib/cli/run/workloads", folder.parent_path() / "share/baton/workloads"};
}

}  // namespace

std::vector<Job> parse_workload(std::string_view text, const std::string& origin, int ranks,
                                const WorkloadOverrides& overrides) {
  return Reader(text, origin, ranks, overrides).read();
}

std::string workload_text(const std::string& file) {
  if (fs::exists(file)) return file_text(file);
  std::set<std::string> known;
  for (const fs::path& folder : workload_folders()) {
    if (const fs::path own = folder / (file + ".txt"); fs::exists(own)) {
      return file_text(own.string());
    }
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder, none)) {
      if (entry.path().extension() == ".txt") known.insert(entry.path().stem().string());
    }
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("expected a workload, a file or one of {}, found \"{}\"",
                          fmt::join(known, ", "), file));
}

}  // namespace baton::cli::run
