#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>

#include "baton/explain.hpp"
#include "baton/simulate.hpp"
#include "cli/commands.hpp"
#include "cli/common/case.hpp"
#include "cli/common/collective_options.hpp"
#include "cli/common/text.hpp"
#include "diagrams/diagrams.hpp"
#include "sources.hpp"

namespace baton::cli::timeline {
namespace {

struct TimelineOptions {
  ScheduleRequest request;
  std::string operation, network, ranks_shown, output, title;
  std::vector<std::string> from;
  double from_time = 0, to_time = -1;  // µs
  int width = 1200;
  bool rounds = false, split_assemble = false, critical_path = false, force = false,
       stragglers = false;
};

/// The subject of a picture, made when it is needed.
struct Subject {
  std::function<Timeline()> timeline;
  std::function<TimedOperation()> operation;
  bool split_assemble = false;
};

std::string svg_of(const Subject& subject, const diagrams::Options& how) {
  if (subject.split_assemble) return diagrams::split_assemble_svg(*subject.operation().schedules);
  const Timeline timeline = subject.timeline();
  if ((how.prediction || how.critical_path) && diagrams::is_heat_map(timeline, how)) {
    refuse(fmt::format(
        "{}: expected a picture with arrows, found a heat map; show fewer ranks or less "
        "time by --ranks-shown, --from-time and --to-time",
        how.prediction ? "--network with --from" : "--critical-path"));
  }
  return diagrams::svg(timeline, how);
}

/// A format that the renderers name by its ending.
std::string rendered(std::string_view ending, const Subject& subject,
                     const diagrams::Options& how) {
  return diagrams::rendered(ending, subject.timeline(), how);
}

/// One row for each ending of an output file.
struct Format {
  std::string ending;
  std::string meaning;
  std::function<std::string(const Subject&, const diagrams::Options&)> render;
  std::string converted = {};   ///< what rsvg-convert makes of it; empty: written as it is
  bool all = false;             ///< whether it shows all operations of a recording at once
  bool split_assemble = false;  ///< whether it can show how data is split and put together
  bool part = false;            ///< whether it can show some ranks, or a stretch of time
  bool critical_path = false;   ///< whether it can highlight it
  bool prediction = false;      ///< whether it can show one beside a recording
};

const std::vector<Format>& formats() {
  static const std::vector<Format> table = [] {
    const Format svg{.ending = "svg",
                     .meaning = "picture",
                     .render = svg_of,
                     .split_assemble = true,
                     .part = true,
                     .critical_path = true,
                     .prediction = true};
    Format png = svg, pdf = svg;
    png.ending = png.converted = "png";
    pdf.ending = pdf.converted = "pdf";
    png.meaning = pdf.meaning = "the same by rsvg-convert";
    return std::vector<Format>{
        svg,
        png,
        pdf,
        {.ending = "drawio",
         .meaning = "for draw.io",
         .render =
             [](const Subject& subject, const diagrams::Options& how) {
               return subject.split_assemble
                          ? diagrams::split_assemble_drawio(*subject.operation().schedules)
                          : rendered("drawio", subject, how);
             },
         .split_assemble = true,
         .part = true},
        {.ending = "json",
         .meaning = "Chrome trace events, for ui.perfetto.dev",
         .render = std::bind_front(rendered, "json"),
         .all = true,
         .part = true},
        {.ending = "html",
         .meaning = "a page to zoom, search and play, without a network",
         .render = std::bind_front(rendered, "html"),
         .all = true,
         .part = true,
         .prediction = true},
        {.ending = "txt",
         .meaning = "a walk-through, as a table",
         .render =
             [](const Subject& subject, const diagrams::Options&) {
               const TimedOperation operation = subject.operation();
               WalkThrough how;
               if (!operation.op.empty()) how.op = op_named(operation.op);
               return walk_through(*operation.schedules, how);
             }},
        {.ending = "goal", .meaning = "for LogGOPSim", .render = std::bind_front(rendered, "goal")},
        {.ending = "xml",
         .meaning = "an algorithm for MSCCL",
         .render =
             [](const Subject& subject, const diagrams::Options&) {
               return diagrams::msccl(*subject.operation().schedules);
             }},
    };
  }();
  return table;
}

/// Refuses an option that the format would ignore.
void expect(const std::string& option, const Format& format, bool Format::*has) {
  if (format.*has) return;
  std::vector<std::string> able;
  for (const Format& other : formats())
    if (other.*has) able.push_back("." + other.ending);
  const std::string last = able.back();
  able.pop_back();
  refuse(fmt::format("{}: expected {} or {}, found .{}", option, fmt::join(able, ", "), last,
                     format.ending));
}

void expect_options_of(const TimelineOptions& options, const Format& format) {
  if (options.split_assemble) expect("--split-assemble", format, &Format::split_assemble);
  if (!options.ranks_shown.empty()) expect("--ranks-shown", format, &Format::part);
  if (options.from_time > 0) expect("--from-time", format, &Format::part);
  if (options.to_time >= 0) expect("--to-time", format, &Format::part);
  if (options.critical_path) expect("--critical-path", format, &Format::critical_path);
  if (options.from.empty() || options.network.empty()) return;
  expect("--network with --from", format, &Format::prediction);
  if (options.split_assemble) {
    refuse("--network with --from: expected a timeline, found --split-assemble");
  }
}

const Format& format_of(const std::string& file) {
  const auto dot = file.rfind('.');
  const std::string ending = dot == std::string::npos ? "" : file.substr(dot + 1);
  std::string known;
  for (const Format& format : formats()) {
    if (format.ending == ending) return format;
    known += (known.empty() ? "." : ", .") + format.ending;
  }
  refuse(fmt::format("-o: expected a file that ends with one of {}, found \"{}\"", known, file));
}

/// "0-7,9"
std::vector<int> ranks_named(const std::string& text) {
  std::vector<int> ranks;
  const char* at = text.data();
  const char* end = at + text.size();
  const auto number = [&] {
    int value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || value < 0) {
      refuse(fmt::format("--ranks-shown: expected ranks such as 0-7,9, found \"{}\"", text));
    }
    at = next;
    return value;
  };
  while (at != end) {
    const int first = number();
    int last = first;
    if (at != end && *at == '-') {
      ++at;
      last = number();
    }
    constexpr int most = 1 << 20;
    if (last < first || last >= most || (at != end && (*at++ != ',' || at == end))) {
      refuse(fmt::format("--ranks-shown: expected ranks such as 0-7,9, found \"{}\"", text));
    }
    for (int r = first; r <= last; ++r) ranks.push_back(r);
  }
  return ranks;
}

/// What is wrong with a time in microseconds; "" if nothing is.
std::string wrong_time(const std::string& text) {
  char* end = nullptr;
  const double time = std::strtod(text.c_str(), &end);
  const bool number = !text.empty() && *end == '\0';
  return number && time >= 0 && time <= 1e12
             ? ""
             : fmt::format("expected microseconds from 0 to 1e12, found \"{}\"", text);
}

/// As `baton simulate` does: without --hosts, the network says how many ranks share a host.
void group_by_network(const TimelineOptions& options, CollectiveOptions& data, int size) {
  if (!data.hosts.empty() || options.network.empty()) return;
  const int each = network_named(options.network).ranks_per_host;
  for (int r = 0; each > 0 && each < size && r < size; ++r) {
    data.hosts += fmt::format("{}{}", r == 0 ? "" : ",", r / each);
  }
}

/// The collective of the command line.
TimedCollective collective_of(const TimelineOptions& options) {
  ScheduleRequest request = options.request;
  CollectiveOptions& data = request.data;
  TimedCollective its;
  TimedOperation& operation = its.operation;
  operation.bytes = -1;
  const Datatype type = data.datatype();
  operation.element_bytes = size_of(type);
  operation.type = name(type);
  const auto element = static_cast<std::int64_t>(operation.element_bytes);
  if (const std::int64_t segment = data.segment_bytes().value_or(0); segment > 0) {
    request.segment = std::max<std::int64_t>(1, segment / element);
    operation.choice.segment = request.segment * element;
  }
  if (!data.file().empty()) {
    operation.schedules = std::make_shared<const std::vector<Schedule>>(schedules_of(request));
    const int size = static_cast<int>(operation.schedules->size());
    group_by_network(options, data, size);
    its.hosts = data.grouping(size);
    return its;
  }
  const int size = data.rank_count();
  group_by_network(options, data, size);
  if (!data.collective.empty()) {
    const Collective collective = collective_named(data.collective);
    operation.op = reducing(collective) ? name(data.op_kind()) : "";
    its.hosts = data.grouping(size);
    if (!data.bytes.empty()) {
      const auto sizes = data.sizes();
      if (sizes.size() != 1) refuse("--bytes: expected one size, found several");
      const Case subject =
          sized_cases(collective, size, sizes, type, data.op_kind(), data.root_rank()).front();
      data.count = subject.problem.count;
      operation.bytes = subject.bytes();
    }
  }
  operation.schedules = std::make_shared<const std::vector<Schedule>>(schedules_of(request));
  return its;
}

/// One operation, or all where that is asked for, or where the format has room for all.
Timeline recording(const TimelineOptions& options, const Format& format) {
  Trace trace = recorded(options.from, options.force);
  const Timeline& timeline = trace.timeline;
  std::string wanted = options.operation;
  if (wanted.empty() && format.all && options.network.empty()) wanted = "all";
  if (wanted == "all") return std::move(trace.timeline);
  if (wanted.empty()) return only(timeline, typical_operation(trace));
  const auto number = static_cast<std::size_t>(std::stoll(wanted));
  if (number >= timeline.operations.size()) {
    refuse(fmt::format("--operation: expected a number below {}, found {}",
                       timeline.operations.size(), wanted));
  }
  return only(timeline, static_cast<std::uint32_t>(number));
}

/// The inputs of a recorded operation's prediction.
TimedCollective collective_of(const Timeline& timeline) {
  if (timeline.operations.size() != 1) {
    refuse(fmt::format("expected one operation of the recording (--operation N), found {}",
                       timeline.operations.size()));
  }
  TimedCollective its{timeline.operations[0], nullptr};
  if (!timeline.hosts.empty()) {
    std::vector<int> hosts;
    for (std::size_t r = 0; r < its.operation.schedules->size(); ++r) {
      hosts.push_back(timeline.host_of(its.operation.rank_of(static_cast<int>(r))));
    }
    its.hosts = host_grouping(hosts);
  }
  return its;
}

int timeline(const TimelineOptions& options, Launch& launch) {
  if (launch.rank() != 0) return 0;
  if (options.output.empty() && !options.from.empty()) {
    const Trace all = recorded(options.from, options.force);
    fmt::print("{}", options.stragglers ? stragglers(all) : contents(all));
    return 0;
  }
  const Format& format = format_of(options.output);
  expect_options_of(options, format);
  std::optional<Timeline> prediction;
  diagrams::Options how;
  how.width = options.width;
  how.ranks = ranks_named(options.ranks_shown);
  how.critical_path = options.critical_path;
  how.from = std::llround(options.from_time * 1000);
  if (options.to_time >= 0) how.to = std::llround(options.to_time * 1000);

  Subject subject;
  subject.split_assemble = options.split_assemble;
  if (!options.from.empty()) {
    Timeline measured = recording(options, format);
    measured.title = options.title;
    if (!options.network.empty()) {
      prediction = predicted_beside(measured, collective_of(measured), options.network);
      how.prediction = &*prediction;
    }
    subject.operation = [measured] { return collective_of(measured).operation; };
    subject.timeline = [measured] { return measured; };
  } else {
    const TimedCollective its = collective_of(options);
    subject.operation = [its] { return its.operation; };
    subject.timeline = [its, &options] {
      Timeline made = options.network.empty() ? rounds_of(its) : predicted(its, options.network);
      made.title = options.title;
      return made;
    };
  }
  const std::string text = format.render(subject, how);
  if (format.converted.empty()) {
    write_file("-o", options.output, text);
  } else {
    diagrams::convert(text, format.converted, options.output);
  }
  return 0;
}

}  // namespace

