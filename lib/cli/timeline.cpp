#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>

#include "baton/error.hpp"
#include "baton/explain.hpp"
#include "baton/simulate.hpp"
#include "commands.hpp"
#include "diagrams/diagrams.hpp"
#include "jobs.hpp"
#include "timeline_sources.hpp"
#include "wanted.hpp"

namespace baton::cli {
namespace {

struct TimelineOptions {
  Wanted wanted;
  std::string bytes, segment, type = "f32", operation, network, ranks_shown, output, title;
  std::vector<std::string> from;
  double from_time = 0, to_time = -1;  // µs
  int width = 1200;
  bool rounds = false, split_assemble = false, critical_path = false, force = false;
};

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

/// What is to be drawn, made when it is needed.
struct Subject {
  std::function<Timeline()> timeline;
  std::function<std::vector<Schedule>()> schedules;
  bool split_assemble = false;
};

std::string svg_of(const Subject& subject, const diagrams::Options& how) {
  return subject.split_assemble ? diagrams::split_assemble_svg(subject.schedules())
                                : diagrams::svg(subject.timeline(), how);
}

/// One row for each ending of an output file.
struct Format {
  std::string ending;
  std::string meaning;
  bool split_assemble;  ///< whether it can show how data is split and put together
  std::function<std::string(const Subject&, const diagrams::Options&)> render;
  std::string converted = {};  ///< what rsvg-convert makes of it; empty: written as it is
  bool all = false;            ///< whether it shows all operations of a recording at once
};

const std::vector<Format>& formats() {
  static const std::vector<Format> table = {
      {"svg", "picture", true, svg_of},
      {"png", "the same by rsvg-convert", true, svg_of, "png"},
      {"pdf", "the same by rsvg-convert", true, svg_of, "pdf"},
      {"drawio", "for draw.io", true,
       [](const Subject& subject, const diagrams::Options& how) {
         return subject.split_assemble ? diagrams::split_assemble_drawio(subject.schedules())
                                       : diagrams::drawio(subject.timeline(), how);
       }},
      {"json",
       "Chrome trace events, for ui.perfetto.dev",
       false,
       [](const Subject& subject, const diagrams::Options& how) {
         return diagrams::chrome_trace(subject.timeline(), how);
       },
       {},
       true},
      {"txt", "a walk-through, as a table", false,
       [](const Subject& subject, const diagrams::Options&) {
         return walk_through(subject.schedules());
       }},
      {"goal", "for LogGOPSim", false,
       [](const Subject& subject, const diagrams::Options&) {
         return diagrams::goal(subject.timeline());
       }},
      {"xml", "an algorithm for MSCCL", false,
       [](const Subject& subject, const diagrams::Options&) {
         return diagrams::msccl(subject.schedules());
       }},
  };
  return table;
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

/// The collective of the command line.
TimedCollective collective_of(const TimelineOptions& options) {
  Wanted wanted = options.wanted;
  TimedCollective its;
  const Datatype type = datatype_named(options.type);
  its.element_bytes = size_of(type);
  its.type = options.type;
  const auto elements = static_cast<std::int64_t>(its.element_bytes);
  if (const std::int64_t segment = segment_of(options.segment).value_or(0); segment > 0) {
    wanted.segment = std::max<std::int64_t>(1, segment / elements);
    its.segment = wanted.segment * elements;
  }
  if (wanted.hosts.empty() && !options.network.empty()) {
    // As `baton simulate` does: the network says how many ranks share a host.
    std::string hosts;
    const int each = network_named(options.network).ranks_per_host, size = wanted.size();
    for (int r = 0; each > 0 && each < size && r < size; ++r) {
      hosts += fmt::format("{}{}", r == 0 ? "" : ",", r / each);
    }
    wanted.hosts = hosts;
  }
  if (wanted.schedule.empty() && !wanted.collective.empty()) {
    const Collective collective = collective_named(wanted.collective);
    its.op = reducing(collective) ? wanted.op : "";
    its.hosts = wanted.grouping();
    if (!options.bytes.empty()) {
      const auto sizes = sizes_named(options.bytes);
      if (sizes.size() != 1) refuse("--bytes: expected one size, found several");
      const Exercise exercise = flat_exercise(collective, wanted.size(), sizes[0] / elements, type,
                                              op_named(wanted.op), wanted.root);
      wanted.count = exercise.problem.count;
      its.bytes = exercise.bytes();
    }
  }
  its.schedules = std::make_shared<const std::vector<Schedule>>(schedules_of(wanted));
  return its;
}

/// One operation, or all where that is asked for, or where the format has room for all.
Timeline recording(const TimelineOptions& options, const Format& format) {
  Timeline timeline = recorded(options.from, options.force);
  std::string wanted = options.operation;
  if (wanted.empty() && format.all && options.network.empty()) wanted = "all";
  if (wanted == "all") return timeline;
  if (wanted.empty()) return only(timeline, typical_operation(timeline));
  const auto number = static_cast<std::size_t>(std::stoll(wanted));
  if (number >= timeline.operations.size()) {
    refuse(fmt::format("--operation: expected a number below {}, found {}",
                       timeline.operations.size(), wanted));
  }
  return only(timeline, static_cast<std::uint32_t>(number));
}

/// What a prediction of a recorded operation is to be made of.
TimedCollective collective_of(const Timeline& timeline) {
  if (timeline.operations.size() != 1) {
    refuse(fmt::format("expected one operation of the recording (--operation N), found {}",
                       timeline.operations.size()));
  }
  const TimedOperation& operation = timeline.operations[0];
  TimedCollective its;
  its.schedules = operation.schedules;
  its.type = operation.type;
  its.op = operation.op;
  its.element_bytes = operation.element_bytes;
  its.segment = operation.choice.segment.value_or(0);
  its.bytes = operation.bytes;
  if (!timeline.hosts.empty()) {
    std::vector<int> hosts;
    for (std::size_t r = 0; r < its.schedules->size(); ++r) {
      hosts.push_back(timeline.host_of(operation.rank_of(static_cast<int>(r))));
    }
    its.hosts = host_grouping(hosts);
  }
  return its;
}

void write(const std::string& file, const std::string& text) {
  std::FILE* out = std::fopen(file.c_str(), "wb");
  const bool written =
      out != nullptr && std::fwrite(text.data(), 1, text.size(), out) == text.size();
  if ((out != nullptr && std::fclose(out) != 0) || !written) {
    refuse(fmt::format("{}: expected a file that can be written", file));
  }
}

int timeline(const TimelineOptions& options, Launch& launch) {
  if (launch.rank() != 0) return 0;
  if (options.output.empty() && !options.from.empty()) {
    fmt::print("{}", contents(recorded(options.from, options.force)));
    return 0;
  }
  const Format& format = format_of(options.output);
  if (options.split_assemble && !format.split_assemble) {
    refuse(fmt::format("--split-assemble: expected .svg, .png, .pdf or .drawio, found .{}",
                       format.ending));
  }
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
      prediction = predicted(collective_of(measured), options.network);
      how.prediction = &*prediction;
    }
    subject.schedules = [measured] {
      const TimedCollective its = collective_of(measured);
      return *its.schedules;
    };
    subject.timeline = [measured] { return measured; };
  } else {
    const TimedCollective its = collective_of(options);
    subject.schedules = [its] { return *its.schedules; };
    subject.timeline = [its, &options] {
      Timeline made = options.network.empty() ? rounds_of(its) : predicted(its, options.network);
      made.title = options.title;
      return made;
    };
  }
  const std::string text = format.render(subject, how);
  if (format.converted.empty()) {
    write(options.output, text);
  } else {
    diagrams::convert(text, format.converted, options.output);
  }
  return 0;
}

}  // namespace

