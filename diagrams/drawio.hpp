#pragma once
/// Parts of draw.io's files.

#include <string>

namespace baton::diagrams {

struct Place {
  double x = 0, y = 0, width = 0, height = 0;
};

/// A file of one page with these cells.
std::string drawio_file(const std::string& title, const std::string& cells);
/// A shape within `parent` ("1": the page), whose position counts from the parent's.
std::string drawio_vertex(const std::string& id, const std::string& parent, const std::string& text,
                          const std::string& style, const Place& at);
/// An edge with its label `along` it: -1 at its source, 0 in the middle, 1 at its target.
std::string drawio_edge(const std::string& id, const std::string& from, const std::string& to,
                        const std::string& text, const std::string& style, double along = 0);

}  // namespace baton::diagrams
