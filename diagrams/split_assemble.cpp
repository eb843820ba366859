#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "baton/error.hpp"
#include "diagrams.hpp"
#include "drawio.hpp"
#include "palette.hpp"
#include "text.hpp"

namespace baton::diagrams {
namespace {

constexpr int most_ranks = 16;

/// A block of a rank's input, by its place there.
struct Source {
  int rank = 0, place = 0;
};

/// How a collective puts outputs together: what each place of each rank's output is made of.
struct Assembly {
  int cut = 1;                                        ///< blocks of an input
  std::vector<bool> has_input;                        ///< of each rank
  std::vector<std::vector<std::vector<Source>>> out;  ///< by rank and place
  bool by_place = false;  ///< blocks are coloured by their place, not by whose they are
};

Assembly assembly_of(std::span<const Schedule> schedules) {
  if (schedules.empty()) {
    throw Error(ErrorCode::unsupported, "expected the schedules of all ranks, found none");
  }
  const Schedule::Header& first = schedules[0].header();
  const int ranks = static_cast<int>(schedules.size());
  if (ranks > most_ranks) {
    throw Error(ErrorCode::unsupported,
                fmt::format("how data is split and put together is drawn for at most {} ranks, "
                            "found {}",
                            most_ranks, ranks));
  }
  Assembly its;
  its.has_input.assign(schedules.size(), true);
  its.out.resize(schedules.size());
  for (int to = 0; to < ranks; ++to) {
    auto& places = its.out[static_cast<std::size_t>(to)];
    switch (first.collective) {
      case Collective::all_to_all:
        its.cut = ranks;
        for (int from = 0; from < ranks; ++from) places.push_back({{from, to}});
        break;
      case Collective::gather:
        if (to != first.root) break;
        [[fallthrough]];
      case Collective::all_gather:
        for (int from = 0; from < ranks; ++from) places.push_back({{from, 0}});
        break;
      case Collective::scatter:
        its.cut = ranks;
        its.by_place = true;
        its.has_input[static_cast<std::size_t>(to)] = to == first.root;
        places.push_back({{first.root, to}});
        break;
      case Collective::reduce_scatter:
        its.cut = ranks;
        its.by_place = true;
        places.emplace_back();
        for (int from = 0; from < ranks; ++from) places.back().push_back({from, to});
        break;
      default:
        throw Error(ErrorCode::unsupported,
                    fmt::format("how data is split and put together is drawn for all_to_all, "
                                "all_gather, reduce_scatter, gather and scatter, found {}",
                                name(first.collective)));
    }
  }
  return its;
}

/// A rectangle with text in it.
struct Box {
  std::string id;
  Place at;
  Colour fill;
  std::string text;
  bool strong = false;  ///< as strong as its colour, with white text
};
struct Note {
  Place at;
  std::string text;
  int size = 12;
  bool bold = false;
  const char* align = "center";
};
struct Link {
  std::size_t from = 0, to = 0;  // boxes
  Colour colour;
};

/// The same drawing for every format. Columns from left to right: inputs, the same cut, blocks as
/// they have arrived, outputs.
struct Drawing {
  double width = 1200, height = 0;
  std::string title;
  std::vector<Box> boxes;
  std::vector<Note> notes;
  std::vector<Link> links;
  std::vector<Place> cuts, joins;  ///< brackets between a whole and its blocks
};

Drawing draw(std::span<const Schedule> schedules) {
  const Assembly its = assembly_of(schedules);
  const int ranks = static_cast<int>(schedules.size());
  std::size_t most = static_cast<std::size_t>(its.cut);
  for (const auto& places : its.out) most = std::max(most, places.size());

  const double cell = ranks <= 4 ? 30 : ranks <= 8 ? 22 : 16;
  const double gap = ranks <= 8 ? 4 : 2, wide = 74,
               group = static_cast<double>(most) * (cell + gap);
  const double pitch = group + (ranks <= 4 ? 30 : 20), top = 132;
  constexpr double input = 96, cut = 232, arrived = 884, output = 1020;
  Drawing d;
  d.height = top + ranks * pitch + 14;
  const Collective collective = schedules[0].collective();
  d.title = fmt::format("{} on {}", name(collective), counted(ranks, "rank"));
  d.notes.push_back({{20, 16, 700, 30}, d.title, 21, true, "left"});
  const bool folds = collective == Collective::reduce_scatter;
  d.notes.push_back({{20, 46, 900, 22},
                     folds ? "each input is cut, each block goes to its rank, what meets there is "
                             "reduced"
                           : "each input is cut, each block goes to its rank, each output is put "
                             "together in rank order",
                     13,
                     false,
                     "left"});
  const auto head = [&](double x, const std::string& text) {
    d.notes.push_back({{x - 40, top - 44, wide + 80, 20}, text, 13, true});
  };
  head(input, "input");
  head(cut, its.cut == 1 ? "1 block" : fmt::format("cut into {} blocks", its.cut));
  head(arrived, "as it arrives");
  head(output, folds ? "output, reduced" : "output");

  const Palette palette(ranks);
  const auto label = [&](const Source& source) {
    if (collective == Collective::all_to_all) {
      return fmt::format("{}>{}", source.rank, source.place);
    }
    return fmt::format("c{}", its.by_place ? source.place : source.rank);
  };
  const auto colour = [&](const Source& source) {
    return palette[its.by_place && !folds ? source.place : source.rank];
  };
  const auto group_top = [&](int rank) { return top + rank * pitch; };
  std::map<std::pair<int, int>, std::size_t> from;       // box of each block that is sent
  std::vector<std::pair<Source, std::size_t>> arrivals;  // and of what arrives
  for (int r = 0; r < ranks; ++r) {
    const double y = group_top(r);
    d.notes.push_back({{14, y + group / 2 - 12, 66, 24}, fmt::format("rank {}", r), 14, true});
    d.notes.push_back(
        {{output + wide + 16, y + group / 2 - 12, 66, 24}, fmt::format("rank {}", r), 14, true});
    if (its.has_input[static_cast<std::size_t>(r)]) {
      const double whole = its.cut * cell;
      const double start = y + (group - whole) / 2,
                   spread = y + (group - its.cut * (cell + gap)) / 2;
      for (int i = 0; i < its.cut; ++i) {
        d.boxes.push_back({fmt::format("in{}.{}", r, i),
                           {input, start + i * cell, wide, cell},
                           colour({r, i}),
                           "",
                           true});
      }
      d.cuts.push_back({input + wide + 8, start, cut - input - wide - 16, whole});
      for (int i = 0; i < its.cut; ++i) {
        from[{r, i}] = d.boxes.size();
        d.boxes.push_back({fmt::format("cut{}.{}", r, i),
                           {cut, spread + i * (cell + gap) + gap / 2, wide, cell},
                           colour({r, i}),
                           label({r, i})});
      }
    }
    const auto& places = its.out[static_cast<std::size_t>(r)];
    const auto n = static_cast<double>(places.size());
    const double start = y + (group - n * cell) / 2;
    std::size_t parts = 0;
    for (const auto& sources : places) parts += sources.size();
    const double spread = y + (group - static_cast<double>(parts) * (cell + gap)) / 2;
    std::size_t k = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
      for (const Source& source : places[i]) {
        arrivals.emplace_back(source, d.boxes.size());
        d.boxes.push_back(
            {fmt::format("there{}.{}", r, k),
             {arrived, spread + static_cast<double>(k) * (cell + gap) + gap / 2, wide, cell},
             colour(source),
             label(source)});
        ++k;
      }
      const double at = start + static_cast<double>(i) * cell;
      d.boxes.push_back({fmt::format("out{}.{}", r, i),
                         {output, at, wide, cell},
                         folds ? palette[r].towards(black, 0.1) : colour(places[i][0]),
                         folds ? fmt::format("Σ c{}", r) : "",
                         true});
    }
    if (!places.empty()) {
      d.joins.push_back({arrived + wide + 8, start, output - arrived - wide - 16, n * cell});
    }
  }
  for (const auto& [source, box] : arrivals) {
    d.links.push_back({from.at({source.rank, source.place}), box, colour(source)});
  }
  return d;
}

}  // namespace