void add_timeline(CLI::App& app, Command& command) {
  auto options = std::make_shared<TimelineOptions>();
  CLI::App* sub =
      app.add_subcommand("timeline",
                         "A picture of which rank sends what to whom when, in rounds, predicted or "
                         "recorded");
  auto* collective = sub->add_option("collective", options->wanted.collective, "such as all_reduce")
                         ->type_name("");
  std::string endings;
  for (const Format& format : formats()) {
    endings +=
        fmt::format("{}.{} ({})", endings.empty() ? "" : ", ", format.ending, format.meaning);
  }
  sub->add_option("-o,--output", options->output, "its ending says what is made: " + endings)
      ->type_name("FILE");
  sub->add_option("--algorithm", options->wanted.algorithm, "(default: the reference)")
      ->type_name("A")
      ->needs(collective);
  sub->add_option("--ranks", options->wanted.ranks, "number of ranks (default 4)")
      ->type_name("P")
      ->check(whole_number(1, 65536))
      ->needs(collective);
  auto* bytes = sub->add_option("--bytes", options->bytes, "of the whole vector, such as 1M")
                    ->type_name("N")
                    ->needs(collective);
  sub->add_option("--count", options->wanted.count,
                  "instead, elements: of a vector (default P), of a rank's block (default 1)")
      ->type_name("N")
      ->check(whole_number(0, INT64_MAX))
      ->excludes(bytes)
      ->needs(collective);
  sub->add_option("--dtype", options->type, "datatype (default f32)")->type_name("T");
  sub->add_option("--op", options->wanted.op, "operation (default sum)")->type_name("OP");
  sub->add_option("--root", options->wanted.root, "(default 0)")
      ->type_name("R")
      ->check(whole_number(0, 65535));
  sub->add_option("--segment", options->segment, "bytes per message piece (default: not cut)")
      ->type_name("N");
  sub->add_option("--hosts", options->wanted.hosts,
                  "2x4: 2 hosts of 4 ranks each; 0,1,0,1: the host of each rank (default: one)")
      ->type_name("HOSTS");
  sub->add_flag("--in-place", options->wanted.in_place, "input and output are the same memory");
  auto* schedule =
      sub->add_option("--schedule", options->wanted.schedule,
                      "instead, a schedule of your own (format: lib/schedule/README.md)")
          ->type_name("FILE")
          ->excludes(collective);
  auto* from =
      sub->add_option("--from", options->from,
                      "instead, a recording (or the parts that ranks left): without -o what is in "
                      "it; with\n--network its prediction beside it")
          ->type_name("FILE...")
          ->excludes(collective)
          ->excludes(schedule);
  const auto operation = [](std::string& text) {
    const bool number = !text.empty() && text.size() < 10 &&
                        text.find_first_not_of("0123456789") == std::string::npos;
    return number || text == "all"
               ? std::string()
               : fmt::format("expected a number or \"all\", found \"{}\"", text);
  };
  sub->add_option(
         "--operation", options->operation,
         "one of the recording, from 0 on, or all (default: all in .json; else the one of\n"
         "median duration among those that are like the last)")
      ->type_name("N|all")
      ->needs(from)
      ->check(CLI::Validator(operation, ""));
  sub->add_flag("--force", options->force,
                "takes the times of clocks that were not compared as they are")
      ->needs(from);
  auto* rounds = sub->add_flag("--rounds", options->rounds, "rounds, not times (default)");
  sub->add_option("--network", options->network, "predicted times on this network")
      ->type_name("FILE")
      ->excludes(rounds);
  sub->add_flag("--split-assemble", options->split_assemble,
                "instead: how inputs are cut, which pieces go where, how outputs are put together");
  sub->add_flag("--critical-path", options->critical_path, "highlights what the end waited for");
  sub->add_option("--ranks-shown", options->ranks_shown, "such as 0-7,9 (default: all)")
      ->type_name("RANKS");
  sub->add_option("--from-time", options->from_time, "shows times from here on, in microseconds")
      ->type_name("T");
  sub->add_option("--to-time", options->to_time, "shows times up to here, in microseconds")
      ->type_name("T");
  sub->add_option("--width", options->width, "of the picture, in pixels, at least (default 1200)")
      ->type_name("N")
      ->check(whole_number(400, 10000));
  sub->add_option("--title", options->title,
                  "in place of the collective's and the algorithm's name")
      ->type_name("TEXT");
  sub->footer(
      "Examples:\n"
      "  baton timeline all_reduce --algorithm ring --ranks 8 -o ring.svg\n"
      "  baton timeline broadcast --algorithm binomial --ranks 8 --critical-path -o tree.svg\n"
      "  baton timeline all_to_all --ranks 4 --split-assemble -o all_to_all.pdf\n"
      "  baton timeline all_reduce --algorithm hierarchical --hosts 2x4 -o hosts.drawio\n"
      "  mpirun -n 8 baton run all_reduce --bytes 1M --trace t.trace\n"
      "  baton timeline --from t.trace -o t.svg");
  sub->callback([options, &command] {
    command = [options](Launch& launch) { return timeline(*options, launch); };
  });
}

}  // namespace baton::cli