void add_timeline(CommandLine& program) {
  const auto [set, options] = program.add_command(
      "timeline",
      "Draw the messages of all ranks over rounds, over predicted or over recorded times",
      timeline);
  const CollectiveOptionSet data(set, options->request.data);
  const Option collective = data.collective();
  std::string endings;
  for (const Format& format : formats()) {
    endings +=
        fmt::format("{}.{} ({})", endings.empty() ? "" : ", ", format.ending, format.meaning);
  }
  const Option output = set.add("-o,--output", options->output,
                                "the picture; its ending names the format: " + endings)
                            .form("FILE");
  data.algorithm("by name (default: the reference)").needs(collective);
  data.ranks("number of ranks (default 4)", 65536).needs(collective);
  const Option bytes = data.bytes("").needs(collective);
  data.count().excludes({bytes}).needs(collective);
  const Option type = data.type();
  const Option op = data.op();
  const Option root = data.root();
  const Option segment = data.segment("bytes per message piece (default: not cut)");
  const Option hosts = data.hosts();
  const Option in_place = data.in_place();
  data.registry().needs(collective);
  std::vector<Option> sources = data.files_and_goal({collective, op, root, segment});
  sources.insert(sources.end(), {collective, type, op, root, segment, hosts});
  const Option from =
      set.add("--from", options->from,
              "draw a recording (or parts that ranks wrote); without -o list its contents; with\n"
              "--network draw its prediction beside it")
          .form("FILE...")
          .excludes(sources);
  in_place.excludes({sources[0], sources[2], from});
  set.add("--operation", options->operation,
          "one of the recording, from 0 on, or all (default: all in .json; otherwise, among the\n"
          "operations like the last one, the one of median duration)")
      .form("N|all")
      .needs(from)
      .check([](const std::string& text) {
        const bool number = !text.empty() && text.size() < 10 &&
                            text.find_first_not_of("0123456789") == std::string::npos;
        return number || text == "all"
                   ? std::string()
                   : fmt::format("expected a number or \"all\", found \"{}\"", text);
      });
  set.flag("--force", options->force, "use the times of clocks that were not compared unchanged")
      .needs(from);
  set.flag("--stragglers", options->stragglers,
           "list instead, for each kind of collective, the ranks that entered last")
      .needs(from)
      .excludes({output});
  const Option rounds =
      set.flag("--rounds", options->rounds, "rounds, not times (default)").excludes({from});
  set.add("--network", options->network, "predicted times on this network")
      .form("FILE")
      .excludes({rounds});
  const Option split_assemble =
      set.flag("--split-assemble", options->split_assemble,
               "draw instead how inputs are cut, where pieces go, and how outputs are assembled");
  set.flag("--critical-path", options->critical_path,
           "highlight the events that decide the end time")
      .excludes({split_assemble});
  set.add("--ranks-shown", options->ranks_shown, "such as 0-7,9 (default: all)")
      .form("RANKS")
      .excludes({split_assemble});
  set.add("--from-time", options->from_time, "show times from here on, in microseconds")
      .form("T")
      .check(wrong_time)
      .excludes({split_assemble});
  set.add("--to-time", options->to_time, "show times up to here, in microseconds")
      .form("T")
      .check(wrong_time)
      .excludes({split_assemble});
  set.add("--width", options->width, "least width of the picture, in pixels (default 1200)")
      .form("N")
      .range(400, 10000);
  set.add("--title", options->title, "in place of the collective's and the algorithm's name")
      .form("TEXT");
  set.footer(
      "Examples:\n"
      "  baton timeline all_reduce --algorithm ring --ranks 8 -o ring.svg\n"
      "  baton timeline broadcast --algorithm binomial --ranks 8 --critical-path -o tree.svg\n"
      "  baton timeline all_to_all --ranks 4 --split-assemble -o all_to_all.pdf\n"
      "  baton timeline all_reduce --algorithm hierarchical --hosts 2x4 -o hosts.drawio\n"
      "  mpirun -n 8 baton run all_reduce --bytes 1M --trace t.trace\n"
      "  baton timeline --from t.trace -o t.svg\n"
      "  baton timeline --from t.trace --stragglers");
}

}  // namespace baton::cli::timeline