std::string split_assemble_svg(std::span<const Schedule> schedules) {
  const Drawing d = draw(schedules);
  std::string out;
  const auto put = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  };
  put("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n<title>{2}</title>\n",
      d.width, d.height, escaped(d.title));
  out +=
      "<style>text{font-family:\"Helvetica Neue\",Helvetica,Arial,\"Liberation Sans\","
      "\"DejaVu Sans\",sans-serif}</style>\n";
  put("<rect width=\"{:.0f}\" height=\"{:.0f}\" fill=\"#fff\"/>\n", d.width, d.height);
  out += "<g fill=\"none\" stroke-width=\"1.7\">\n";
  for (const Link& link : d.links) {
    const Place& a = d.boxes[link.from].at;
    const Place& b = d.boxes[link.to].at;
    const double x0 = a.x + a.width + 2, y0 = a.y + a.height / 2;
    const double x1 = b.x - 3, y1 = b.y + b.height / 2, bend = (x1 - x0) * 0.42;
    put("<path class=\"link\" data-from=\"{}\" data-to=\"{}\" stroke=\"{}\" d=\"M{:.1f} {:.1f}"
        "C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}\"/>"
        "<path fill=\"{}\" stroke=\"none\" d=\"M{:.1f} {:.1f}l-8 -3.4v6.8z\"/>\n",
        d.boxes[link.from].id, d.boxes[link.to].id, link.colour.hex(), x0, y0, x0 + bend, y0,
        x1 - bend, y1, x1 - 6, y1, link.colour.hex(), x1, y1);
  }
  out += "</g>\n<g fill=\"none\" stroke=\"#9aa6b4\" stroke-width=\"1.3\">\n";
  for (const auto* places : {&d.cuts, &d.joins}) {
    for (const Place& at : *places) {
      const double middle = at.y + at.height / 2;
      put("<path d=\"M{:.1f} {:.1f}h{:.1f}m-6 -4l6 4l-6 4\"/>\n", at.x, middle, at.width);
    }
  }
  out += "</g>\n";
  for (const Box& box : d.boxes) {
    const Colour fill = box.strong ? box.fill : box.fill.towards(white, 0.8);
    put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"2\" fill=\"{}\" "
        "stroke=\"{}\"/>\n",
        box.at.x, box.at.y, box.at.width, box.at.height, fill.hex(),
        box.strong ? "#ffffff" : box.fill.hex());
    if (box.text.empty()) continue;
    put("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.0f}\" text-anchor=\"middle\" "
        "fill=\"{}\">{}</text>\n",
        box.at.x + box.at.width / 2, box.at.y + box.at.height / 2 + 4.2,
        std::min(13.0, box.at.height - 3),
        box.strong ? "#ffffff" : box.fill.towards(black, 0.5).hex(), escaped(box.text));
  }
  for (const Note& note : d.notes) {
    const bool left = note.align[0] == 'l';
    put("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\"{} text-anchor=\"{}\" "
        "fill=\"#1d2733\">{}</text>\n",
        left ? note.at.x : note.at.x + note.at.width / 2,
        note.at.y + note.at.height / 2 + note.size * 0.36, note.size,
        note.bold ? " font-weight=\"bold\"" : "", left ? "start" : "middle", escaped(note.text));
  }
  return out + "</svg>\n";
}

