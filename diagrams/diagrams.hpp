#pragma once
/// Renderers of timelines and of how data is split and put together: one function per format.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "baton/timeline.hpp"

namespace baton::diagrams {

struct Options {
  int width = 1200;             ///< of a picture, in pixels; long timelines are wider
  std::vector<int> ranks = {};  ///< those that are shown; empty: all
  std::int64_t from = 0;        ///< ns; what ends before is not shown
  std::int64_t to = std::numeric_limits<std::int64_t>::max();  ///< ns; nor what begins after
  bool critical_path = false;                                  ///< highlighted
  std::size_t most_events = 500'000;  ///< of a Chrome trace or a page; it says so if there are more
  /// Shown beside the timeline.
  const Timeline* prediction = nullptr;
  /// Which events of the two belong together; null: those of their first operations, which have the
  /// same schedules.
  const std::vector<JoinedStep>* joined = nullptr;
};

/// A picture: a row per rank, time to the right, an arrow per message. Of more than 32 ranks or 200
/// messages per rank a heat map, of one operation or several.
std::string svg(const Timeline& timeline, const Options& options = {});
/// Whether svg() draws a heat map, which shows neither a prediction nor the critical path.
bool is_heat_map(const Timeline& timeline, const Options& options = {});
/// The same rows and arrows for draw.io, as uncompressed mxGraph XML.
std::string drawio(const Timeline& timeline, const Options& options = {});
/// Chrome trace events, for Perfetto and chrome://tracing.
std::string chrome_trace(const Timeline& timeline, const Options& options = {});

/// A page that shows rows and arrows, of any number of ranks and messages, and the memory of ranks
/// round by round. It needs nothing but a browser.
std::string page(const Timeline& timeline, const Options& options = {});

/// LogGOPSim's input: what every rank sends and receives, what it computes in ns (the recorded or
/// predicted time of folds and copies; none in rounds), and what waits for what. Throws
/// Error(unsupported) where the timeline has several operations.
std::string goal(const Timeline& timeline);
/// An algorithm in MSCCL's XML. Its chunks are the largest common parts of all regions. Throws
/// Error(unsupported), saying why, where a schedule cannot be expressed.
std::string msccl(std::span<const Schedule> schedules);

/// A timeline in the form that an ending names: svg, drawio, json, html or goal. Throws
/// Error(invalid_argument) for another ending.
std::string rendered(std::string_view ending, const Timeline& timeline,
                     const Options& options = {});
/// Writes a timeline in the form that the file's ending names: one of rendered(), png or pdf.
/// Throws Error(invalid_argument) if there is no such form, before anything is written, or the file
/// cannot be written.
void write(const std::string& file, const Timeline& timeline, const Options& options = {});
/// What `file` ends with; throws Error(invalid_argument) unless write() knows it.
std::string ending_of(const std::string& file);

/// A picture of how every rank's input is cut, which pieces go where, and how the output is put
/// together, for an all_to_all, all_gather, reduce_scatter, gather or scatter in equal blocks.
/// Throws Error(unsupported) for others.
std::string split_assemble_svg(std::span<const Schedule> schedules);
std::string split_assemble_drawio(std::span<const Schedule> schedules);

/// Writes an SVG as PNG or PDF, by the program rsvg-convert. Throws Error(unsupported) if there is
/// none, Error(invalid_argument) if it fails.
void convert(const std::string& svg, const std::string& format, const std::string& file);

}  // namespace baton::diagrams
