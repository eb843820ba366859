#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "diagrams.hpp"
#include "drawio.hpp"
#include "palette.hpp"
#include "text.hpp"
#include "view.hpp"

namespace baton::diagrams {

std::string drawio_file(const std::string& title, const std::string& cells) {
  return fmt::format(
      "<mxfile host=\"baton\">\n<diagram id=\"timeline\" name=\"{}\">\n"
      "<mxGraphModel grid=\"0\" page=\"0\" math=\"0\" shadow=\"0\">\n<root>\n<mxCell id=\"0\"/>\n"
      "<mxCell id=\"1\" parent=\"0\"/>\n{}</root>\n</mxGraphModel>\n</diagram>\n</mxfile>\n",
      escaped(title), cells);
}

std::string drawio_vertex(const std::string& id, const std::string& parent, const std::string& text,
                          const std::string& style, const Place& at) {
  return fmt::format(
      "<mxCell id=\"{}\" parent=\"{}\" vertex=\"1\" value=\"{}\" style=\"{}\">"
      "<mxGeometry x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
      "as=\"geometry\"/></mxCell>\n",
      id, parent, escaped(text), style, at.x, at.y, at.width, at.height);
}

std::string drawio_edge(const std::string& id, const std::string& from, const std::string& to,
                        const std::string& text, const std::string& style, double along) {
  const std::string place = along == 0 ? "" : fmt::format("x=\"{:.2f}\" ", along);
  return fmt::format(
      "<mxCell id=\"{}\" parent=\"1\" edge=\"1\" source=\"{}\" target=\"{}\" value=\"{}\" "
      "style=\"{}\"><mxGeometry {}relative=\"1\" as=\"geometry\"/></mxCell>\n",
      id, from, to, escaped(text), style, place);
}

std::string drawio(const Timeline& timeline, const Options& options) {
  const View view(timeline, options);
  const Palette palette(view.origins);
  constexpr double left = 90, top = 90, pitch = 70, high = 14, dot = 6;
  const double wide = std::max<double>(options.width - 120, 900);
  const auto x = [&](std::int64_t ns) {  // from the left of a row
    const double part = static_cast<double>(std::clamp(ns, view.from, view.to) - view.from);
    return left + wide * part / static_cast<double>(view.to - view.from);
  };
  std::string cells;
  const std::string plain = "text;html=1;align=left;verticalAlign=middle;fontSize=";
  cells +=
      drawio_vertex("title", "1", heading(timeline), plain + "20;fontStyle=1;", {0, 0, 900, 30});
  cells += drawio_vertex("what", "1", what_text(timeline) + " · " + source_text(timeline),
                         plain + "13;fontColor=#3d4a5a;", {0, 34, 900, 22});
  for (int row = 0; row < view.rows(); ++row) {
    const int rank = view.ranks[static_cast<std::size_t>(row)];
    const std::string id = fmt::format("rank{}", rank);
    cells += drawio_vertex(id, "1", "", "group;connectable=0;",
                           {0, top + row * pitch, left + wide + 20, pitch - 10});
    const double middle = (pitch - 10) / 2;
    cells += drawio_vertex(id + "name", id, fmt::format("rank {}", rank),
                           "text;html=1;align=right;verticalAlign=middle;fontSize=13;",
                           {0, middle - 12, left - 14, 24});
    cells += drawio_vertex(id + "lane", id, "",
                           "rounded=0;strokeColor=none;fillColor=#dfe5ec;connectable=0;",
                           {left, middle - high / 2, wide, high});
    for (const std::uint32_t e : view.events[static_cast<std::size_t>(row)]) {
      const Event& event = view.event(e);
      const Span work = work_of(event);
      if (event.message() || work.to <= work.from) continue;
      const std::string fill = colour_of(timeline, event, palette).hex();
      const bool copies = event.kind == StepKind::copy;
      const bool computes = event.kind == StepKind::compute;
      cells += drawio_vertex(
          fmt::format("work{}", e), id, computes ? chunk_text(timeline, event) : "",
          fmt::format("rounded=0;fillColor={};strokeColor={};{}", copies ? "#ffffff" : fill, fill,
                      computes ? "fontColor=#ffffff;fontSize=10;" : ""),
          {x(work.from), middle - high / 2, std::max(x(work.to) - x(work.from), 1.0), high});
    }
  }
  for (std::size_t i = 0; i < view.messages.size(); ++i) {
    const Event& send = view.event(view.messages[i].send);
    const Event& recv = view.event(view.messages[i].recv);
    const std::string colour = colour_of(timeline, send, palette).hex();
    const std::string style = fmt::format("ellipse;strokeColor=#ffffff;fillColor={};", colour);
    const double middle = (pitch - 10) / 2;
    const auto end = [&](const char* what, const Event& event, std::int64_t when) {
      std::string id = fmt::format("{}{}", what, i);
      cells += drawio_vertex(id, fmt::format("rank{}", event.rank), "", style,
                             {x(when) - dot / 2, middle - dot / 2, dot, dot});
      return id;
    };
    const std::string from = end("sent", send, send.posted), to = end("there", recv, recv.end);
    cells += drawio_edge(
        fmt::format("message{}", i), from, to, chunk_text(timeline, send),
        fmt::format("html=1;endArrow=block;endSize=5;strokeWidth=1.6;strokeColor={};fontSize=11;"
                    "labelBackgroundColor=#ffffff;",
                    colour));
  }
  return drawio_file(heading(timeline), cells);
}

}  // namespace baton::diagrams
