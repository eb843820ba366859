#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace baton::cli {

/// A JSON value whose members keep their order. Sources that build one include <nlohmann/json.hpp>,
/// which takes seconds to compile.
using Json = nlohmann::ordered_json;

/// The text of a file: the value, indented, and a newline.
std::string text_of(const Json& json);
/// Writes that to standard output.
void print(const Json& json);

}  // namespace baton::cli
