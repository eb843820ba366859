#include <expat.h>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <set>

#include "baton/error.hpp"
#include "msccl.hpp"

namespace baton::diagrams::msccl_form {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
constexpr int most_gpus = 4096, most_channels = 256;

/// Elements of a file, each within the one before it.
constexpr std::string_view elements[] = {"algo", "gpu", "tb", "step"};

/// The attributes of an element.
using Attributes = const char* const*;

class Reader {
 public:
  Reader(std::string_view text, const std::string& origin)
      : origin_(origin), parser_(XML_ParserCreate(nullptr), &XML_ParserFree) {
    if (!parser_) throw std::bad_alloc();
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(
        parser_.get(),
        [](void* self, const char* name, const char** attributes) {
          auto& reader = *static_cast<Reader*>(self);
          reader.guarded([&] { reader.begin(name, attributes); });
        },
        [](void* self, const char*) {
          auto& reader = *static_cast<Reader*>(self);
          reader.guarded([&] { reader.end(); });
        });
    if (text.size() > static_cast<std::size_t>(most)) {
      refuse(fmt::format("at most {} bytes", most), fmt::format("{}", text.size()));
    }
    const auto status =
        XML_Parse(parser_.get(), text.data(), static_cast<int>(text.size()), XML_TRUE);
    if (thrown_) std::rethrow_exception(thrown_);
    if (status != XML_STATUS_OK) {
      refuse("XML", XML_ErrorString(XML_GetErrorCode(parser_.get())));
    }
  }

  Algorithm result() { return std::move(algorithm_); }

 private:
  /// Nothing is thrown through the parser, which is C.
  template <class F>
  void guarded(const F& handle) {
    if (thrown_) return;
    try {
      handle();
    } catch (...) {
      thrown_ = std::current_exception();
      XML_StopParser(parser_.get(), XML_FALSE);
    }
  }

  int line() const { return static_cast<int>(XML_GetCurrentLineNumber(parser_.get())); }
  [[noreturn]] void refuse(std::string_view expected, std::string_view found) const {
    refuse(line(), expected, found);
  }
  [[noreturn]] void refuse(int line, std::string_view expected, std::string_view found) const {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}:{}: expected {}, found {}", origin_, line, expected, found));
  }