std::string split_assemble_drawio(std::span<const Schedule> schedules) {
  const Drawing d = draw(schedules);
  std::string cells;
  for (std::size_t i = 0; i < d.notes.size(); ++i) {
    const Note& note = d.notes[i];
    cells += drawio_vertex(fmt::format("note{}", i), "1", note.text,
                           fmt::format("text;html=1;align={};verticalAlign=middle;fontSize={};"
                                       "fontStyle={};",
                                       note.align, note.size, note.bold ? 1 : 0),
                           note.at);
  }
  for (const Box& box : d.boxes) {
    const Colour fill = box.strong ? box.fill : box.fill.towards(white, 0.8);
    cells += drawio_vertex(
        box.id, "1", box.text,
        fmt::format("rounded=0;whiteSpace=wrap;html=1;fontSize=12;fillColor={};strokeColor={};"
                    "fontColor={};",
                    fill.hex(), box.strong ? "#ffffff" : box.fill.hex(),
                    box.strong ? "#ffffff" : box.fill.towards(black, 0.5).hex()),
        box.at);
  }
  for (std::size_t i = 0; i < d.links.size(); ++i) {
    const Link& link = d.links[i];
    // Edges start apart and cross in the middle: their labels lie near their sources.
    cells += drawio_edge(fmt::format("link{}", i), d.boxes[link.from].id, d.boxes[link.to].id,
                         d.boxes[link.from].text,
                         fmt::format("curved=1;edgeStyle=entityRelationEdgeStyle;exitX=1;exitY=0.5;"
                                     "entryX=0;entryY=0.5;endArrow=block;endSize=5;"
                                     "strokeWidth=1.6;strokeColor={};html=1;fontSize=11;"
                                     "labelBackgroundColor=#ffffff;",
                                     link.colour.hex()),
                         -0.85);
  }
  return drawio_file(d.title, cells);
}

}  // namespace baton::diagrams
