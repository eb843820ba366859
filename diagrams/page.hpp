#pragma once

#include <string_view>

namespace baton::diagrams {

/// The page without its data, made of page/: "<!--title-->" and "<!--data-->" stand for these.
std::string_view page_text();

}  // namespace baton::diagrams