  std::optional<std::string_view> text(std::string_view name) const {
    for (Attributes at = attributes_; *at; at += 2) {
      if (name == at[0]) return at[1];
    }
    return std::nullopt;
  }
  std::string_view required(std::string_view name) const {
    if (const auto found = text(name)) return *found;
    refuse(fmt::format("the attribute {} of <{}>", name, elements[depth_ - 1]), "none");
  }
  std::int64_t number(std::string_view name, std::int64_t least,
                      std::int64_t largest = most) const {
    const std::string_view found = required(name);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), value);
    if (error != std::errc() || end != found.data() + found.size() || value < least ||
        value > largest) {
      refuse(fmt::format("{} of <{}> from {} to {}", name, elements[depth_ - 1], least, largest),
             fmt::format("\"{}\"", found));
    }
    return value;
  }
  int small(std::string_view name, int least, std::int64_t largest) const {
    return static_cast<int>(number(name, least, largest));
  }
  bool flag(std::string_view name, bool otherwise) const {
    return text(name) ? number(name, 0, 1) != 0 : otherwise;
  }

  void begin(std::string_view name, Attributes attributes) {
    attributes_ = attributes;
    if (depth_ == std::size(elements) || name != elements[depth_]) {
      refuse(depth_ == std::size(elements) ? "no element within <step>"
                                           : fmt::format("<{}>", elements[depth_]),
             fmt::format("<{}>", name));
    }
    switch (depth_++) {
      case 0:
        return begin_algorithm();
      case 1:
        return begin_gpu();
      case 2:
        return begin_block();
      default:
        return add_step();
    }
  }
  void end() {
    switch (--depth_) {
      case 0:
        return end_algorithm();
      case 1:
        return end_gpu();
      default:
        return;
    }
  }

  void begin_algorithm() {
    const std::string_view name = required("coll");
    const auto known = std::ranges::find(collectives, name, [](const auto& c) { return c.second; });
    if (known == collectives.end()) {
      std::vector<std::string_view> names;
      for (const auto& collective : collectives) names.push_back(collective.second);
      refuse(fmt::format("coll to be one of {}", fmt::join(names, ", ")),
             fmt::format("\"{}\"", name));
    }
    algorithm_.collective = known->first;
    algorithm_.name = text("name").value_or("");
    algorithm_.gpus.resize(static_cast<std::size_t>(number("ngpus", 1, most_gpus)));
    algorithm_.in_place = flag("inplace", false);
    algorithm_.out_of_place = flag("outofplace", !algorithm_.in_place);
    if (!algorithm_.in_place && !algorithm_.out_of_place) {
      refuse("inplace or outofplace to be 1", "both 0");
    }
    if (text("root")) algorithm_.root = small("root", 0, ranks() - 1);
  }
  void end_algorithm() const {
    for (int r = 0; r < ranks(); ++r) {
      if (!met_.contains(r)) refuse(fmt::format("<gpu id=\"{}\">", r), "none");
    }
  }
  int ranks() const { return static_cast<int>(algorithm_.gpus.size()); }

  void begin_gpu() {
    rank_ = small("id", 0, ranks() - 1);
    if (!met_.insert(rank_).second) {
      refuse(fmt::format("one <gpu id=\"{}\">", rank_), "a second one");
    }
    gpu().input = number("i_chunks", 0);
    gpu().output = number("o_chunks", 0);
    gpu().scratch = number("s_chunks", 0);
  }
  Gpu& gpu() { return algorithm_.gpus[static_cast<std::size_t>(rank_)]; }

  void begin_block() {
    const int expected = static_cast<int>(gpu().blocks.size());
    if (const int id = small("id", 0, most); id != expected) {
      refuse(fmt::format("<tb id=\"{}\">", expected), fmt::format("id=\"{}\"", id));
    }
    ThreadBlock block;
    block.line = line();
    block.send = small("send", -1, ranks() - 1);
    block.recv = small("recv", -1, ranks() - 1);
    const bool local = block.send < 0 && block.recv < 0;
    block.channel = small("chan", local ? -1 : 0, most_channels - 1);
    for (const int peer : {block.send, block.recv}) {
      if (peer == rank_) refuse("another GPU as peer", fmt::format("GPU {} itself", peer));
    }
    gpu().blocks.push_back(std::move(block));
  }

  void add_step() {
    ThreadBlock& block = gpu().blocks.back();
    Instruction its;
    its.line = line();
    const auto expected = static_cast<std::int64_t>(block.steps.size());
    if (const std::int64_t s = number("s", 0); s != expected) {
      refuse(fmt::format("step s=\"{}\"", expected), fmt::format("s=\"{}\"", s));
    }
    const std::string_view name = required("type");
    const auto* type = std::ranges::find(types, name, &Type::name);
    if (type == types.end()) {
      std::vector<std::string_view> names;
      for (const Type& known : types) names.push_back(known.name);
      refuse(fmt::format("type to be one of {}", fmt::join(names, ", ")),
             fmt::format("\"{}\"", name));
    }
    its.type = type->name;
    if (type->sends && block.send < 0) refuse("a thread block with a peer in send", "none");
    if (type->receives && block.recv < 0) refuse("a thread block with a peer in recv", "none");
    if (name != "nop") {
      const std::int64_t count = number("cnt", 1);
      its.from = piece("src", count);
      its.to = piece("dst", count);
    }
    its.on_block = small("depid", -1, most);
    its.on_step = number("deps", -1);
    its.awaited = number("hasdep", 0, 1) != 0;
    if (const auto left = text("left")) {
      if (*left != "src" && *left != "dst") {
        refuse("left to be src or dst", fmt::format("\"{}\"", *left));
      }
      its.source_left = *left == "src";
    }
    block.steps.push_back(its);
  }
  Piece piece(const std::string& side, std::int64_t count) const {
    const std::string_view buffer = required(side + "buf");
    if (buffer != "i" && buffer != "o" && buffer != "s") {
      refuse(fmt::format("{}buf to be i, o or s", side), fmt::format("\"{}\"", buffer));
    }
    return {buffer[0], number(side + "off", -1), count};
  }

  void end_gpu() {
    for (const ThreadBlock& block : gpu().blocks) {
      for (const Instruction& its : block.steps) {
        if (its.on_block < 0) continue;
        const auto on = static_cast<std::size_t>(its.on_block);
        const auto waits_for = [&](const std::string& what) {
          return fmt::format("{}, as this step waits for it (depid, deps)", what);
        };
        if (on >= gpu().blocks.size()) {
          refuse(its.line, waits_for(fmt::format("a thread block {} of this GPU", on)), "none");
        }
        const auto& steps = gpu().blocks[on].steps;
        if (its.on_step < 0 || its.on_step >= static_cast<std::int64_t>(steps.size())) {
          refuse(its.line, waits_for(fmt::format("a step {} of thread block {}", its.on_step, on)),
                 "none");
        }
        const Instruction& awaited = steps[static_cast<std::size_t>(its.on_step)];
        if (!awaited.awaited) {
          refuse(awaited.line,
                 fmt::format("hasdep=\"1\", as the step in line {} waits for this one", its.line),
                 "\"0\"");
        }
      }
    }
  }

  const std::string& origin_;
  std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser_;
  std::exception_ptr thrown_;
  std::size_t depth_ = 0;  // elements that are open
  Attributes attributes_ = nullptr;
  Algorithm algorithm_;
  std::set<int> met_;  // GPUs
  int rank_ = 0;
};

}  // namespace

Algorithm read(std::string_view text, const std::string& origin) {
  return Reader(text, origin).result();
}

}  // namespace baton::diagrams::msccl_form
